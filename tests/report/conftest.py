from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from reducer.corpus import Case, CaseTarget, Found, OutcomeRecord, TierMinimum, slug_for
from reducer.ir.equations import Block, Op, Program, Transfer, Var
from reducer.ir.types import Type

SHA = "a" * 64
SIGNATURE = "INTERNAL [post-optimization] bitcast: memory spaces 5 and 0"


def program() -> Program:
    t = Type("float32", (8, 128))
    tanh = Op(outs=(Var(1, t),), primitive="tanh", args=(0,))
    move = Transfer(outs=(Var(2, t.in_memory("host")),), arg=1, memory="host")
    return Program(Block((Var(0, t),), (tanh, move), (2,)))


@pytest.fixture
def make() -> Callable[..., Case]:
    def build(**fields: object) -> Case:
        signature = str(fields.get("signature", SIGNATURE))
        case = Case(
            slug=slug_for("bitcast", kind="error", signature=signature, tier="program"),
            kind="error",
            signature=signature,
            family="bitcast",
            target=CaseTarget(libtpu="0.0.52", sha256=SHA, topology="v5e:2x2"),
            tiers={"program": TierMinimum(size=2, program=program(), script="repro.py", module="program.mlir")},
            outcomes=(
                OutcomeRecord(
                    libtpu="0.0.52", sha256=SHA, topology="v5e:2x2", outcome="rejected", signature=signature,
                    family="bitcast", jaxlib="0.10.2",
                    message="INTERNAL: Bitcast cannot have\n\nSuspected Python Code Location:",
                ),
            ),
            found=Found(strategy="layer_stacks", seed=7, seconds=2.54, started_size=41, compiles_to_minimum=63),
            environment={"python": "3.11.9", "jax": "0.10.2", "LIBTPU_INIT_ARGS": "--xla_flag=1"},
        )  # fmt: skip
        return msgspec.structs.replace(case, **fields)

    return build
