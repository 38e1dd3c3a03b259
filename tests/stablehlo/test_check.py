"""Checks, loops that end, sizes, and the order."""

from __future__ import annotations

import msgspec
import pytest

from reducer.errors import ProgramError
from reducer.stablehlo.check import check
from reducer.stablehlo.lists import per_value, shardings, split
from reducer.stablehlo.model import Block, Module, Operation, Value
from reducer.stablehlo.normal import inlined, numbered
from reducer.stablehlo.order import identity, order_key, size
from reducer.stablehlo.parse import read
from reducer.stablehlo.sense import divisors, nonsense
from reducer.stablehlo.text import quoted, symbol
from reducer.stablehlo.types import Tensor, fill, is_filled, is_splat, tensor
from tests.modules.samples import STACK


def stack() -> Module:
    return inlined(read(STACK.encode()))


def with_body(module: Module, *operations: Operation) -> Module:
    main = msgspec.structs.replace(module.main, body=Block(module.main.body.params, operations))
    return msgspec.structs.replace(module, functions=(main,))


def test_a_value_is_defined_before_it_is_used_and_with_its_type() -> None:
    module = stack()
    check(module)
    first, second, *rest = module.main.body.operations
    with pytest.raises(ProgramError, match=r"main.0: %2 is not defined as tensor<f32>"):
        check(with_body(module, second, first, *rest))
    other = msgspec.structs.replace(second, operands=(Value(second.operands[0].number, "tensor<i32>"),))
    with pytest.raises(ProgramError, match=r"main.1: %2 is not defined as tensor<i32>"):
        check(with_body(module, first, other, *rest))
    with pytest.raises(ProgramError, match="the block does not end"):
        check(with_body(module, first, second, *rest[:-1], msgspec.structs.replace(rest[-1], name="x.y")))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("compare LT", "compare GT", "main.3: a loop that may never end"),
        ("dense<1> : tensor<i32>", "dense<0> : tensor<i32>", "main.3: a loop that may never end"),
        ("stablehlo.add %i, %one", "stablehlo.multiply %i, %one", "main.3: a loop that may never end"),
        ("stablehlo.add %i, %one", "stablehlo.add %i, %i", "main.3: a loop that may never end"),
        ("dense<3> : tensor<i32>", "dense<4> : tensor<i32>", None),
        ("dense<3> : tensor<i32>", "dense<0> : tensor<i32>", "main.3: a loop that never turns"),
    ],
)
def test_a_loop_ends_if_it_counts_and_turns(old: str, new: str, where: str | None) -> None:
    assert old in STACK
    assert nonsense(inlined(read(STACK.replace(old, new).encode()))) == where


def test_nothing_is_divided_by_zero() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %2 = stablehlo.divide %x, %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }"""
    module = numbered(read(text.encode()))
    assert nonsense(module) == "main.2: a division by zero"
    assert divisors(module) == {1, 2}
    assert nonsense(numbered(read(text.replace("<0.0>", "<1.0>").encode()))) is None


def test_size_counts_operations_nested_ones_included() -> None:
    # broadcast, while, compare, sine, multiply, placement, reshape, update, add, exponential
    assert size(stack()) == 10


def test_fewer_operations_are_smaller_whatever_else_there_is() -> None:
    module = stack()
    keys = [order_key(module)]
    shorter = inlined(read(STACK.replace("dense<3>", "dense<1>").encode()))
    keys.append(order_key(shorter))
    fewer = inlined(read(STACK.replace("%e, %w#2", "%w#1, %w#2").encode()))
    keys.append(order_key(fewer))
    assert keys == sorted(keys, reverse=True)
    assert len({identity(one) for one in (module, shorter, fewer)}) == 3


def test_types_are_read_and_printed() -> None:
    assert tensor("tensor<2x3xbf16>") == Tensor((2, 3), "bf16")
    assert tensor("tensor<complex<f32>>") == Tensor((), "complex<f32>")
    assert str(Tensor((2,), "i1")) == "tensor<2xi1>"
    assert [tensor(text) for text in ("tensor<?xf32>", "!stablehlo.token", "tensor<2xf32, #x>")] == [None] * 3
    assert fill("tensor<2xi1>", 1) == "dense<true> : tensor<2xi1>"
    assert fill("tensor<2xui8>") == "dense<0> : tensor<2xui8>"
    assert fill("tensor<f8E4M3FN>", 1) == "dense<1.000000e+00> : tensor<f8E4M3FN>"
    with pytest.raises(ProgramError, match="no constant"):
        fill("!stablehlo.token")
    assert is_filled("dense<1.000000e+00> : tensor<f32>")
    assert not is_filled("dense<2> : tensor<i32>")
    assert is_splat("dense<2> : tensor<4xi32>")
    assert not is_splat("dense<[1, 2]> : tensor<2xi32>")


def test_lists_are_split_where_they_are() -> None:
    assert split('<@m, [{"a, b"}, {}]>, 3, "x,\\",y", {k = [1, 2]}') == [
        '<@m, [{"a, b"}, {}]>',
        "3",
        '"x,\\",y"',
        "{k = [1, 2]}",
    ]
    assert split(" ") == []
    text = "#sdy.sharding_per_value<[<@m, [{}]>, <@m, []>]>"
    assert shardings(text) == ["<@m, [{}]>", "<@m, []>"]
    assert per_value(shardings(text)) == text
    with pytest.raises(ProgramError, match="not a list"):
        shardings("[]")


def test_strings_are_quoted_as_mlir_reads_them() -> None:
    assert quoted('a"\\\n') == '"a\\22\\5C\\0A"'
    assert symbol("f_1.x") == "@f_1.x"
    assert symbol("a b") == '@"a b"'
