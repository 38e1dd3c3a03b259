"""JSON laid out for a reader: what fits on a line stays on one line, everything else is spread out.

`msgspec.json.format` puts every element on a line of its own, which makes a five-equation program two hundred lines
long and a diff of two cases unreadable.
"""

from __future__ import annotations

import json
import re
from typing import Any

WIDTH = 110
_STEP = 1
_SURROGATE = re.compile("[\ud800-\udfff]")


def lay_out(value: Any, *, width: int = WIDTH) -> bytes:
    """Return JSON of `value` (dicts, lists, scalars), UTF-8 with a final newline. Equal values, equal bytes.

    Raises:
        ValueError: a float that JSON has no form for.
    """
    lines: list[str] = []
    _lay_out(value, "", 0, "", lines, width)
    # Half of a surrogate pair (an undecodable byte of a compiler's message) has no UTF-8: it stays readable as text.
    text = _SURROGATE.sub(lambda half: f"\\\\u{ord(half[0]):04x}", "\n".join(lines))
    return f"{text}\n".encode()


def _lay_out(value: Any, label: str, indent: int, end: str, lines: list[str], width: int) -> None:
    margin = " " * indent
    compact = json.dumps(value, ensure_ascii=False, allow_nan=False)
    fits = indent + len(label) + len(compact) + len(end) <= width
    if fits or not value or not isinstance(value, dict | list | tuple):
        lines.append(f"{margin}{label}{compact}{end}")
        return
    if isinstance(value, dict):
        items = [(f"{json.dumps(str(name), ensure_ascii=False)}: ", item) for name, item in value.items()]
        brackets = "{}"
    else:
        items = [("", item) for item in value]
        brackets = "[]"
    lines.append(f"{margin}{label}{brackets[0]}")
    for i, (name, item) in enumerate(items):
        _lay_out(item, name, indent + _STEP, "," if i + 1 < len(items) else "", lines, width)
    lines.append(f"{margin}{brackets[1]}{end}")
