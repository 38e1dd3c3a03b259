"""`repro.py`: a failure as one file that needs JAX and libtpu, and nothing of ours.

The file compiles the program in a process of its own (the compiler may take that down), says which libtpu it really
loaded, and compares what happened with what was recorded for that libtpu. It judges by a status, a phase and a few
literal pieces of the message: enough to tell one failure from another, and short enough to be read.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reducer.ir.equations import Program
from reducer.lowering.emit import Text, emit_text
from reducer.lowering.script_judge import JUDGE
from reducer.lowering.script_parts import HEAD, MODULE, RUN
from reducer.lowering.texts import quote

Outcome = Literal["compiled", "rejected", "crashed", "timed-out"]

#: What stands in a normalised invariant for a part of the program: a shape, a name, a number, a dtype.
_MARK: Final = re.compile(r'\[(?:S\(\d+\))?\]|"%"|[%#]|(?<![\w.])T(?![\w.])')
_MOST_FRAGMENTS: Final = 4


@dataclass(frozen=True, slots=True)
class Recorded:
    """What happened on one libtpu.

    Args:
        outcome: the compiler's answer.
        status: status code (``INTERNAL``) of a rejection, signal (``SIGABRT``) of a crash.
        phase: what stands in ``during context [...]``, or "".
        fragments: literal pieces of the message, all of which must appear; see `fragments_of`.
        libtpu: its release, "" if unknown.
        sha256: of the library, in hex, "" if unknown.
        host_temp: bytes of host memory of a compiled program, where these are the finding.
        lost: shapes as the compiled program's text prints them (``f32[4,3,8,128]``), where the finding is that they
            lie in device memory alone (an offload that was lost).
        carried: shapes, likewise, that a loop of the compiled program carries in device memory.
        beside: what happened to the program beside it, which means the same.
        costs: of two programs beside it the first one, with the offload, needs more device memory than the second.
        slower_than: compiling took longer than so many seconds.
        runs: it comes and goes: run it so often at most until this happens.
    """

    outcome: Outcome
    status: str = ""
    phase: str = ""
    fragments: tuple[str, ...] = ()
    libtpu: str = ""
    sha256: str = ""
    host_temp: int | None = None
    lost: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    beside: Recorded | None = None
    costs: bool = False
    slower_than: float | None = None
    runs: int = 1


def fragments_of(invariant: str, message: str) -> tuple[str, ...]:
    """The longest literal pieces of a normalised invariant that stand in the message it was made from.

    Args:
        invariant: the violated invariant, with marks for what belongs to the program.
        message: the compiler's message, or the log of a crash.

    Returns:
        At most four, in the order of the message; none if nothing telling is left.
    """
    said = " ".join(message.split())
    runs = [piece for run in _MARK.split(invariant) for piece in _pieces(run.split(), said)]
    telling = sorted({run for run in runs if len(re.sub(r"\W", "", run)) >= 8}, key=lambda run: (-len(run), run))
    return tuple(sorted(telling[:_MOST_FRAGMENTS], key=lambda run: (said.find(run), run)))


def _pieces(words: Sequence[str], said: str) -> Iterable[str]:
    """The words as the longest runs that stand in the message: normalising may have taken something out between."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and " ".join(words[start : end + 1]) in said:
            end += 1
        if end > start:
            yield " ".join(words[start:end]).strip(" (,;:")
        start = max(end, start + 1)


def repro_script(
    program: Program,
    found: Recorded,
    *,
    topology: str,
    options: Mapping[str, str | int | bool] | Iterable[tuple[str, str | int | bool]] = (),
    others: Sequence[Recorded] = (),
    signature: str = "",
    description: str = "",
    timeout: int = 600,
    beside: Sequence[Program] = (),
) -> str:
    """The text of a script that compiles a program and says whether what happens is what was recorded.

    Args:
        program: a checked program.
        found: what it was found with; expected of every libtpu that is not among the recorded ones.
        topology: name of the TPU topology to compile for, such as ``v5e:2x2``.
        options: compiler options.
        others: what was recorded of other libtpu releases.
        signature: the failure in one line, for people.
        description: what to say first, for people.
        timeout: seconds after which the compiler counts as hanging.
        beside: programs that are compared with it.

    Raises:
        ProgramError: a program cannot be written.
    """
    return _script(
        _together(emit_text(program), beside), found, topology, dict(options), others, signature, description, timeout
    )


def module_script(
    module: str,
    found: Recorded,
    *,
    topology: str,
    partitions: int = 1,
    replicas: int = 1,
    options: Mapping[str, str | int | bool] | Iterable[tuple[str, str | int | bool]] = (),
    others: Sequence[Recorded] = (),
    signature: str = "",
    description: str = "",
    timeout: int = 600,
) -> str:
    """As `repro_script`, for the text of a StableHLO module of so many partitions and replicas.

    JAX has no public function that compiles one; the script uses a private one, and says so.
    """
    plain = '"""' not in module and all(c.isprintable() or c in "\n\t" for c in module)
    literal = f'r"""\n{module.strip()}\n"""' if plain else repr(module)
    body = (
        f"MODULE = {literal}\nPARTITIONS, REPLICAS = {int(partitions)!r}, {int(replicas)!r}\n{MODULE}\n\nBESIDE = []\n"
    )
    text = Text("import jax\nimport numpy as np\n", body)
    return _script(text, found, topology, dict(options), others, signature, description, timeout)


def _script(
    text: Text,
    found: Recorded,
    topology: str,
    options: Mapping[str, str | int | bool],
    others: Sequence[Recorded],
    signature: str,
    description: str,
    timeout: int,
) -> str:
    shown = "".join(f"    {quote(name)}: {_literal(value)},\n" for name, value in sorted(options.items()))
    recorded = "".join(f"    {_record(one)},\n" for one in (found, *others))
    said = "\n\n".join(part.strip() for part in (description, signature) if part.strip())
    constants = (
        f"TOPOLOGY = {quote(topology)}\n"
        f"OPTIONS = {{{chr(10) + shown if shown else ''}}}\n"
        f"TIMEOUT = {int(timeout)!r}  # seconds\n"
        "# What happened where it was tried. The first is expected of any other libtpu.\n"
        f"RECORDED = [\n{recorded}]\n"
    )
    head = HEAD.replace("DESCRIPTION", _docstring(said or "A program the XLA:TPU compiler cannot compile."))
    return "\n".join((head, text.imports, constants, RUN, text.body, JUDGE))


def _together(text: Text, beside: Sequence[Program]) -> Text:
    """The text of a program with others after it, each in a function of its own that gives its ``lower``."""
    imports, body = text.imports.splitlines(), text.body
    for number, other in enumerate(beside, 1):
        more = emit_text(other)
        imports += [line for line in more.imports.splitlines() if line not in imports]
        inner = textwrap.indent(more.body.strip(), "    ")
        body += f"\n\ndef beside_{number}():\n{inner}\n    return lower\n"
    names = ", ".join(f"beside_{number}" for number in range(1, len(beside) + 1))
    return Text("\n".join(imports) + "\n", f"{body}\n\nBESIDE = [{names}]\n")


def _literal(value: object) -> str:
    return quote(value) if isinstance(value, str) else repr(value)


def _record(one: Recorded) -> str:
    fields = {name: getattr(one, name) for name in ("libtpu", "sha256", "outcome", "status", "phase")}
    parts = [f"{quote(name)}: {quote(value)}" for name, value in fields.items() if value]
    if one.fragments:
        parts.append(f'"fragments": [{", ".join(map(quote, one.fragments))}]')
    if one.lost:
        parts.append(f'"lost": [{", ".join(map(quote, one.lost))}]')
    if one.beside is not None:
        parts.append(f'"beside": {_record(one.beside)}'.replace("\n", "\n    "))
    if one.costs:
        parts.append('"costs": True')
    if one.slower_than is not None:
        parts.append(f'"slower_than": {float(one.slower_than)!r}')
    if one.runs > 1:
        parts.append(f'"runs": {int(one.runs)!r}')
    if one.carried:
        parts.append(f'"carried": [{", ".join(map(quote, one.carried))}]')
    if one.host_temp is not None:
        parts.append(f'"host_temp": {int(one.host_temp)!r}')
    lines = "".join(f"        {part},\n" for part in parts)
    return f"{{\n{lines}    }}"


def _docstring(text: str) -> str:
    """Text that stands in a docstring and cannot end it."""
    shown = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"' if '"""' in shown or shown.endswith('"') else '"')
