"""One corpus entry as a value: a minimal failing program, what it does on which compiler, how it was found.

A `Case` is immutable and holds no path of the machine it was made on. `casefile` reads and writes it, `store` keeps
it in a folder. Nothing here compiles, executes or imports JAX.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

import msgspec

from reducer.corpus.proof import Certificate, Equivalence, Explanation, Part, Word
from reducer.ir.equations import Program
from reducer.oracle.outcome import Answer, Compiled, Memory, Skipped, clip, message_of, word
from reducer.oracle.target import OptionValue, Target, options_with_files, release_order

#: Rises whenever an older scanshrink could not read a newer file, or would lose something by rewriting it.
FORMAT: Final = 1

Tier: TypeAlias = Literal["program", "placement", "stablehlo"]
TIERS: Final[tuple[Tier, ...]] = ("program", "placement", "stablehlo")
"""From the author's view down to the compiler's; a case is known by the first tier it has."""

Kind: TypeAlias = Literal[
    "error",
    "lost-offload",
    "offload-costs",
    "nothing-to-offload",
    "pair-differs",
    "slow-compile",
    "flaky",
]
"""What sort of failure a case holds. ``error``: the compiler rejects, crashes or hangs."""

MESSAGE_CAP: Final = 4096
"""Longest compiler message a case keeps, in characters."""

SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
_FRAMES: Final = "Suspected Python Code Location:"
_FOLDERS: Final = re.compile(r"""(?<![^\s"'(=<,\[])/(?:[^\s"'<>:()\[\],/]+/)+""")
_READABLE_CAP: Final = 56
_HASH_DIGITS: Final = 8


class CaseTarget(Part, frozen=True, kw_only=True):
    """The target a case was found and reduced on: libtpu release, sha256 (hex) of its file, topology, options."""

    libtpu: str
    sha256: str
    topology: str
    options: dict[str, OptionValue] = {}

    @classmethod
    def of(cls, target: Target) -> CaseTarget:
        """What a case keeps of a target. Of a libtpu given as a path, the file name: paths are private.

        Options that have files written stay with the user who gave them.
        """
        files = options_with_files(name for name, _ in target.options)
        return cls(
            libtpu=release_name(target.libtpu),
            sha256=target.sha256,
            topology=target.topology,
            options={name: value for name, value in target.options if name not in files},
        )


class OutcomeRecord(Part, frozen=True, kw_only=True):
    """What happened to a case's minimum on one libtpu file and topology, under one jaxlib.

    `signature` and `family` are empty unless it failed; `message` is the compiler's text without paths of the machine
    it ran on, cut to `MESSAGE_CAP`. Of a lost offload, `lost` are the shapes, as HLO prints them, that lie in device
    memory alone, and `carried` those that a loop carries there. Of a slow compile, `slow_limit` are the seconds that it
    was expected to take less than. Of a flaky failure, `rates` are the share of each signature or outcome.
    """

    libtpu: str
    sha256: str
    topology: str
    outcome: Word
    signature: str = ""
    family: str = ""
    message: str = ""
    memory: Memory | None = None
    jaxlib: str = ""
    lost: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    slow_limit: float | None = None
    rates: dict[str, float] = {}

    @classmethod
    def of(
        cls, target: Target, answer: Answer, *, signature: str = "", family: str = "", jaxlib: str = ""
    ) -> OutcomeRecord:
        """Record `answer`, which must be an outcome, as seen on `target`."""
        assert not isinstance(answer, Skipped), answer
        return cls(
            libtpu=release_name(target.libtpu),
            sha256=target.sha256,
            topology=target.topology,
            outcome=msgspec.convert(word(answer), Word),
            signature=signature,
            family=family,
            message=clip(without_paths(message_of(answer)), MESSAGE_CAP),
            memory=answer.memory if isinstance(answer, Compiled) else None,
            jaxlib=jaxlib,
        )

    @property
    def where(self) -> tuple[str, str]:
        """The libtpu file and topology: one record is kept for each."""
        return self.sha256, self.topology


class Found(Part, frozen=True, kw_only=True):
    """How a case was found.

    `seconds` from the start of the hunt to the first failure; `started_size` in equations (or operations);
    `compiles_to_minimum` counts unique compiles of the reduction; `date` is ISO 8601, or empty.
    """

    strategy: str
    seed: int | None = None
    seconds: float | None = None
    started_size: int | None = None
    compiles_to_minimum: int | None = None
    date: str = ""


class TierMinimum(Part, frozen=True, kw_only=True):
    """The smallest form of a failure at one tier.

    An IR tier holds its `program`; the StableHLO tier holds the file name of its `module`. `size` is in equations,
    nested ones included and `Fill` not counted, or in operations. `order_key` says which of two modules is smaller
    (programs have the IR's own order). `script` and `module` name files in the case's folder that belong to this
    tier alone, so that a smaller minimum replaces them with it.
    """

    size: int
    program: Program | None = None
    script: str = ""
    module: str = ""
    order_key: tuple[int, ...] = ()
    partitions: int = 1
    certificate: Certificate | None = None
    explanations: tuple[Explanation, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that belong to this tier."""
        return tuple(name for name in (self.script, self.module) if name)


class Start(Part, frozen=True, kw_only=True):
    """The find before reduction: its program, or the name of a file in the case's folder."""

    tier: Tier
    size: int
    program: Program | None = None
    file: str = ""


class Case(Part, frozen=True, kw_only=True, omit_defaults=False):
    """One distinct failure. Cases are distinct by kind, signature and tier (`key`).

    `outcomes` holds at most one record for each libtpu file and topology. `environment` is what a maintainer asks
    for: versions and variables that were in force. `finds` counts how often the failure was met.
    """

    slug: str
    kind: Kind
    signature: str
    family: str
    target: CaseTarget
    tiers: dict[Tier, TierMinimum]
    outcomes: tuple[OutcomeRecord, ...] = ()
    found: Found | None = None
    finds: int = 1
    equivalence: Equivalence | None = None
    environment: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    start: Start | None = None

    @property
    def tier(self) -> Tier:
        """The tier the case is known by: the highest one it has."""
        return next(tier for tier in TIERS if tier in self.tiers)

    @property
    def minimum(self) -> TierMinimum:
        """The minimum at `tier`."""
        return self.tiers[self.tier]

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two cases one: kind, signature, tier."""
        return self.kind, self.signature, self.tier

    def outcome_on(self, sha256: str, topology: str) -> OutcomeRecord | None:
        """The record for a libtpu file and topology, if there is one."""
        return next((r for r in self.outcomes if r.where == (sha256, topology)), None)

    def expected(self) -> OutcomeRecord | None:
        """The record for the case's own target."""
        return self.outcome_on(self.target.sha256, self.target.topology)

    def with_outcomes(self, *records: OutcomeRecord) -> Case:
        """The case with these records, each in place of an older one for the same libtpu file and topology."""
        merged: Mapping[tuple[str, str], OutcomeRecord] = {r.where: r for r in (*self.outcomes, *records)}
        return msgspec.structs.replace(self, outcomes=tuple(sorted(merged.values(), key=_by_release)))


def slug_for(readable: str, *, kind: str, signature: str, tier: str) -> str:
    """A folder name: words a person recognises, and a hash of the case's key that keeps it apart.

    The hash alone decides identity, so better words in a later release do not make a second case of one failure.
    """
    words = re.sub(r"[^a-z0-9]+", "-", readable.lower()).strip("-")
    if len(words) > _READABLE_CAP:
        words = words[:_READABLE_CAP].rsplit("-", 1)[0].strip("-")
    return f"{words or 'case'}-{key_digest(kind, signature, tier)}"


def key_digest(kind: str, signature: str, tier: str) -> str:
    """The part of a slug that stands for the case's key."""
    text = "\n".join((kind, tier, signature)).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest()[:_HASH_DIGITS]


def without_paths(message: str) -> str:
    """A compiler's message without the frames of whoever compiled, and without folders of their machine.

    Cases are shared, and these say nothing about the failure: the script prints its own.
    """
    return _FOLDERS.sub("", message.partition(_FRAMES)[0]).rstrip()


def release_name(libtpu: str) -> str:
    """A release as it is; of a path only the last part."""
    return PurePath(libtpu).name if "/" in libtpu else libtpu


def _by_release(record: OutcomeRecord) -> tuple[object, ...]:
    return release_order(record.libtpu), record.sha256, record.topology
