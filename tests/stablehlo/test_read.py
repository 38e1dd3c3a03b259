"""Reading modules: the mirror holds all of what MLIR read, and what cannot be read is one clear line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reducer import aside
from reducer.errors import InputError
from reducer.stablehlo import read, read_module, to_text
from reducer.stablehlo.model import Module, attribute, operations_of

ROOT = Path(__file__).resolve().parents[2]

TEXT = b"""
module @m attributes {mhlo.num_partitions = 2 : i32, x.flag} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%arg0: tensor<4xf32> {mhlo.memory_kind = "pinned_host"})
      -> (tensor<f32> {jax.result_info = "r\\22"}) {
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
"""

MIRRORED = """\
module @m attributes {mhlo.num_partitions = 2 : i32, x.flag} {
  "sdy.mesh"() {mesh = #sdy.mesh<["d"=2]>, sym_name = "mesh"} : () -> ()
  "func.func"() ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() {value = dense<1.000000e+00> : tensor<f32>} : () -> (tensor<f32>)
    %5 = "stablehlo.reduce"(%0, %1) ({
    ^bb0(%2: tensor<f32>, %3: tensor<f32>):
      %4 = "stablehlo.add"(%2, %3) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>)
    "func.return"(%5) : (tensor<f32>) -> ()
  }) {sym_name = "main", function_type = (tensor<4xf32>) -> (tensor<f32>), \
arg_attrs = [{mhlo.memory_kind = "pinned_host"}], res_attrs = [{jax.result_info = "r\\22"}], \
sym_visibility = "public"} : () -> ()
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return read_module(TEXT)


def test_what_is_read_is_printed(module: Module) -> None:
    assert to_text(module) == MIRRORED
    assert attribute(module.main.param_attributes[0], "mhlo.memory_kind") == '"pinned_host"'
    assert module.attributes == (("mhlo.num_partitions", "2 : i32"), ("x.flag", "unit"))


def test_what_is_printed_reads_as_the_same(module: Module) -> None:
    text = to_text(module)
    assert read_module(text.encode()) == module
    assert read_module(gzip.compress(text.encode())) == module


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b" \n", "the module is empty"),
        (b"\x1f\x8bxxxx", "the compressed module is damaged: "),
        (gzip.compress(TEXT)[:-20], "the compressed module is cut off"),
        (b"module { func.func @main() { return", "the module does not parse: "),
        (b"ML\xefR\x00\x01\x02", "the module does not parse: "),
        (b'"foo.bar"() : () -> ()', "the module does not parse: "),
        (b"module {}", "the module does not parse: the module has no function"),
        (b"module { func.func private @f() }", "the module does not parse: the function f has no body"),
    ],
)
def test_what_cannot_be_read_is_one_line(data: bytes, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read_module(data)
    assert caught.value.message.startswith(line)
    assert "\n" not in caught.value.message


def test_too_large_is_said_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_BYTES", 1 << 20)
    for data in (b"x" * (1 << 20) + b"x", gzip.compress(b"x" * (2 << 20))):
        with pytest.raises(InputError, match="more than 1 MiB"):
            read_module(data)


def test_a_parser_that_dies_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "_BOOTSTRAP", "import os; os.kill(os.getpid(), 11) # {root}")
    with pytest.raises(InputError, match="MLIR's parser was killed by signal 11"):
        read_module(TEXT)


def test_nesting_has_a_limit() -> None:
    text = "stablehlo.return %a : tensor<i1>"
    for i in range(70):
        text = f'%{i} = "stablehlo.case"(%i) ({{ {text} }}) : (tensor<i32>) -> tensor<i1>'
        text += f" stablehlo.return %{i} : tensor<i1>"
    text = text.removesuffix("stablehlo.return %69 : tensor<i1>")
    text = f"func.func @main(%i: tensor<i32>, %a: tensor<i1>) {{ {text} return }}"
    with pytest.raises(InputError, match="the module does not parse: regions are nested more than 60 deep"):
        read_module(text.encode())


def test_values_are_numbered_once(module: Module) -> None:
    numbers = [v.number for op in operations_of(module) for v in op.results] + [
        p.number for p in module.main.body.params
    ]
    assert len(numbers) == len(set(numbers))


def test_complex_constants_are_read() -> None:
    """MLIR's own bindings cannot hold them."""
    text = "func.func public @main() -> tensor<complex<f32>> {\n"
    text += "  %0 = stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f32>>\n  return %0 : tensor<complex<f32>>\n}\n"
    module = read_module(text.encode())
    (constant, _) = module.main.body.operations
    assert constant.attributes == (("value", "dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>"),)
    assert read_module(to_text(module).encode()) == module
