"""Takes out of a compiler message what belongs to the program, and leaves what belongs to the bug.

Marks left behind: ``[]`` a shape in the default memory, ``[S(5)]`` one in memory space 5, ``%`` an instruction's or
computation's name, ``#`` a number, ``T`` a dtype. Every regular expression here is linear: none nests repetition.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_DTYPE = r"(?:pred|token|opaque|bf16|[usfc]\d{1,3}(?:e\d{1,2}m\d{1,2}[a-z]*)?)"
_SHAPE = re.compile(rf"(?<!\w){_DTYPE}\[[^\[\]\n]{{0,400}}\](?:\{{[^{{}}\n]{{0,400}}\}})?")
_SPACE = re.compile(r"S\((\d{1,2})\)")
_DTYPE_WORD = re.compile(rf"(?<![\w.-])(?:{_DTYPE}|(?:b?float|u?int)\d{{1,3}}\w*)(?![\w-])")
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")
_LOCATIONS = re.compile(r"\n[ \t]*Suspected Python Code Location")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_INSTRUCTION = re.compile(r"(?:ROOT )?%[\w.-]+ = ")
_OPCODE = re.compile(r" ?([a-z][a-z-]{0,60})\(")
_COMPARED = (", actual shape is ", " vs ")
_ATTRIBUTES = re.compile(r",? ?\b(?:metadata|frontend_attributes|backend_config|sharding|origin)=(?=\{)")
_QUOTED_VALUE = re.compile(r'(?<=[a-z]=)"[^"]*"')
_QUOTED = re.compile(r'"[^"]*"')
_STARTING_FROM = re.compile(r"starting from [^()\n]{1,400}(?=\))")
_PERCENT_NAME = re.compile(r"%[^\W\d][\w.-]*")
_NUMBERED_NAME = re.compile(r"(?<![\w.-])[^\W\d][\w-]*(?:\.[\w-]+)+")
_NAMED = re.compile(
    r"\b([Ii]nstruction|[Cc]omputation) "
    r"(?!(?:to|has|have|is|in|with|must|that|whose|which|cannot|should|does|not|and|or|of|on|at|during|for|from|was|"
    r"did|but|because|when|while|since|as|by|if|it|this|where|expected|shape|count|name|operand)\b)([A-Za-z_][\w.-]*)"
)
_FILE_LINE = re.compile(r"(?<![\w./+-])([\w./+-]{1,300}\.(?:cc|cpp|h|inc|py)):(\d{1,9})")
_SPACE_WORD = re.compile(r"\b(output|operand|memory space|space) \((\d+)\)")
_ERROR_CODE = re.compile(r"\bE(\d{4})\b")
_NUMBER = re.compile(r"(?<!\w)-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
_NUMBER_LIST = re.compile(r"#(?:, ?#)+")
_NAME_LIST = re.compile(r"%(?:, ?%)+")

# Private-use characters stand for what must survive the removal of numbers and brackets.
_DEVICE = "\ue000"
_SPACE_BASE = 0xE001
_DIGIT_BASE = 0xE100
_TUPLE = frozenset("(), " + _DEVICE + "".join(chr(_SPACE_BASE + n) for n in range(100)))
_LEAVES = _TUPLE - frozenset("(), ")
_TUPLE_DEPTH = 6
_PRIVATE = re.compile("[\ue000-\uf8ff]")


def first_paragraph(text: str) -> str:
    """Return the message up to its first blank line or list of code locations: what was violated.

    What follows says where in the program ("Error encountered while compiling ...").
    """
    text = text.lstrip()
    ends = [match.start() for pattern in (_LOCATIONS, _BLANK_LINE) if (match := pattern.search(text))]
    return text[: min(ends)] if ends else text


def opcode(text: str) -> str:
    """Return the opcode of the first instruction printed in `text` (``%name = shape opcode(...)``); "" without one."""
    named = _INSTRUCTION.search(text)
    if named is None:
        return ""
    start = named.end()
    shape = _SHAPE.match(text, start)
    if shape is None and not text.startswith("(", start):
        return ""
    found = _OPCODE.match(text, shape.end() if shape else _skip_balanced(text, start))
    return found[1] if found else ""


def normalise(text: str) -> str:
    """Return `text` on one line with names, shapes, dtypes, numbers and dumped instructions replaced by marks.

    Of two compared shapes that differ in more than their memory it is said in what, since that is another bug.
    """
    text = _PRIVATE.sub("?", text)
    # A whole instruction may stand in quotes, so the quotes within it have to go first.
    text = _QUOTED_VALUE.sub("%", _without_attributes(_INDEX_COMMENT.sub("", text)))
    text = _without_instructions(_QUOTED.sub('"%"', text))
    difference = _difference(text)
    text = _SHAPE.sub(_shape_mark, text)
    text = _without_tuples(text)
    text = _STARTING_FROM.sub("starting from %", text)
    text = _PERCENT_NAME.sub("%", text)
    text = _FILE_LINE.sub(lambda match: f"{match[1].rpartition('/')[2]}:{_kept(match[2])}", text)
    text = _NUMBERED_NAME.sub(_name_mark, text)
    text = _NAMED.sub(r"\1 %", text)
    if "space" in text:  # else "output (512)" is a size
        text = _SPACE_WORD.sub(lambda match: f"{match[1]} ({_kept(match[2])})", text)
    text = _ERROR_CODE.sub(lambda match: f"E{_kept(match[1])}", text)
    text = _DTYPE_WORD.sub("T", text)
    text = _NUMBER.sub("#", text)
    text = _NAME_LIST.sub("%", _NUMBER_LIST.sub("#", text))
    return " ".join(_PRIVATE.sub(_restored, text).split()).strip(" :") + difference


def _difference(text: str) -> str:
    """Return in what two compared shapes differ besides their memory, as the end of a sentence; "" if in nothing."""
    for separator in _COMPARED:
        left, found, right = text.partition(separator)
        if not found:
            continue
        expected, actual = ([_shape_parts(shape) for shape in _SHAPE.findall(side)] for side in (left, right))
        if len(expected) != len(actual):
            continue
        pairs = list(zip(expected, actual, strict=True))
        for part, what in enumerate(("another dtype", "other dimensions", "another layout")):
            # A printer may leave the layout out; that says nothing.
            if any(a[part] != b[part] and a[part] and b[part] for a, b in pairs):
                return f", of {what}"
    return ""


def _shape_parts(shape: str) -> tuple[str, str, str]:
    """Return a printed shape's dtype, dimensions in brackets, and layout in braces without its memory space."""
    dtype, _, rest = shape.partition("[")
    dimensions, _, layout = rest.partition("]")
    return dtype, f"[{dimensions}]", _SPACE.sub("", layout).strip("{}").rstrip(":")


def _kept(digits: str) -> str:
    return "".join(chr(_DIGIT_BASE + int(digit)) for digit in digits if digit.isascii())


def _restored(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code >= _DIGIT_BASE:
        return str(code - _DIGIT_BASE)
    return "[]" if match[0] == _DEVICE else f"[S({code - _SPACE_BASE})]"


def _shape_mark(match: re.Match[str]) -> str:
    space = _SPACE.search(match[0])
    return chr(_SPACE_BASE + int(space[1])) if space else _DEVICE


def _name_mark(match: re.Match[str]) -> str:
    # `lt.2` and `host-call.3.cloned.1` are instructions; `slice_calc.size` and `emitter.cc` are the compiler's own.
    return "%" if any(part.isdigit() for part in match[0].split(".")[1:]) else match[0]


def _skip_balanced(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at `start`, quotes respected; the end if none does."""
    depth = 0
    index = start
    while index < len(text):
        char = text[index]
        if char == '"':
            index = text.find('"', index + 1)
            if index < 0:
                return len(text)
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
            if depth <= 0:
                return index + 1
        index += 1
    return index


def _replaced(text: str, pattern: re.Pattern[str], end_of: Callable[[str, int], int], mark: str) -> str:
    parts = []
    position = 0
    while match := pattern.search(text, position):
        parts.append(text[position : match.start()] + mark)
        position = max(end_of(text, match.end()), match.end())
    return "".join(parts) + text[position:]


def _without_attributes(text: str) -> str:
    return _replaced(text, _ATTRIBUTES, _skip_balanced, "")


def _instruction_end(text: str, start: int) -> int:
    """Return where an instruction printed in a message ends: after its line's ``: ``, or at the line's end."""
    index = start
    while index < len(text):
        char = text[index]
        if char == "\n":
            return index
        if char == ":" and text[index + 1 : index + 2] == " ":
            return index + 2
        index = _skip_balanced(text, index) if char in "({[" else index + 1
    return index


def _without_instructions(text: str) -> str:
    return _replaced(text, _INSTRUCTION, _instruction_end, "")


def _without_tuples(text: str) -> str:
    """Reduce each tuple of shapes to what matters: of two compared ones the elements that differ, else its kinds."""
    spans: list[tuple[int, int, list[str]]] = []
    index = text.find("(")
    while index >= 0:
        end, leaves, comma = _tuple_at(text, index)
        if leaves and comma:
            spans.append((index, end, leaves))
        else:
            end = index + 1
        index = text.find("(", end)
    if not spans:
        return text
    marks = ["(" + ", ".join(sorted(set(leaves))) + ")" for _, _, leaves in spans]
    if len(spans) == 2 and len(spans[0][2]) == len(spans[1][2]):
        pairs = sorted({(a, b) for a, b in zip(spans[0][2], spans[1][2], strict=True) if a != b})
        if pairs:
            marks = [", ".join(pair[side] for pair in pairs) for side in (0, 1)]
    parts = []
    position = 0
    for (start, end, _), mark in zip(spans, marks, strict=True):
        parts.append(text[position:start] + mark)
        position = end
    return "".join(parts) + text[position:]


def _tuple_at(text: str, start: int) -> tuple[int, list[str], bool]:
    """Read a tuple that holds shapes only: its end, its shapes in order, whether it has a comma. No shapes if not."""
    depth = 0
    leaves: list[str] = []
    comma = False
    for index in range(start, len(text)):
        char = text[index]
        if char not in _TUPLE:
            break
        depth += (char == "(") - (char == ")")
        if depth > _TUPLE_DEPTH:
            break
        comma = comma or char == ","
        if char in _LEAVES:
            leaves.append(char)
        if depth == 0:
            return index + 1, leaves, comma
    return start + 1, [], False
