"""The certificate: every neighbour with its verdict, the same for any number of workers."""

from __future__ import annotations

import msgspec
import pytest

from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import Grad, Name, Program
from reducer.ir.types import parse_type
from reducer.ir.walk import equations
from reducer.neighbourhood import neighbours
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Answer, Compiled, Invalid, Memory, Rejected, Result, Skipped, message_of
from reducer.shrink import Certificate, certify_program, shrink_program


def start() -> Program:
    b = Builder()
    x = b.name(b.param(parse_type("f32[8]")), "act")
    return Program(b.block(b.op("mul", b.op("exp", x), x)), gradient=Grad((0,)))


def answer(program: Program) -> Answer:
    """Fails as wanted with a name and a function; otherwise something of every sort."""
    kinds = [type(eqn) for _, _, eqn in equations(program)]
    if not kinds:
        return Skipped("no host placement")
    if Name not in kinds:
        return Invalid("no name")
    if len(kinds) < 2:
        return Compiled(Memory())
    return Rejected("wanted") if program.gradient is not None else Rejected("other")


def wanted(result: Result) -> bool:
    return result.answer == Rejected("wanted")


def label(result: Result) -> str | None:
    return message_of(result.answer) if isinstance(result.answer, Rejected) else None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_minimum_is_certified(workers: int) -> None:
    seen: list[int] = []
    with FakeOracle(answer, workers, key=identity) as oracle:
        best = shrink_program(start(), oracle, wanted).program
        known = oracle.unique_calls
        certificate = certify_program(best, oracle, wanted, label=label, events=lambda _, k, n: seen.append(n - k))
        assert oracle.unique_calls == known, "the last sweep has asked about every neighbour"
    assert certificate.minimal
    assert certificate.key == identity(best)
    assert [e.key for e in certificate.entries] == [identity(n.program) for n in neighbours(best)]
    assert seen == list(reversed(range(len(certificate.entries))))
    assert certificate.counts() == {
        "delete": {"invalid": 1, "compiles": 1},
        "replace": {"invalid": 1, "skipped": 2},
        "input": {"fails-otherwise": 1},
        "gradient": {"fails-otherwise": 1},
        "operation": {"invalid": 1},
    }
    others = [(e.signature, e.description) for e in certificate.entries if e.verdict == "fails-otherwise"]
    assert others == [("other", "input 0"), ("other", "none")]
    assert msgspec.json.decode(msgspec.json.encode(certificate), type=Certificate) == certificate


def test_what_is_not_minimal_is_not_certified() -> None:
    with FakeOracle(answer, key=identity) as oracle:
        certificate = certify_program(canonical(start()), oracle, wanted)
    assert not certificate.minimal
    assert {e.verdict for e in certificate.entries} >= {"fails-the-same"}
