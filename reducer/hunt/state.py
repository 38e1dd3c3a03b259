"""Where a hunt stopped, so that `--resume` goes on: the next batch of programs, and finds not yet reduced.

One small file per seed in the corpus folder, replaced atomically. Programs in it are read like any other file:
validated and checked, never executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from reducer.errors import InputError
from reducer.hunt.finds import Find
from reducer.ir.check import check
from reducer.ir.codec import decode_program, encode_program
from reducer.ir.order import size
from reducer.oracle.cachedir import write_atomically

FORMAT = 1


class Pending(msgspec.Struct, frozen=True):
    """A find that still has to be confirmed or reduced."""

    program: msgspec.Raw
    signature: str
    family: str
    slug: str
    message: str
    strategy: str
    tier: Literal["program", "placement"]
    started_size: int
    first_seconds: float


class HuntState(msgspec.Struct, frozen=True):
    """`batch` is the next batch of the generator; `target` the text of the target, which must not change."""

    format: int
    seed: int
    batch: int
    target: str
    pending: tuple[Pending, ...]


def state_file(corpus: Path, seed: int) -> Path:
    """The state's file in a corpus folder."""
    return corpus / f".hunt-{seed}.json"


def latest_seed(corpus: Path) -> int | None:
    """Seed of the hunt that was last saved in a corpus, if there is one."""
    files = sorted(corpus.glob(".hunt-*.json"), key=lambda path: path.stat().st_mtime_ns)
    seeds = [path.stem.removeprefix(".hunt-") for path in files]
    numbers = [int(text) for text in seeds if text.lstrip("-").isdigit()]
    return numbers[-1] if numbers else None


def save_state(corpus: Path, *, seed: int, batch: int, target: str, pending: list[Find]) -> None:
    """Write the state. Raises OSError."""
    rows = tuple(
        Pending(
            program=msgspec.Raw(encode_program(find.program)),
            signature=find.signature,
            family=find.family,
            slug=find.slug,
            message=find.message,
            strategy=find.strategy,
            tier=find.tier,
            started_size=find.started_size,
            first_seconds=find.first_seconds,
        )
        for find in pending
    )
    state = HuntState(FORMAT, seed, batch, target, rows)
    write_atomically(state_file(corpus, seed), msgspec.json.encode(state))


def load_state(corpus: Path, seed: int) -> HuntState:
    """Read the state back.

    Raises:
        InputError: there is none, or it cannot be used.
    """
    path = state_file(corpus, seed)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=HuntState)
    except FileNotFoundError:
        raise InputError(f"no hunt with seed {seed} in {corpus}", hint="leave out --resume to start one") from None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path}: cannot be used: {error}", hint="delete it to start anew") from None
    if state.format > FORMAT:
        raise InputError(f"{path}: written by a newer scanshrink", hint="upgrade scanshrink, or delete the file")
    return state


def pending_finds(state: HuntState) -> list[Find]:
    """The state's finds, each checked.

    Raises:
        InputError, ProgramError: a program in it is damaged.
    """
    finds = []
    for row in state.pending:
        program = decode_program(bytes(row.program))
        check(program)
        finds.append(
            Find(
                signature=row.signature,
                family=row.family,
                slug=row.slug,
                start=program,
                program=program,
                message=row.message,
                strategy=row.strategy,
                tier=row.tier,
                started_size=row.started_size,
                first_seconds=row.first_seconds,
                size=size(program),
            )
        )
    return finds
