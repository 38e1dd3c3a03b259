"""The neighbourhood of modules, and that what is shrunk is minimal in it."""

from __future__ import annotations

from collections import Counter

import pytest

from reducer.neighbourhood.modules import module_neighbours
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Rejected
from reducer.shrink.certificate import certify
from reducer.shrink.modules import shrink_module
from reducer.stablehlo.model import Module, operations_of
from reducer.stablehlo.normal import inlined
from reducer.stablehlo.order import identity, order_key
from reducer.stablehlo.parse import read
from reducer.stablehlo.sense import nonsense
from reducer.stablehlo.text import to_text
from tests.modules.conftest import brief, has
from tests.modules.samples import MANUAL, STACK, TYPES


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (
            STACK,
            {
                "carry": 1,
                "delete": 21,
                "length": 2,
                "replace": 16,
                "result": 6,
                "size": 5,
                "unwrap": 1,
            },
        ),
        (MANUAL, {"attribute": 1, "delete": 8, "devices": 1, "replace": 1, "result": 1}),
        (TYPES, {"delete": 4, "dtype": 1, "replace": 2, "result": 1, "scalar": 1, "size": 1}),
    ],
)
def test_every_kind_of_step_is_there(text: str, kinds: dict[str, int]) -> None:
    assert Counter(one.kind for one in module_neighbours(inlined(read(text.encode())))) == kinds


@pytest.mark.parametrize("text", [STACK, MANUAL])
def test_neighbours_are_smaller_and_modules_for_mlir(text: str) -> None:
    module = inlined(read(text.encode()))
    found = list(module_neighbours(module))
    assert len({identity(one.program) for one in found}) == len(found)
    for one in found:
        assert order_key(one.program) < order_key(module)
        assert nonsense(one.program) is None
        assert inlined(read(to_text(one.program).encode())) == one.program


def wants(module: Module) -> bool:
    """A placement in a loop, and an exponential anywhere."""
    loops = [one for one in operations_of(module) if one.name == "stablehlo.while"]
    placed = any("pinned_host" in str(one.attributes) for loop in loops for one in loop.regions[1].operations)
    return placed and has(module, "stablehlo.exponential")


def test_what_is_shrunk_is_minimal() -> None:
    with FakeOracle(lambda m: Rejected("yes" if wants(m) else "no"), key=identity) as oracle:
        shrunk = shrink_module(read(STACK.encode()), oracle, lambda r: r.answer == Rejected("yes"))
        assert shrunk.minimal
        assert (
            brief(shrunk.program)
            == """\
main(%0:1xf32)
  %1:1x1xf32 = constant dense<0.000000e+00>
  %2:i32 = constant dense<0>
  %13:i32 %14:1x1xf32 = while %2 %1
  (%3:i32 %4:1x1xf32)
    %5:i32 = constant dense<1>
    %6:i1 = compare %3 %5
    return %6
  (%7:i32 %8:1x1xf32)
    %9:1xf32 = to_host %0
    %10:1x1xf32 = reshape %9
    %11:i32 = constant dense<1>
    %12:i32 = add %7 %11
    return %12 %10
  %15:1xf32 = exponential %0
  return %15 %14
"""
        )
        around = list(module_neighbours(shrunk.program))
        certificate = certify(shrunk.program, around, oracle, lambda r: r.answer == Rejected("yes"), key=identity)
    assert certificate.minimal
    assert len(certificate.entries) == len(around) > 10


def test_more_workers_end_with_the_same_module() -> None:
    found = []
    for workers in (1, 3):
        with FakeOracle(lambda m: Rejected("yes" if wants(m) else "no"), workers, key=identity) as oracle:
            shrunk = shrink_module(read(STACK.encode()), oracle, lambda r: r.answer == Rejected("yes"))
        found.append((identity(shrunk.program), shrunk.history, shrunk.compiles))
    assert found[0] == found[1]
