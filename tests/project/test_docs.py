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
from reducer.corpus import Case, Corpus
from reducer.oracle.target import release_order

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


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_script_that_is_shown_is_that_of_the_case() -> None:
    text = readme()
    (block,) = (b for b in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL) if "loss" in b)
    (case,) = set(re.findall(r"\[the whole case\]\((corpus/[^)]+)\)", text))
    assert block in (ROOT / case / "repro.py").read_text(encoding="utf-8")


#: Rows of the README's table of bugs -> families.
BUGS = {
    "bitcast between memory spaces": ["bitcast-memory-space"],
    "async-start of an offloaded stack expects another shape": ["async-start-mismatch"],
    "**no error, and the offload is lost**: the stack stays in device memory": ["lost-offload"],
    "instruction expected to have another memory space": ["instruction-shape-mismatch"],
    "a copy to the host that changes the layout": ["copy-layout-to-host"],
    "SIGABRT: word size of a value without a memory space": [
        "sigabrt-target-cc-cannot-query-the-word-size-without-memory-space"
    ],
    "`Annotation not found`": ["internal-annotation-not-found"],
    "bitcast of a majormost dimension; a parameter and its operand of different shapes": [
        "bitcast-majormost",
        "internal-shape-mismatch-between-parameter-number-and-its-operand",
    ],
    "slices and updates of host arrays that do not fit tiles, sublanes or lanes (7 families)": [
        "lane-slice",
        "slice-read-tile",
        "slice-update-tile",
        "sublane-read-packing",
        "sublane-slice",
        "unimplemented-async-slice-only-supports-slicing-in-dimension-read",
        "unimplemented-strided-host-hbm-dmas-are-not-supported-when",
    ],
}


def test_the_bugs_that_are_shown_are_those_of_the_corpus() -> None:
    cases = [case for case in Corpus(ROOT / "corpus") if isinstance(case, Case)]
    assert {case.family for case in cases} == {family for families in BUGS.values() for family in families}
    text = readme()
    assert f"In [corpus/](corpus), {len(cases)} cases," in text
    rows = {
        row: (int(count), int(size), seen)
        for row, count, size, seen in re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \| (.+?) \|$", text, flags=re.MULTILINE)
    }
    assert rows.keys() == BUGS.keys()
    for row, families in BUGS.items():
        of_row = [case for case in cases if case.family in families]
        seen: dict[str, set[str]] = {}
        for record in (record for case in cases for record in case.outcomes if record.family in families):
            seen.setdefault(record.libtpu, set()).add(record.family)
        releases = sorted(seen, key=release_order)
        part = [release for release in releases if len(families) == 2 and len(seen[release]) < 2]
        shown = ", ".join(f"in part {release}" if release in part else release for release in releases)
        assert rows[row] == (len(of_row), min(case.minimum.size for case in of_row), shown)


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
