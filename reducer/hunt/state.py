"""Where a hunt stopped, so that `--resume` goes on: the next batch of programs, and finds not yet shrunk.

One small file per seed and target in the corpus folder, replaced atomically. Programs in it are read like any other
file: validated and checked, never executed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from reducer.corpus.case import SLUG
from reducer.corpus.casefile import read_regular
from reducer.errors import InputError, ProgramError
from reducer.files import write_file
from reducer.hunt.finds import Find
from reducer.ir.check import check
from reducer.ir.codec import decode_program, encode_program
from reducer.ir.order import size
from reducer.ir.tiers import sort_of, tier_of
from reducer.oracle.target import Target
from reducer.oracle.verdict import Kind

FORMAT = 2
#: Largest state read, in bytes: thousands of pending finds.
SIZE_CAP = 64 << 20
_HINT = "delete it to start anew"


class Pending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A find that still has to be confirmed or shrunk; `case` is the name of its folder, if it was saved."""

    program: msgspec.Raw
    signature: str
    family: str
    slug: str
    message: str
    strategy: str
    started_size: int
    first_seconds: float
    finds: int
    counted: int
    kind: Kind = "error"
    case: str = ""
    limit: float = 0.0


class HuntState(msgspec.Struct, frozen=True):
    """`batch` is the next batch of the generator; `target` the text of the target the hunt ran on."""

    format: int
    seed: int
    batch: int
    target: str
    pending: tuple[Pending, ...]


class _Header(msgspec.Struct):
    format: int


def state_file(corpus: Path, seed: int, target: Target) -> Path:
    """The state's file in a corpus folder; hunts of one seed on different targets do not share it."""
    digest = hashlib.sha256(str(target).encode()).hexdigest()[:8]
    return corpus / f".hunt-{seed}-{digest}.json"


def latest_seed(corpus: Path, target: Target) -> int | None:
    """Seed of the hunt on this target that was last saved in a corpus, if there is one."""
    found: list[tuple[int, int]] = []
    name = re.compile(r"\.hunt-(-?\d{1,20})-[0-9a-f]{8}\.json")
    try:
        for path in corpus.glob(".hunt-*.json"):
            match = name.fullmatch(path.name)
            if match and path == state_file(corpus, int(match[1]), target):
                found.append((path.stat().st_mtime_ns, int(match[1])))
    except OSError as error:
        raise InputError(f"cannot list {corpus}: {error.strerror or error}") from None
    return max(found)[1] if found else None


def save_state(corpus: Path, *, seed: int, batch: int, target: Target, pending: Sequence[Find]) -> None:
    """Write the state. Raises OSError."""
    rows = tuple(
        Pending(
            program=msgspec.Raw(encode_program(find.program)),
            signature=find.signature,
            family=find.family,
            slug=find.slug,
            message=find.message,
            strategy=find.strategy,
            started_size=find.started_size,
            first_seconds=find.first_seconds,
            finds=find.finds,
            counted=find.counted,
            kind=find.kind,
            case=Path(find.case).name,
            limit=find.limit,
        )
        for find in pending
    )
    state = HuntState(FORMAT, seed, batch, str(target), rows)
    write_file(state_file(corpus, seed, target), msgspec.json.encode(state))


def load_state(corpus: Path, seed: int, target: Target) -> HuntState:
    """Read the state back.

    Raises:
        InputError: there is none, or it cannot be used.
    """
    path = state_file(corpus, seed, target)
    if not path.exists():
        raise InputError(f"no hunt with seed {seed} on {target} in {corpus}", hint="leave out --resume to start one")
    data = read_regular(path, cap=SIZE_CAP)
    try:
        if msgspec.json.decode(data, type=_Header).format > FORMAT:
            raise InputError(f"{path}: written by a newer scanshrink", hint=f"upgrade scanshrink, or {_HINT}")
        state = msgspec.json.decode(data, type=HuntState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be used: {error}", hint=_HINT) from None
    if state.seed != seed or state.target != str(target) or state.batch < 0:
        raise InputError(f"{path}: is not the state its name says", hint=_HINT)
    return state


def pending_finds(state: HuntState, corpus: Path) -> list[Find]:
    """The state's finds, each checked; `corpus` is where their cases lie.

    Raises:
        InputError: one of them is damaged.
    """
    return [_find(number, row, corpus) for number, row in enumerate(state.pending)]


def _find(number: int, row: Pending, corpus: Path) -> Find:
    try:
        program = decode_program(bytes(row.program))
        check(program)
    except (InputError, ProgramError) as error:
        raise InputError(f"the hunt's state: pending find {number}: {error.message}", hint=_HINT) from None
    sane = (
        row.signature
        and row.started_size >= 0
        and math.isfinite(row.first_seconds)
        and row.first_seconds >= 0
        and 0 <= row.counted <= row.finds
        and math.isfinite(row.limit)
        and row.limit >= 0
        and (not row.case or SLUG.fullmatch(row.case))
    )
    if not sane:
        raise InputError(f"the hunt's state: pending find {number} contradicts itself", hint=_HINT)
    return Find(
        signature=row.signature,
        kind=row.kind,
        limit=row.limit,
        family=row.family,
        slug=row.slug,
        start=program,
        program=program,
        message=row.message,
        strategy=row.strategy,
        tier=tier_of(program),
        sort=sort_of(program),
        started_size=row.started_size,
        first_seconds=row.first_seconds,
        finds=row.finds,
        counted=row.counted,
        size=size(program),
        case=str(corpus / row.case) if row.case and (corpus / row.case).is_dir() else "",
    )
