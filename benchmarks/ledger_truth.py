"""Where a program's buffers really lie, from the compiler's own buffer assignment: one process, a JSON object a line.

    {"text": ..., "topology": "v5e:2x2"}  ->  {"host": [["f32", [12, 8, 128], "18@49152"], ...]} or {"error": ...}

Shares nothing with `reducer.ledger`: it asks for the dump of the buffer assignment (``xla_dump_to``), and reads the
values of allocations of colour 5, which is host memory.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

_ALLOCATION = re.compile(r"allocation (\d+): size \d+(?:, color (\d+))?")
_VALUE = re.compile(r"^ value: .*\(size=\d+,offset=(\d+)\): ([a-z][a-z0-9]*)\[([0-9,]*)\]")
_HOST = "5"


def host_values(folder: Path) -> list[tuple[str, list[int], str]]:
    """Dtype, dimensions and place (allocation, offset) of every array the buffer assignment puts into host memory."""
    found = set()
    for path in folder.glob("*after_optimizations-buffer-assignment.txt"):
        colour, number = None, ""
        for line in path.read_text(errors="replace").splitlines():
            if head := _ALLOCATION.match(line):
                number, colour = head[1], head[2]
            elif colour == _HOST and (value := _VALUE.match(line)):
                dims = tuple(int(d) for d in value[3].split(",") if d)
                found.add((value[2], dims, f"{number}@{value[1]}"))
    return [(dtype, list(dims), place) for dtype, dims, place in sorted(found)]


def main() -> None:
    """Serve until standard input ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    from jax.experimental import topologies

    for line in sys.stdin:
        job = json.loads(line)
        devices = topologies.get_topology_desc(platform="tpu", topology_name=job["topology"]).devices
        with tempfile.TemporaryDirectory() as folder:
            try:
                names: dict[str, object] = {}
                exec(compile(job["text"], "<program>", "exec"), names)
                lowered = names["lower"](devices)  # type: ignore[operator]
                options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_pass_re": ""}
                lowered.compile(compiler_options=options)
                answer: dict[str, object] = {"host": host_values(Path(folder))}
                if not list(Path(folder).glob("*buffer-assignment.txt")):
                    answer = {"error": "no buffer assignment was dumped"}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
