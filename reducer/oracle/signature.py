"""The identity of a failure: what stays while a program shrinks, and the coarser family that survives a rewording.

A signature is the status code (or signal), the compiler phase, and the violated invariant with everything taken out
that belongs to the program: instruction names, shapes, layouts, dtypes, numbers, metadata, source locations. Memory
spaces stay (``S(5)`` is host memory, 0 the device's), since which way a value went wrong is the bug; for the same
reason a slice that is read is told from one that is written. A crash adds the file and line of its CHECK.

All of it is one pass of bounded, non-backtracking scans over at most `MESSAGE_CAP` characters.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from reducer.oracle.families import FAMILIES, FAMILY_FALLBACK_WORDS
from reducer.oracle.invariant import first_paragraph, normalise, opcode
from reducer.oracle.outcome import MESSAGE_CAP, Crashed, Outcome, Rejected, TimedOut

TEXT_LIMIT = 240
SLUG_LIMIT = 48
TIMED_OUT = "timed-out"
LOST_OFFLOAD = "lost-offload"
PAIR_DIFFERS, OFFLOAD_COSTS, SLOW_COMPILE, FLAKY = "pair-differs", "offload-costs", "slow-compile", "flaky"
#: Codes of what is no error of the compiler's, each a family of its own.
OURS = frozenset({LOST_OFFLOAD, PAIR_DIFFERS, OFFLOAD_COSTS, SLOW_COMPILE, FLAKY})

_CODES = (
    "CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED UNAUTHENTICATED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS"
)
#: The status codes of the compiler's errors.
CODES = tuple(_CODES.split())
_CODE = re.compile(rf"\s*({'|'.join(CODES)}): ?")
_PHASE = re.compile(r"during context \[([^\]\n]{1,80})\]: ?")
_CHECK = re.compile(r"\s*(?:[\w./+-]{0,300}/)?([\w.+-]{1,100}\.(?:cc|cpp|h|inc)):(\d{1,9})\] ?")
_STACK_REPORT = re.compile(r"\s*\*\*\* |\s*Fatal Python error")
_FRAME = re.compile(r"^ *(?:PC: )?@ (.{1,200})$", re.MULTILINE)
_OFFSETS = re.compile(r"(?:in |< )?libtpu\+0x[0-9a-f]+")
_HANDLER = re.compile(r"^\(unknown\)|^\.\.\.")
_STACK_OVERFLOW = re.compile(r"\s*\*\*\* SIG\w+ STACK OVERFLOW")
_CRASH_WORDS = re.compile(r"Check failed:.{1,2000}|LLVM ERROR:.{1,2000}|terminate called.{1,2000}")
_USER_ERROR = re.compile(r"\bE1200\b|layout for this output is not set to host memory")
_READS = ("dynamic-slice", "dynamic-slice-start", "slice", "slice-start")
_READ = " (read)"
_OUT_OF_MEMORY = re.compile(r"Ran out of memory|Exceeded \w+ capacity|CompileTime\w*Oom")


class Signature(msgspec.Struct, frozen=True):
    """A failure's identity; equal values are one bug as far as the compiler's words tell.

    `code` is a status code, a signal, "timed-out", or of a program that compiles what is wrong with it; `phase` where
    it happened ("" where the message does not say); `where` is ``file.cc:line`` of a failed CHECK;
    `invariant` what was violated, program-specific parts removed.
    """

    code: str
    phase: str = ""
    where: str = ""
    invariant: str = ""

    @property
    def text(self) -> str:
        """The signature as one line of at most `TEXT_LIMIT` characters, stable from run to run."""
        phase = f"[{self.phase}]" if self.phase else ""
        return _shorten(" ".join(part for part in (self.code, phase, self.where, self.invariant) if part), TEXT_LIMIT)

    @property
    def family(self) -> str:
        """A coarser key that releases, rewording, do not change: a name of `families.FAMILIES`, or the first words."""
        if self.code in OURS:
            return self.code
        whole = f"{self.where} {self.invariant}"
        for name, pattern in FAMILIES:
            if pattern.search(whole):
                return name
        file = self.where.partition(":")[0]
        stable = _OFFSETS.sub("", self.invariant)
        words = re.findall(r"[A-Za-z][A-Za-z_-]+", stable)[:FAMILY_FALLBACK_WORDS]
        return _slug(" ".join([self.code, self.phase if self.phase == "lowering" else "", file, *words]), 80)

    @property
    def slug(self) -> str:
        """A short word fit for a file name, for people; not an identity."""
        return _slug(self.family, SLUG_LIMIT)

    def __str__(self) -> str:
        return self.text


def signature(outcome: Outcome) -> Signature | None:
    """Return the outcome's signature; None for what is no failure: `Compiled`, `Invalid`, `Incompatible`.

    A user's error or a program too large has one too; `is_user_error` and `is_out_of_memory` tell them apart.
    """
    if isinstance(outcome, TimedOut):
        return Signature(TIMED_OUT, phase=_lowering(outcome))
    if isinstance(outcome, Rejected):
        return _of_rejection(outcome.message[:MESSAGE_CAP])
    if isinstance(outcome, Crashed):
        return _of_crash(outcome)
    return None


def is_user_error(outcome: Outcome) -> bool:
    """Whether a failure is the program's own fault, and so never a finding.

    That is a program whose offloaded result is not declared to live on the host (XLA's error E1200 and its
    words before there were codes; of a program that returns nothing from there `verdict` knows better), and whatever
    happened before the compiler was reached.
    """
    if isinstance(outcome, Crashed | TimedOut):
        return outcome.phase == "lower"
    return isinstance(outcome, Rejected) and _USER_ERROR.search(outcome.message[:MESSAGE_CAP]) is not None


def is_out_of_memory(outcome: Outcome) -> bool:
    """Whether the compiler found the program too large for the chip: never a finding."""
    if not isinstance(outcome, Rejected):
        return False
    head = outcome.message[:MESSAGE_CAP]
    return head.lstrip().startswith("RESOURCE_EXHAUSTED") or _OUT_OF_MEMORY.search(head) is not None


def is_finding(outcome: Outcome) -> bool:
    """Whether an outcome, once confirmed, counts as a failure of the compiler's."""
    return signature(outcome) is not None and not is_user_error(outcome) and not is_out_of_memory(outcome)


def _of_rejection(message: str) -> Signature:
    code = _CODE.match(message)
    rest = message[code.end() :] if code else message
    phase = _PHASE.match(rest)
    if phase:
        rest = rest[phase.end() :]
    # Reading a slice of a host array and writing one are compiled by different code; some releases refuse both in
    # the same words, and name the instruction only in the list of what they were compiling.
    read = _READ if opcode(rest) in _READS else ""
    said = _shorten(normalise(first_paragraph(rest)), TEXT_LIMIT - len(read)) or "(no message)"
    return Signature(
        code=code[1] if code else "ERROR",
        phase=phase[1] if phase else "",
        invariant=said + read,
    )


def _of_crash(outcome: Crashed) -> Signature:
    message = outcome.message[:MESSAGE_CAP]
    if outcome.signal == "memory-cap":
        return Signature(outcome.signal, phase=_lowering(outcome))
    check = _CHECK.match(message)
    if check:
        return Signature(
            code=outcome.signal,
            phase=_lowering(outcome),
            where=f"{check[1]}:{check[2]}",
            invariant=_shorten(normalise(first_paragraph(message[check.end() :])), TEXT_LIMIT),
        )
    # Plain log lines need not be about the crash; a stack report and a few well-known words are.
    said = _frames(message) if _STACK_REPORT.match(message) else _crash_words(message)
    return Signature(code=outcome.signal, phase=_lowering(outcome), invariant=_shorten(said, TEXT_LIMIT))


def _frames(message: str) -> str:
    """Return the two innermost frames that mean something: a function's name, or an offset into this libtpu.

    Where a stack runs out is chance; of an overflow the frame is told that the recursion goes through most often.
    """
    frames = [frame for frame in _FRAME.findall(message) if not _HANDLER.search(frame)]
    if frames and _STACK_OVERFLOW.match(message):
        counts = Counter(frames)
        # The report is cut anywhere in the cycle, so counts of equally frequent frames differ by one.
        often = max(max(counts.values()) - 1, 2)
        cycle = [frame for frame in counts if counts[frame] >= often]
        return f"stack overflow in {min(cycle)}" if cycle else "stack overflow"
    return f"in {' < '.join(frames[:2])}" if frames else ""


def _crash_words(message: str) -> str:
    found = _CRASH_WORDS.search(message)
    return normalise(found[0]) if found else ""


def _lowering(outcome: Crashed | TimedOut) -> str:
    return "lowering" if outcome.phase == "lower" else ""


def _shorten(text: str, limit: int) -> str:
    """Cut at a word's end, without a mark: the same text must come out of every longer one that begins with it."""
    if len(text) <= limit:
        return text
    cut = text[:limit]
    return cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut


def _slug(text: str, limit: int) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return slug[:limit].rstrip("-") or "failure"
