"""What a hunt begins with and leaves behind: known failures, and the state that `--resume` goes on from.

Like `hunt`, it imports nothing heavy before it is called.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from reducer.cli.common import one_line, say

if TYPE_CHECKING:
    from reducer.hunt import Find
    from reducer.oracle.target import Target


def known(excluded: tuple[Path, ...]) -> frozenset[str]:
    """The signatures of these corpora.

    Raises:
        InputError: one is no folder.
    """
    from reducer.corpus import Case, Corpus, Damaged
    from reducer.errors import InputError

    found = set()
    for folder in excluded:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such corpus", hint="--exclude-known names a folder of cases")
        for entry in Corpus(folder):
            if isinstance(entry, Case):
                found.add(entry.signature)
            elif isinstance(entry, Damaged):
                say(f"warning: not excluded, as it is damaged: {one_line(entry.reason)}")
    return frozenset(found)


def begin(folder: Path, seed: int | None, *, resume: bool, target: Target) -> tuple[int, int, list[Find]]:
    """Seed, first batch, and finds left over.

    Raises:
        InputError: there is nothing to resume.
    """
    from reducer.errors import InputError
    from reducer.hunt.state import latest_seed, load_state, pending_finds

    if not resume:
        return (random.randrange(1 << 31) if seed is None else seed), 0, []
    last = latest_seed(folder, target) if seed is None else seed
    if last is None:
        raise InputError(
            f"no hunt on {target} to resume in {folder}",
            hint="give the --corpus, --libtpu, --topology and --option it had, or leave out --resume",
        )
    state = load_state(folder, last, target)
    return last, state.batch, pending_finds(state, folder)


def save(folder: Path, seed: int, batch: int, target: Target, pending: list[Find]) -> None:
    """Keep what a later hunt needs to go on.

    Raises:
        StorageError: the corpus cannot be written.
    """
    from reducer.errors import StorageError
    from reducer.hunt.state import save_state

    try:
        save_state(folder, seed=seed, batch=batch, target=target, pending=pending)
    except OSError as error:
        raise StorageError(
            f"cannot save the hunt's state in {folder}: {error.strerror or error}",
            hint="make room, or choose another --corpus",
        ) from None
