"""The memory ledger in words: what a line says, where a buffer lies."""

from __future__ import annotations

from typing import Any

from reducer.ledger.buffers import HOST, hlo_dtype
from reducer.ledger.judge import Ledger, Line

_SPACES = {0: "HBM", 1: "VMEM", HOST: "host"}


def space_name(space: int) -> str:
    """A memory space of the compiler's by its name."""
    return _SPACES.get(space, f"memory space {space}")


def shape_text(line: Line) -> str:
    """The stack's global shape as HLO prints it: ``f32[4,3,8,128]``."""
    return f"{hlo_dtype(line.stack.dtype)}[{','.join(map(str, line.stack.shape))}]"


def place_text(line: Line) -> str:
    """Where buffers of the stack's shape lie, or what became of it."""
    alike = f" (one of {line.alike} alike)" if line.alike > 1 else ""
    if line.alike > 1 and line.standing == "undecided":
        return f"not told apart{alike}"
    if line.standing == "kept":
        # Buffers of its shape on the device are other values, or the part being computed.
        return "host" if HOST in line.spaces else "host, in another shape"
    if line.spaces:
        where = " and ".join(map(space_name, line.spaces))
        return where + (", slices on the host" if line.standing == "lost" and line.slice_on_host else "") + alike
    return "no buffer of its shape"


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


def totals(ledger: Ledger) -> dict[str, int]:
    """Owed bytes over all devices: in all, and by how the stacks stand."""
    by: dict[str, int] = {"owed": 0, "kept": 0, "lost": 0, "undecided": 0}
    for line in ledger.lines:
        by["owed"] += line.owed
        by[line.standing] += line.owed
    return by


def ledger_json(ledger: Ledger) -> dict[str, Any]:
    """The ledger as machines read it: bytes are over all devices, a shape is the global one."""
    return {
        "partitions": ledger.partitions,
        "reason": ledger.reason or None,
        "totals": totals(ledger),
        "stacks": [
            {
                "name": line.stack.name,
                "dtype": line.stack.dtype,
                "shape": line.stack.shape,
                "loops": line.stack.loops,
                "where": line.stack.where,
                "owed": line.owed,
                "standing": line.standing,
                "spaces": [space_name(space) for space in line.spaces],
                "slice_on_host": line.slice_on_host,
                "invariant": line.stack.invariant,
                "output": line.stack.output,
            }
            for line in ledger.lines
        ],
    }
