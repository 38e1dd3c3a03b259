"""What the documents show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reducer.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "tests" / "README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert not [link for link in links if not (document.parent / link).exists()]


@pytest.mark.slow
def test_the_smallest_script_compiles(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    script = tmp_path / "smallest.py"
    script.write_text(blocks[0], encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "host_temp_size_in_bytes=0" in done.stdout


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that is not a group, by its full name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            child = command.get_command(context, part)
            assert child is not None
            yield from commands(child, f"{name} {part}")
    else:
        yield name, command


def test_every_command_and_option_is_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    shared = text.partition("\n## Options of most commands\n")[2].partition("\n## ")[0]
    missing = []
    for name, command in commands(main, "scanshrink"):
        heading = re.search(rf"^#+ `{re.escape(name)}`$", text, flags=re.MULTILINE)
        if heading is None:
            missing.append(name)
            continue
        section = re.split(r"^#+ `", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        flags = [flag for option in command.params for flag in (*option.opts, *option.secondary_opts)]
        missing += [f"{name} {flag}" for flag in flags if flag.startswith("--") and flag not in section + shared]
    assert not missing, "docs/commands.md says nothing of these"
