"""Cases to test with; also imported by the processes that tests start."""

from __future__ import annotations

import msgspec

from reducer.corpus import Case, CaseTarget, Found, OutcomeRecord, Start, TierMinimum, slug_for
from reducer.ir.equations import Block, Op, Program, Transfer, Var
from reducer.ir.types import Type

SHA = "a" * 64
TARGET = CaseTarget(libtpu="0.0.52", sha256=SHA, topology="v5e:2x2")
FILES = {"repro.py": "print('repro')\n", "program.mlir": "module {}\n", "report.md": "# report\n"}


def chain(length: int, shape: tuple[int, ...] = (8, 128)) -> Program:
    """`length` tanh one after the other."""
    t = Type("float32", shape)
    eqns = tuple(Op(outs=(Var(i + 1, t),), primitive="tanh", args=(i,)) for i in range(length))
    return Program(Block((Var(0, t),), eqns, (length,)))


def placed() -> Program:
    """A placement: one value moved to the host."""
    t = Type("float32", (4,))
    eqn = Transfer(outs=(Var(1, t.in_memory("host")),), arg=0, memory="host")
    return Program(Block((Var(0, t),), (eqn,), (1,)))


def record(outcome: str = "rejected", *, libtpu: str = "0.0.52", sha: str = SHA, **fields: str) -> OutcomeRecord:
    return OutcomeRecord(libtpu=libtpu, sha256=sha, topology="v5e:2x2", outcome=outcome, **fields)


def build(size: int = 5, *, signature: str = "bitcast memory spaces", **fields: object) -> Case:
    """A program-tier case of `size` equations."""
    case = Case(
        slug=slug_for("bitcast", kind="error", signature=signature, tier="program"),
        kind="error",
        signature=signature,
        family="bitcast",
        target=TARGET,
        tiers={"program": TierMinimum(size=size, program=chain(size), script="repro.py", module="program.mlir")},
        outcomes=(record(signature=signature, family="bitcast", message="INTERNAL: Bitcast cannot"),),
        found=Found(strategy="layer_stacks", seed=7, seconds=2.5, started_size=40, compiles_to_minimum=60),
        start=Start(tier="program", size=9, program=chain(9)),
    )
    return msgspec.structs.replace(case, **fields)
