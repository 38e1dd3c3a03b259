"""The memory ledger in words: what a line says, where a buffer lies."""

from __future__ import annotations

from reducer.ledger.buffers import HOST, hlo_dtype
from reducer.ledger.judge import Ledger, Line

_SPACES = {0: "HBM", 1: "VMEM", HOST: "host"}


def shape_text(line: Line) -> str:
    """The stack's global shape as HLO prints it: ``f32[4,3,8,128]``."""
    return f"{hlo_dtype(line.stack.dtype)}[{','.join(map(str, line.stack.shape))}]"


def place_text(line: Line) -> str:
    """Where buffers of the stack's shape lie, or what became of it."""
    if line.spaces:
        where = " and ".join(_SPACES.get(space, f"memory space {space}") for space in line.spaces)
        return where + (", slices on the host" if line.standing == "lost" and line.slice_on_host else "")
    return "host, in another shape" if line.standing == "kept" else "no buffer of its shape"


def bytes_text(ledger: Ledger, line: Line) -> str:
    """Owed bytes per device: a range where the compiler chooses the sharding."""
    if ledger.partitions == 1:
        return f"{line.owed} B"
    return f"{line.owed // ledger.partitions} to {line.owed} B"


def line_text(ledger: Ledger, line: Line) -> str:
    """One line of the ledger in one sentence."""
    stack = line.stack
    name = repr(stack.name) if stack.name else "a value"
    loops = f" over loops of {' x '.join(map(str, stack.loops))}" if stack.loops else ""
    owed = f"{name}, {shape_text(line)}{loops}, owes {bytes_text(ledger, line)} of host memory"
    return f"{owed}: {line.standing} ({place_text(line)})"


def ledger_text(ledger: Ledger) -> str:
    """The whole ledger, a line per stack; the reason where nothing was judged."""
    if ledger.reason:
        return f"not judged: {ledger.reason}"
    return "\n".join(line_text(ledger, line) for line in ledger.lines)
