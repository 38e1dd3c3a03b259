"""A smaller program that a certificate found: what failed the same although the reduction did not ask about it.

Where the start places something in host memory, candidates that place nothing there are not compiled
(`reducer.shrink.programs`); certificates ask about them too. If one fails the same, the minimum is
none, and that one is written to a file that can be reduced by itself: of a start that places nothing in host memory
nothing is left out.
"""

from __future__ import annotations

from reducer.corpus.atomic import storing
from reducer.corpus.case import Case, Tier
from reducer.evidence import failing_neighbour
from reducer.files import write_file
from reducer.reduction.context import Run
from reducer.reduction.descent import level_of


def save_smaller(run: Run, evident: Case) -> dict[Tier, str]:
    """The file of the first smaller neighbour that fails the same, by tier; the stages of these are not minimal.

    `evident` is the case with the certificates of the stages' minima.

    Raises:
        StorageError: the corpus cannot be written.
    """
    files: dict[Tier, str] = {}
    for tier, stage in run.stages.items():
        made = evident.tiers[tier].certificate
        found = failing_neighbour(made, stage.best, evident.signature) if made is not None else None
        if found is None:
            continue
        stage.minimal = False
        level = level_of(found)
        name, data = level.file(found)
        folder = run.request.out / f"_smaller-{level.key(found)[:12]}"
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_file(folder / name, data)
        files[tier] = str(folder / name)
    return files
