"""A function of ours in a process of its own, for what needs JAX, may crash, or runs a user's code.

Its module's ``main(argument)`` gets bytes and answers bytes. Whatever else the process prints is kept apart.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# The package's folder goes last, so that it hides nothing of the interpreter's; -P keeps the working folder out.
_BOOTSTRAP = "import sys; sys.path.append({root!r}); from reducer.aside import serve; serve({module!r}, {memory!r})"


@dataclass(frozen=True)
class Aside:
    """What came of it: `answer` is empty if the process ended before it had one. `log` is all it printed."""

    answer: bytes
    status: int
    log: str

    def ended(self) -> str:
        """How a process without an answer ended, in one line, with the last one it printed."""
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        how = f"was killed by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"
        return f"{how}: {lines[-1]}" if lines else how


def run_aside(
    module: str,
    argument: bytes,
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
    memory: int | None = None,
) -> Aside:
    """Import `module` in a new process and call its ``main(argument)``.

    Args:
        module: dotted name.
        argument: what it is given.
        environment: in place of this process's.
        seconds: how long it may take; then it is killed.
        memory: how many bytes of address space it may have.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    bootstrap = _BOOTSTRAP.format(root=str(Path(__file__).resolve().parents[1]), module=module, memory=memory)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        given.write(argument)
        given.seek(0)
        status = subprocess.run(
            [sys.executable, "-P", "-c", bootstrap, str(out.fileno())],
            stdin=given,
            stdout=log,
            stderr=log,
            pass_fds=(out.fileno(),),
            env=None if environment is None else dict(environment),
            timeout=seconds,
            check=False,
        ).returncode
        out.seek(0)
        log.seek(0)
        return Aside(out.read(), status, log.read().decode("utf-8", "replace"))


def serve(module: str, memory: int | None) -> None:
    """What the process does. It limits itself: between fork and exec of a process that has threads nothing is safe."""
    import importlib

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(ValueError):  # the user's own limit is lower
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    descriptor = int(sys.argv.pop())
    main = importlib.import_module(module).main
    view = memoryview(main(sys.stdin.buffer.read()))
    while view:
        view = view[os.write(descriptor, view) :]
    # Not sys.exit: what was loaded may hang in its own ends.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
