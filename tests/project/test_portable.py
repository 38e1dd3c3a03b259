"""No file names the machine it was written on, or a server that packages come from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Written in pieces, so that this file does not find itself.
HOSTS = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "deb." + "debian.org")
# /home/me and /home/user are anybody's: examples may use them.
HOMES = re.compile(r"(?<![\w.~-])/(?:" + "ro" + "ot|ho" + r"me/(?!me\b|user\b)\w+|Us" + r"ers/\w+|wo" + r"rk)/[\w.]")
BINARY = {".gz", ".png", ".zip", ".whl"}


def files() -> list[Path]:
    """The files under version control; without git (an unpacked source archive), all but hidden and built ones."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        hidden = re.compile(r"(^|/)(\.|__)")
        paths = [path for path in ROOT.rglob("*") if not hidden.search(str(path.relative_to(ROOT)))]
    return [path for path in paths if path.is_file() and path.suffix not in BINARY]


def test_the_patterns_find_what_they_should() -> None:
    for text in ("/ro" + "ot/x", "'/ho" + "me/ada/src'", "at /Us" + "ers/ada/x.py", " /wo" + "rk/main"):
        assert HOMES.search(text), text
    for text in ("./work/x", "~/home/x", "/home/me/x", "tests/root/x", "/usr/lib", "a/home/ada/b"):
        assert not HOMES.search(text), text


def test_files_are_portable() -> None:
    wrong = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        found = [host for host in HOSTS if host in text] + HOMES.findall(text)
        found += [str(ROOT)] if str(ROOT) in text else []
        wrong += [f"{path.relative_to(ROOT)}: {text}" for text in found]
    assert not wrong, "a package registry's host, or a path of one machine"
