"""Signatures on labelled failures of the real compiler: bugs merged, bugs split, and families across releases.

    python benchmarks/signatures.py --write

Needs no compiler; the failures and how they were labelled are in tests/oracle/labelled.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

import msgspec
from common import ROOT, publish, table

from reducer.oracle.outcome import Crashed, Outcome
from reducer.oracle.signature import Signature, signature

LABELLED = ROOT / "tests" / "oracle" / "labelled" / "failures.json"


class Failure(msgspec.Struct, frozen=True):
    """One labelled failure; tests/oracle/labelled/README.md says what the fields mean."""

    bug: str
    release: str
    program: str
    outcome: Outcome

    @property
    def signature(self) -> Signature:
        """The signature under test."""
        found = signature(self.outcome)
        assert found is not None, self
        return found


Pairs: TypeAlias = Iterable[tuple[str, str]]


def grouped(pairs: Pairs) -> dict[str, set[str]]:
    """The second elements by the first."""
    groups: dict[str, set[str]] = defaultdict(set)
    for first, second in pairs:
        groups[first].add(second)
    return groups


def merged(pairs: Pairs) -> list[tuple[str, str]]:
    """The pairs of bugs that share a key, of (bug, key) pairs."""
    bugs = grouped((key, bug) for bug, key in pairs)
    return sorted({pair for found in bugs.values() for pair in combinations(sorted(found), 2)})


def over_split(pairs: Pairs) -> float:
    """Keys beyond one per bug, divided by the number of bugs, of (bug, key) pairs."""
    keys = grouped(pairs)
    return sum(len(found) - 1 for found in keys.values()) / len(keys)


def row(name: str, failures: Sequence[Failure], *, families: bool = False) -> tuple[object, ...]:
    """One row of the table: counts and the two faults."""
    pairs = [(f.bug, f.signature.family if families else f.signature.text) for f in failures]
    crashes = sum(isinstance(f.outcome, Crashed) for f in failures)
    return (
        name,
        len(failures),
        crashes,
        len(grouped(pairs)),
        len({key for _, key in pairs}),
        len(merged(pairs)),
        f"{over_split(pairs):.0%}",
    )


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    options = parser.parse_args()
    failures = msgspec.json.decode(LABELLED.read_bytes(), type=list[Failure])
    releases = sorted({f.release for f in failures}, key=lambda name: [int(part) for part in name.split(".")])
    rows = [row(f"signatures, {name}", [f for f in failures if f.release == name]) for name in releases]
    rows.append(row("families, all releases", failures, families=True))
    shared = {
        family: bugs for family, bugs in grouped((f.signature.family, f.bug) for f in failures).items() if len(bugs) > 1
    }
    pairs = [(f"{f.release} {f.bug}", f"{f.release} {f.signature.text}") for f in failures]
    strict = [(f"{f.release} {f.signature.family}", f"{f.release} {f.signature.text}") for f in failures]
    text = (
        "## Signatures on labelled failures\n\n"
        f"{len(failures)} failures of {len({f.bug for f in failures})} bugs, on {len(releases)} releases; "
        f"`{LABELLED.relative_to(ROOT).parent}/README.md` says how they were labelled. Within the releases "
        f"{len(merged(pairs))} pairs of bugs are merged and {over_split(pairs):.1%} split (at most 0 and 10% are "
        f"wanted); {over_split(strict):.1%} are split if bugs of one family are counted as one.\n\n"
    )
    heads = ("", "failures", "of them crashes", "bugs", "distinct keys", "merged pairs", "over-splitting")
    text += table(heads, rows)
    for family, bugs in sorted(shared.items()):
        text += f"\n\nOne family on purpose: `{family}` holds {' and '.join(f'`{bug}`' for bug in sorted(bugs))}, "
        text += "between which a program goes back and forth from release to release."
    publish("signatures", text, write=options.write)


if __name__ == "__main__":
    main()
