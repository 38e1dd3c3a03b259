"""A user's command, run as it is but with the hook in its Python processes; and what came of it.

The hook (`reducer.hook`) is found through PYTHONPATH, so child processes have it too. Each process keeps a log in
the run's folder; what is left there by a process that was killed becomes a capture after the command's end.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import reducer.hook
from reducer.captures import CAPTURE_FILE, Capture, load_capture
from reducer.errors import InputError, StorageError

HOOK: Final = Path(reducer.hook.__file__).parent / "sitecustomize.py"
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?t?d?(?:\.exe)?")
_TEXT_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Run:
    """What a command did: its exit status as a shell gives it, and what the hook saw.

    `captures` are complete ones, in the order of their names. `processes` counts those that loaded the hook;
    `interrupted` says that it was ended by a signal meant for it, `lost` names modules that were being compiled then.
    """

    status: int
    signal: str = ""
    captures: tuple[Capture, ...] = ()
    processes: int = 0
    hooked: int = 0
    compiled: int = 0
    failed: int = 0
    again: int = 0
    unmatched: int = 0
    cached: int = 0
    interrupted: bool = False
    lost: tuple[str, ...] = ()
    unhooked: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass
class _Log:
    """What one process's hook wrote."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def count(self, event: str) -> int:
        return sum(e["event"] == event for e in self.events)


def keeps_hook_out(command: Sequence[str]) -> str:
    """The option of a Python command that keeps the hook out (``-I``, ``-E``, ``-S``), or an empty string."""
    if not command or not _PYTHON.fullmatch(os.path.basename(command[0])):
        return ""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            return ""
        for i, letter in enumerate(word[1:], 1):
            if letter in "IES":
                return f"-{letter}"
            if letter in "cm":
                return ""
            if letter in "WX":
                if i == len(word) - 1:
                    next(words, None)
                break
    return ""


def run(command: Sequence[str], out: Path, *, match: str = "", everything: bool = False) -> Run:
    """Run a command with the hook, and collect what its processes captured in `out`.

    The command has this process's standard streams. SIGINT of a terminal reaches it anyway; other signals that end
    a process are passed on to it.

    Args:
        command: program and arguments.
        out: folder of captures; made if need be.
        match: only modules in whose name this regular expression is found.
        everything: keep modules that compiled, too.

    Raises:
        InputError: there is no such command, or it cannot be run.
        StorageError: `out` cannot be written.
    """
    out = out.absolute()
    with _folder(out) as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(HOOK.parent), *filter(None, (os.environ.get("PYTHONPATH"),)))),
            "SCANSHRINK_CAPTURE": str(out),
            "SCANSHRINK_CAPTURE_RUN": str(folder),
            "SCANSHRINK_CAPTURE_MATCH": match,
            "SCANSHRINK_CAPTURE_ALL": "1" if everything else "0",
        }
        pid, status, stopped = _execute(command, environment)
        logs = dict(_logs(folder))
        interrupted = stopped or -status in _ENDS
        found, lost = _orphans(out, folder.name, interrupted, {pid: status}, logs)
    paths = [Path(e["folder"]) for log in logs.values() for e in log.events if e.get("folder")]
    return _summary(status, logs, sorted({*paths, *found}), interrupted, lost)


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A folder for the run's logs. `out` is made, and goes again if nothing was put into it."""
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass  # it can be written
        # Not in `out`: what becomes of that during a long command shall not hide that the hook was there.
        folder = Path(tempfile.mkdtemp(prefix="scanshrink-"))
    except OSError as error:
        raise StorageError(f"cannot write to {out}: {error.strerror or error}", hint="choose another --out") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            with contextlib.suppress(OSError):
                out.rmdir()


def _execute(command: Sequence[str], environment: dict[str, str]) -> tuple[int, int, bool]:
    """Process id and status of a command (negative: the signal that killed it), and whether we were told to end."""
    watched = {*_ENDS, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    stopped = False
    try:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                # A blocked signal stays blocked across exec; the command is to find what we found.
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )
        except OSError as error:
            raise InputError(f"cannot run {command[0]}: {error.strerror or error}") from None
        while process.poll() is None:
            info = signal.sigwaitinfo(watched)
            if info.si_signo in _ENDS:
                stopped = True
                if info.si_code <= 0:  # sent by a process to us alone; a terminal sends to the command as well
                    process.send_signal(info.si_signo)
        return process.pid, process.returncode, stopped
    finally:
        while signal.sigtimedwait(watched, 0) is not None:  # what came too late is answered
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _logs(folder: Path) -> Iterator[tuple[int, _Log]]:
    for path in sorted(folder.glob("*.jsonl")):
        log = _Log()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):  # a process that was killed in the middle of a line
                log.events.append(json.loads(line))
        yield int(path.stem), log


def _orphans(
    out: Path, name: str, interrupted: bool, statuses: dict[int, int], logs: dict[int, _Log]
) -> tuple[list[Path], tuple[str, ...]]:
    """Make captures of modules whose process died while it compiled them.

    Returns their folders, and the names of modules that are not kept because the command was interrupted.
    """
    found, lost = [], []
    for folder in sorted(out.glob(f".compiling-{name}-*")):
        pid = int(folder.name.split("-")[-2])
        try:
            record = json.loads((folder / CAPTURE_FILE).read_bytes())
        except (OSError, ValueError):  # it was killed before the module was whole
            shutil.rmtree(folder, ignore_errors=True)
            continue
        if _alive(pid):
            continue  # it outlives the command, and goes on compiling; its capture stays hidden until then
        if interrupted:
            lost.append(str(record.get("name")))
            shutil.rmtree(folder, ignore_errors=True)
            continue
        record["outcome"] = "died"
        record["error"] = {"type": "", "message": _how(pid, statuses)}
        (folder / CAPTURE_FILE).write_text(json.dumps(record, indent=1), encoding="utf-8")
        _add_text(folder, logs.get(pid, _Log()))
        found.append(_publish(folder, out, str(record["name"]), pid))
    return found, tuple(lost)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def _how(pid: int, statuses: dict[int, int]) -> str:
    status = statuses.get(pid)
    if status is None:
        return f"process {pid} died while the compiler was at work"
    if status >= 0:
        return f"the process ended with status {status} while the compiler was at work"
    name = _signal_name(-status)
    return f"the process was killed by {name} while the compiler was at work" + (
        " (out of memory, or by hand)" if name == "SIGKILL" else ""
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _add_text(folder: Path, log: _Log) -> None:
    """Write the module's text with the JAX that wrote the bytecode: another may not read it."""
    executables = [e["executable"] for e in log.events if e.get("executable")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SCANSHRINK_CAPTURE")}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [executables[0] if executables else sys.executable, str(HOOK), str(folder)],
            env={**environment, "JAX_PLATFORMS": "cpu"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # without the text there still is the bytecode
            timeout=_TEXT_SECONDS,
            check=False,
        )


def _publish(folder: Path, out: Path, name: str, pid: int) -> Path:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80] or "module"
    number = 0
    while os.path.lexists(to := out / (f"{plain}-{pid}" + (f"-{number}" if number else ""))):
        number += 1
    return folder.rename(to)


def _summary(
    status: int, logs: dict[int, _Log], paths: Sequence[Path], interrupted: bool, lost: tuple[str, ...]
) -> Run:
    events = [e for log in logs.values() for e in log.events]

    def count(event: str, flag: str = "") -> int:
        return sum(e["event"] == event and (not flag or e.get(flag) is True) for e in events)

    captures, troubles = [], [f"{e['what']}: {e['error']}" for e in events if e["event"] == "trouble"]
    for path in paths:
        try:
            captures.append(load_capture(path))
        except InputError as error:  # a module beyond the limit, or somebody deleted it meanwhile
            troubles.append(str(error))
    died = sum(capture.outcome == "died" for capture in captures)
    if count("locked"):
        troubles.append(
            "another process holds libtpu's lock file; where none of them uses a TPU, ALLOW_MULTIPLE_LIBTPU_LOAD=1 "
            "lets each load libtpu"
        )
    return Run(
        status=status if status >= 0 else 128 - status,
        signal=_signal_name(-status) if status < 0 else "",
        captures=tuple(captures),
        processes=count("loaded"),
        hooked=count("hooked"),
        compiled=count("compiled"),
        failed=count("failed") + died,
        again=count("failed", "again"),
        unmatched=sum(e["event"] == "failed" and e.get("matched") is False for e in events),
        cached=count("cached"),
        interrupted=interrupted,
        lost=lost,
        unhooked=tuple(sorted({e["reason"] for e in events if e["event"] == "unhooked"})),
        troubles=tuple(dict.fromkeys(troubles)),
    )
