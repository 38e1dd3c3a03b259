"""C-Vise, a program of its own: it works on a file and asks a script, which asks us over a socket."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from peers.contest import Meter
from peers.texts import Outline
from reducer.errors import InputError
from reducer.ir.equations import Program

_SCRIPT = """\
#!{python} -ISs
import socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect({address!r})
    link.sendall(open("program.txt", "rb").read())
    link.shutdown(socket.SHUT_WR)
    sys.exit(0 if link.recv(1) == b"1" else 1)
"""


def cvise(meter: Meter) -> Program:
    """`cvise --not-c` on the text with braces, one candidate at a time.

    Raises:
        InputError: it is not installed.
    """
    command = shutil.which("cvise")
    if command is None:
        raise InputError("cvise is not installed", hint="it is a package of most Linux distributions")
    outline = Outline(meter.parts)
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as listener:
        folder = Path(name)
        address = str(folder / "ask")
        listener.bind(address)
        listener.listen()
        listener.settimeout(0.2)
        script = folder / "interesting"
        script.write_text(_SCRIPT.format(python=sys.executable, address=address))
        script.chmod(0o755)
        file = folder / "program.txt"
        file.write_text(outline.text())
        arguments = [command, "--not-c", "--n", "1", "--timeout", "3600", "--no-timing", str(script), "program.txt"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(arguments, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                with contextlib.suppress(TimeoutError):
                    _answer(listener, meter, outline)
        finally:
            process.terminate()
            process.wait()
        if process.returncode:
            raise InputError(f"cvise ended with {process.returncode}: {(folder / 'log').read_text()[-500:]}")
        kept = outline.of_text(file.read_bytes())
    assert kept is not None
    return meter.parts.program(kept)


def _answer(listener: socket.socket, meter: Meter, outline: Outline) -> None:
    link, _ = listener.accept()
    with link:
        link.settimeout(60)
        data = b""
        while more := link.recv(1 << 16):
            data += more
        kept = outline.of_text(data)
        fails = meter.malformed() if kept is None else meter.fails(kept)
        # A candidate that C-Vise has given up meanwhile hears nothing.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.sendall(b"1" if fails else b"0")
