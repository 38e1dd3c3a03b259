"""The certificate in a case: made after a reduction, stored, taken up again."""

from __future__ import annotations

import msgspec
import pytest

from reducer.corpus import Case, CaseTarget, TierMinimum, decode_case, encode_case, slug_for
from reducer.corpus.recheck import recheck
from reducer.errors import InputError
from reducer.evidence import certified
from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.codec import identity
from reducer.ir.equations import Grad, Name, Program
from reducer.ir.order import size
from reducer.ir.types import parse_type
from reducer.ir.walk import equations
from reducer.neighbourhood import NAME, neighbours
from reducer.oracle.fake import FakeOracle
from reducer.oracle.outcome import Answer, Compiled, Crashed, Invalid, Memory, Rejected
from reducer.oracle.verdict import failure

WANTED = Rejected("INTERNAL: during context [post-optimization]: wanted")
OTHER = Crashed("SIGABRT", "file.cc:1] Check failed: other")


def start() -> Program:
    b = Builder()
    x = b.name(b.param(parse_type("f32[]")), "h")
    return canonical(Program(b.block(b.op("sin", x)), gradient=Grad((0,))))


def answer(program: Program) -> Answer:
    """Fails as wanted with a name, a function and a gradient; otherwise something of every sort."""
    kinds = [type(eqn) for _, _, eqn in equations(program)]
    if Name not in kinds:
        return Invalid("no name")
    if len(kinds) < 2:
        return Compiled(Memory())
    return WANTED if program.gradient is not None else OTHER


def case(program: Program) -> Case:
    from reducer.oracle.outcome import Result

    signature = failure(Result(WANTED)) or ""
    return Case(
        slug=slug_for("x", kind="error", signature=signature, tier="program"),
        kind="error",
        signature=signature,
        family="f",
        target=CaseTarget(libtpu="0.0.52", sha256="c" * 64, topology="v5e:2x2"),
        tiers={"program": TierMinimum(size=size(program), program=program)},
    )


def made(program: Program, workers: int = 1) -> Case:
    with FakeOracle(answer, workers, key=identity) as oracle:
        return certified(case(program), "program", oracle)


def test_every_neighbour_is_in_the_case_with_what_happened() -> None:
    done = made(start())
    found = done.minimum.certificate
    assert found is not None
    assert found.neighbourhood == NAME
    assert [n.key for n in found.neighbours] == [identity(n.program)[:16] for n in neighbours(start())]
    assert [(n.step, n.verdict(done.signature)) for n in found.neighbours if n.kind in ("delete", "gradient")] == [
        ("delete eqns[0]", "invalid"),
        ("delete eqns[1]", "compiles"),
        ("gradient none", "fails-otherwise"),
        ("gradient without the value", "fails-the-same"),
    ]
    assert decode_case(encode_case(done)) == done


@pytest.mark.parametrize("workers", [2, 3])
def test_the_same_bytes_for_any_number_of_workers(workers: int) -> None:
    assert encode_case(made(start(), workers)) == encode_case(made(start()))


def test_a_certificate_holds_where_nothing_changed_and_nothing_fails_the_same() -> None:
    minimum = msgspec.structs.replace(start(), gradient=Grad((0,), with_value=False))
    done = made(minimum)
    found = done.minimum.certificate
    assert found is not None
    again = recheck(found, found, done.signature)
    assert again.holds
    assert again.as_json()["counts"] == found.counts(done.signature)

    fewer = msgspec.structs.replace(found, neighbours=found.neighbours[1:])
    gone = recheck(found, fewer, done.signature)
    assert not gone.holds
    first = found.neighbours[0]
    assert gone.differing == {f"{first.step} ({first.key})": "invalid in the certificate, not there now"}

    fixed = msgspec.structs.replace(first, outcome="compiled")
    changed = recheck(found, msgspec.structs.replace(found, neighbours=(fixed, *found.neighbours[1:])), done.signature)
    assert list(changed.differing.values()) == ["invalid in the certificate, compiles now"]

    older = recheck(msgspec.structs.replace(found, neighbourhood="program-0"), found, done.signature)
    assert list(older.differing) == ["neighbourhood"]


def test_what_fails_the_same_is_said() -> None:
    found = made(start()).minimum.certificate
    assert found is not None
    again = recheck(found, found, case(start()).signature)
    assert not again.holds
    assert again.failing == ("gradient without the value",)
    assert found.counts(case(start()).signature)["fails-the-same"] == 1


def test_a_skipped_neighbour_may_be_anything_but_the_same_failure() -> None:
    done = made(msgspec.structs.replace(start(), gradient=Grad((0,), with_value=False)))
    found = done.minimum.certificate
    assert found is not None
    skipped = msgspec.structs.replace(found.neighbours[0], outcome="skipped", signature="")
    stored = msgspec.structs.replace(found, neighbours=(skipped, *found.neighbours[1:]))
    assert recheck(stored, found, done.signature).holds


def test_a_tier_without_a_program_has_no_such_certificate() -> None:
    with FakeOracle(answer) as oracle, pytest.raises(InputError, match="no program at the placement tier"):
        certified(case(start()), "placement", oracle)
