"""Shared by the reports: the template environment, and text made safe for where it goes.

A case may come from a stranger, and a compiler's message may hold anything: control characters never reach a
terminal, and nothing ends a Markdown code block or opens an HTML tag.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Final

import jinja2

from reducer.corpus.case import Case, TierMinimum
from reducer.ir.equations import Fill, Op, Program
from reducer.ir.walk import equations
from reducer.words import counted

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|!~&])")

#: Kinds of equations a sentence still lists; beyond it counts only.
_LISTED: Final = 8


@cache
def environment(*, html: bool) -> jinja2.Environment:
    """The templates of this package; for HTML every value is escaped, and a missing one is always an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("reducer.report"),
        autoescape=html,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(visible=visible, line=line, plain=plain, code=code, cell=cell, fence=fence, counted=counted)
    return made


def visible(text: str) -> str:
    r"""Control characters and direction overrides as escapes (``\x1b``); line ends and tabs stay."""
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda c: f"\\x{ord(c[0]):02x}" if ord(c[0]) < 256 else f"\\u{ord(c[0]):04x}", text)


def line(text: str, limit: int = 0) -> str:
    """One visible line, white space collapsed, at most `limit` characters if that is not 0."""
    text = " ".join(visible(text).split())
    return text if not limit or len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def plain(text: str) -> str:
    """One line of Markdown that shows `text` as it is."""
    return _MARKDOWN.sub(r"\\\1", line(text))


def code(text: str) -> str:
    """A Markdown code span of one line."""
    text = line(text) or " "
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def cell(text: str) -> str:
    """A code span fit for a table cell, where even inside a span a bar must be escaped."""
    return code(text).replace("|", "\\|") if text else ""


def fence(text: str, language: str = "") -> str:
    """A Markdown code block that `text` cannot end."""
    text = visible(text).rstrip("\n")
    ticks = "`" * max(_longest_run(text) + 1, 3)
    return f"{ticks}{language}\n{text}\n{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def equation_kinds(program: Program) -> tuple[str, ...]:
    """The equations of a program as words, in the order they stand: ``("scan", "scan", "tanh")``."""
    counted = (eqn for _, _, eqn in equations(program) if not isinstance(eqn, Fill))
    return tuple(eqn.primitive if isinstance(eqn, Op) else str(type(eqn).__struct_config__.tag) for eqn in counted)


def summary(minimum: TierMinimum) -> str:
    """``5 equations (2 scan, checkpoint, name, sin)``, or the number of operations of a module."""
    if minimum.program is None:
        return _count(minimum.size, "operation")
    kinds = Counter(equation_kinds(minimum.program))
    listed = ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in kinds.items())
    return _count(minimum.size, "equation") + (f" ({listed})" if 0 < len(kinds) <= _LISTED else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def target_text(case: Case) -> str:
    """``libtpu 0.0.52 (sha256 ab12...), v5e:2x2, option=value``."""
    target = case.target
    options = "".join(f", {name}={value}" for name, value in sorted(target.options.items()))
    return f"libtpu {target.libtpu} (sha256 {target.sha256[:12]}), {target.topology}{options}"
