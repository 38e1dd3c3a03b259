"""What the tests of passes for modules share: run one pass alone, with an oracle that always agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Rejected, Result
from reducer.passes.modules import MODULE_PASSES, relevance
from reducer.shrink.driver import shrink
from reducer.shrink.modules import module_tier
from reducer.stablehlo.check import check
from reducer.stablehlo.model import Attributes, Block, Module, Operation, Value, attribute, operations_of
from reducer.stablehlo.normal import numbered
from reducer.stablehlo.order import identity
from reducer.stablehlo.parse import read
from reducer.stablehlo.text import to_text

Run = Callable[..., str]
_SHOWN = ("value", "permutation", "broadcast_dimensions", "slice_sizes", "limit_indices", "callee")


def brief(module: Module) -> str:
    """A module in short: arguments, one operation a line, results; and it has to be one for MLIR too."""
    check(module)
    assert numbered(read(to_text(module).encode())) == numbered(module)
    lines = []
    for function in module.functions:
        params = zip(function.body.params, function.param_attributes, strict=True)
        head = ", ".join(_value(value) + _attributes(each) for value, each in params)
        results = "".join(_attributes(each) for each in function.result_attributes)
        lines += [f"{function.name}({head}){results}", *_block(function.body, "  ")]
    return "\n".join(lines) + "\n"


def _block(block: Block, indent: str) -> Iterator[str]:
    for one in block.operations:
        yield from _operation(one, indent)


def _operation(one: Operation, indent: str) -> Iterator[str]:
    name = one.name.partition(".")[2]
    target = attribute(one.attributes, "mhlo.frontend_attributes") or ""
    if name == "custom_call":
        name = "to_host" if "pinned_host" in target else "to_device" if '"device"' in target else "call"
    shown = [text.partition(" : tensor")[0] for key, text in one.attributes if key in _SHOWN]
    shown += [key for key, _ in one.attributes if "." in key and not name.startswith("to_")]
    left = f"{' '.join(map(_value, one.results))} = " if one.results else ""
    yield " ".join([f"{indent}{left}{name}", *(f"%{value.number}" for value in one.operands), *shown])
    for region in one.regions:
        yield f"{indent}({' '.join(map(_value, region.params))})"
        yield from _block(region, indent + "  ")


def _value(value: Value) -> str:
    return f"%{value.number}:{value.type.removeprefix('tensor<').removesuffix('>')}"


def _attributes(attributes: Attributes) -> str:
    return "".join(f"[{name}]" for name, _ in attributes)


@pytest.fixture
def module() -> Callable[[str], Module]:
    """A module from MLIR's text, as it is."""
    return lambda text: read(text.encode())


@pytest.fixture
def run() -> Run:
    """`run(name, text)`: in short what one pass makes of a module if everything fails as wanted.

    With `holds` the oracle agrees only where that predicate does.
    """

    def run(name: str, text: str, holds: Callable[[Module], bool] = lambda _: True) -> str:
        (one,) = (p for p in MODULE_PASSES if p.name == name)

        def wanted(result: Result) -> bool:
            return result.answer == Rejected("yes")

        with FakeOracle(lambda m: Rejected("yes" if holds(m) else "no"), key=identity) as oracle:
            shrunk = shrink(read(text.encode()), oracle, wanted, tier=module_tier(), passes=(one,))
        return brief(shrunk.program)

    return run


def has(module: Module, *names: str) -> bool:
    """True if operations of all these names are in the module."""
    return {one.name for one in operations_of(module)}.issuperset(names)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes for large modules take small ones too."""
    monkeypatch.setattr(relevance, "LARGE", 0)
