"""What a process wrote before it died: a capture of bounded size, and the fatal lines in it."""

from __future__ import annotations

import re
from collections import deque

from reducer.oracle.outcome import clip

_FATAL = re.compile(r"^F\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ |^F\d{4} \d\d:\d\d:\d+\.\d+ +\d+ ")
_AFTER_FATAL = re.compile(
    r"^\*\*\* (?:Check failure stack trace|SIG|Aborted|Begin)|^ {0,4}@ +0x|^[IWEF]\d{4} \d\d:\d\d:"
)
_SIGNAL_REPORT = re.compile(r"^\*\*\* SIG\w+|^Fatal Python error:|^terminate called|^\S+: .*Assertion ")
_PROCESS = re.compile(r" \(@(?:\(nil\)|[^)]*)\)|, see go/\S+| received by PID.*")
_FRAME = re.compile(r"^( *(?:PC: )?)@ +0x([0-9a-f]+) +(?:\(unknown\)|\d+)?(.*)$")
_NOISE = re.compile(r"^https://symbolize|^[IWEF]\d{4} \d\d:\d\d:")
_HANDLER_FRAMES = 2
_FATAL_LINES = 40
_TAIL = 2000


class Capture:
    """The first and the last bytes of a stream: what a flood leaves of it is at most `head + tail` bytes."""

    def __init__(self, head: int = 16 * 1024, tail: int = 64 * 1024) -> None:
        self._head_room = head
        self._tail_room = tail
        self.clear()

    def add(self, data: bytes) -> None:
        """Append `data`, dropping the oldest of the tail for it."""
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size > self._tail_room and len(self._tail) > 1:
            gone = self._tail.popleft()
            self._tail_size -= len(gone)
            self.dropped += len(gone)

    def clear(self) -> None:
        """Forget everything."""
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def text(self) -> str:
        """Return what is left, undecodable bytes escaped, and a mark where some was dropped."""
        mark = f"\n... [{self.dropped} bytes left out] ...\n".encode() if self.dropped else b""
        return (bytes(self._head) + mark + b"".join(self._tail)).decode("utf-8", "backslashreplace")


def fatal_message(log: str, mapped: tuple[int, int] = (0, 0)) -> str:
    """Return the last fatal log line with the lines that belong to it, without its time and thread.

    ``F1130 13:07:47.123 3663 host_offload_utils.cc:225] Check failed: ...`` gives
    ``host_offload_utils.cc:225] Check failed: ...``. A log without one gives the report of a signal handler (see
    `stack_report`), or else its last lines; an empty log gives "". `mapped` is where libtpu lay in memory.
    """
    lines = log.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if match := _FATAL.match(lines[index]):
            kept = [lines[index][match.end() :]]
            for line in lines[index + 1 : index + _FATAL_LINES]:
                if _AFTER_FATAL.match(line):
                    break
                kept.append(line)
            return clip("\n".join(kept).strip())
    for index in range(len(lines) - 1, -1, -1):
        if _SIGNAL_REPORT.match(lines[index]):
            return clip(stack_report(lines[index : index + _FATAL_LINES], mapped))
    return log.strip()[-_TAIL:]


def stack_report(lines: list[str], mapped: tuple[int, int] = (0, 0)) -> str:
    """Return a signal handler's report with addresses that mean the same in every process of one libtpu.

    ``PC: @ 0x7f4c894bbe16 (unknown)`` becomes ``PC: @ libtpu+0x12be16``; a frame with a name keeps the name alone.
    The handler's own two frames (itself, and the kernel's trampoline) are left out.
    """
    kept = [_PROCESS.sub("", lines[0]).strip()]
    frames = 0
    for line in lines[1:]:
        if match := _FRAME.match(line):
            frames += not match[1].strip()
            if match[1].strip() or frames > _HANDLER_FRAMES:
                kept.append(f"{match[1]}@ {_place(int(match[2], 16), match[3].strip(), mapped)}")
        elif not _NOISE.match(line):
            kept.append(line)
    return "\n".join(kept)


def _place(address: int, name: str, mapped: tuple[int, int]) -> str:
    if name not in ("", "(unknown)"):
        return name
    return f"libtpu+{address - mapped[0]:#x}" if mapped[0] <= address < mapped[1] else "(unknown)"
