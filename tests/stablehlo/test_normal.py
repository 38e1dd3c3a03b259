"""Normal forms: dead code, calls, duplicates and names gone, and nothing that the module computes."""

from __future__ import annotations

import pytest

from reducer.errors import ProgramError
from reducer.stablehlo.inline import inline_calls
from reducer.stablehlo.model import Module
from reducer.stablehlo.normal import inlined, numbered, tidied
from reducer.stablehlo.order import order_key, size
from reducer.stablehlo.parse import read
from tests.modules.conftest import brief

CALLS = """
module @m attributes {a.b = 1 : i32} {
  sdy.mesh @unused = <["d"=2]>
  func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32> {jax.result_info = "r"}) {
    %0 = func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %1 = func.call @g(%0) : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @never(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.sine %x : tensor<2xf32>
    %1 = stablehlo.sine %x : tensor<2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2xf32>
    %3 = stablehlo.cosine %x : tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
"""

DEAD_CARRIES = """
func.func @main(%x: tensor<2xf32>, %p: tensor<i32>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:4 = stablehlo.while(%i = %c, %a = %x, %b = %x, %d = %x)
      : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %s = stablehlo.sine %b : tensor<2xf32>
      %u = stablehlo.cosine %d : tensor<2xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %s, %a, %u : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }
    %1:2 = "stablehlo.case"(%p) ({
      %k = stablehlo.sine %0#1 : tensor<2xf32>
      stablehlo.return %k, %k : tensor<2xf32>, tensor<2xf32>
    }, {
      %k = stablehlo.cosine %0#3 : tensor<2xf32>
      stablehlo.return %0#1, %k : tensor<2xf32>, tensor<2xf32>
    }) : (tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %1#0 : tensor<2xf32>
}
"""


def parsed(text: str) -> Module:
    return read(text.encode())


def test_inlined_has_no_calls_and_no_duplicates() -> None:
    module = inlined(parsed(CALLS))
    assert (
        brief(module)
        == """\
main(%0:2xf32)
  %1:2xf32 = sine %0
  %2:2xf32 = add %1 %1
  %3:2xf32 = sine %2
  %4:2xf32 = add %3 %3
  return %4
"""
    )
    assert module.name == "module"
    assert module.symbols == ()
    assert module.attributes == (("a.b", "1 : i32"),)
    assert module.main.result_attributes == ((),)


def test_tidied_keeps_calls() -> None:
    assert (
        brief(tidied(parsed(CALLS)))
        == """\
main(%0:2xf32)
  %1:2xf32 = call %0 @f0
  %2:2xf32 = call %1 @f0
  return %2
f0(%3:2xf32)
  %4:2xf32 = sine %3
  %5:2xf32 = add %4 %4
  return %5
"""
    )


def grows(functions: int) -> bytes:
    """Functions each of which calls the next one twice."""
    bodies = "".join(
        f"func.func private @f{i}(%a: tensor<2xf32>) -> tensor<2xf32> {{\n"
        f"  %0 = call @f{i + 1}(%a) : (tensor<2xf32>) -> tensor<2xf32>\n"
        f"  %1 = call @f{i + 1}(%0) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  return %1 : tensor<2xf32>\n}\n"
        for i in range(functions)
    )
    last = f"func.func private @f{functions}(%a: tensor<2xf32>) -> tensor<2xf32> {{\n"
    last += "  %0 = stablehlo.sine %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
    main = (
        "func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %0 = call @f0(%a) : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"
    )
    return f"module {{\n{main}{bodies}{last}}}".encode()


def test_calls_that_grow_without_end_are_refused() -> None:
    with pytest.raises(ProgramError, match="too many operations after inlining"):
        inlined(read(grows(40)))


def test_numbered_keeps_everything() -> None:
    module = numbered(parsed(CALLS))
    assert [function.name for function in module.functions] == ["main", "f0", "never"]
    assert size(module) == size(parsed(CALLS)) == 6


def test_carries_and_branches_that_nobody_needs_go() -> None:
    assert (
        brief(inlined(parsed(DEAD_CARRIES)))
        == """\
main(%0:2xf32, %1:i32)
  %2:i32 = constant dense<0>
  %15:i32 %16:2xf32 %17:2xf32 = while %2 %0 %0
  (%3:i32 %4:2xf32 %5:2xf32)
    %6:i32 = constant dense<3>
    %7:i1 = compare %3 %6
    return %7
  (%8:i32 %9:2xf32 %10:2xf32)
    %11:2xf32 = sine %10
    %13:i32 = constant dense<1>
    %14:i32 = add %8 %13
    return %14 %11 %9
  %19:2xf32 = case %1
  ()
    %18:2xf32 = sine %16
    return %18
  ()
    return %16
""".replace("%13", "%12")
        .replace("%14", "%13")
        .replace("%15", "%14")
        .replace("%16", "%15")
        .replace("%17", "%16")
        .replace("%18", "%17")
        .replace("%19", "%18")
        + "  return %18\n"
    )


@pytest.mark.parametrize("form", [inlined, tidied, numbered])
@pytest.mark.parametrize("text", [CALLS, DEAD_CARRIES])
def test_a_form_is_a_projection(form: object, text: str) -> None:
    assert callable(form)
    once = form(parsed(text))
    assert form(once) == once
    assert order_key(form(once)) == order_key(once)


def test_an_effect_stays_with_the_loop_around_it() -> None:
    text = DEAD_CARRIES.replace(
        "%s = ", "stablehlo.custom_call @log(%b) {has_side_effect = true} : (tensor<2xf32>) -> ()\n      %s = "
    ).replace("return %1#0", "return %x")
    names = [line.split(" = ")[-1].split()[0] for line in brief(inlined(parsed(text))).splitlines()]
    assert names.count("while") == names.count("call") == 1
    assert "case" not in names


def test_functions_that_call_each_other_in_a_circle_are_not_inlined() -> None:
    text = CALLS.replace("stablehlo.cosine %x : tensor<2xf32>", "func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>")
    with pytest.raises(ProgramError, match="the function g calls itself"):
        inline_calls(parsed(text))


def test_what_would_grow_without_end_is_not_inlined() -> None:
    functions = "".join(
        f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{"
        f" %0 = func.call @f{i + 1}(%x) : (tensor<f32>) -> tensor<f32>"
        f" %1 = func.call @f{i + 1}(%0) : (tensor<f32>) -> tensor<f32>"
        " return %1 : tensor<f32> }\n"
        for i in range(40)
    )
    last = "func.func private @f40(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    main = (
        "func.func @main(%x: tensor<f32>) -> tensor<f32> { %0 = func.call @f0(%x) : (tensor<f32>) -> tensor<f32>"
        " return %0 : tensor<f32> }\n"
    )
    leaf = last.replace("return %x", "%0 = stablehlo.sine %x : tensor<f32> return %0")
    with pytest.raises(ProgramError, match="too many operations after inlining"):
        inline_calls(parsed(main + functions + leaf))
