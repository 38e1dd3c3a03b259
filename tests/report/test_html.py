"""The page over a corpus: well-formed, self-contained, escaped, readable without colour."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, Corpus, Damaged, Equivalence, OutcomeRecord, TierMinimum
from reducer.errors import InputError, StorageError
from reducer.report.html import LOOKS, columns, look_of, page, write_page

Make = Callable[..., Case]
VOID = {"meta", "br", "link", "img", "input", "hr"}
FILES = {"repro.py": "", "program.mlir": "", "report.md": ""}


class Strict(HTMLParser):
    """Fails on unbalanced tags; collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def record(outcome: str, libtpu: str, sha: str, **fields: str) -> OutcomeRecord:
    return OutcomeRecord(libtpu=libtpu, sha256=sha * 64, topology="v5e:2x2", outcome=outcome, **fields)


def test_a_page(make: Make) -> None:
    case = make().with_outcomes(record("compiled", "0.0.9", "b"), record("crashed", "0.0.42.1", "c", signature="other"))
    parsed = Strict(page([case, Damaged(Path("x"), "x: broken")], link="corpus"))
    for words in (case.slug, case.signature, "b:f32[8,128] = tanh a", "x: broken", "1 case of 1 family, 1 damaged"):
        assert words in parsed.text
    # Older releases first; each cell says in words what it means.
    heads = [a["title"] for t, a in parsed.tags if t == "th" and (a.get("title") or "").startswith("sha256")]
    assert heads == [f"sha256 {c * 64}" for c in "bca"]
    assert [a["title"] for t, a in parsed.tags if t == "td" and "title" in a] == ["compiled", "other", case.signature]
    matrix = parsed.text.split("Releases", 1)[1].split("Legend", 1)[0]
    assert [w for w in ("✓ compiles", "≠ fails otherwise", "✗ fails") if w in matrix] == [
        "✓ compiles", "≠ fails otherwise", "✗ fails",
    ]  # fmt: skip
    for look in LOOKS.values():
        assert look.meaning in parsed.text
    links = [a["href"] for t, a in parsed.tags if t == "a"]
    assert f"corpus/{case.slug}/report.md" in links
    assert f"corpus/{case.slug}/repro.py" in links


def test_it_loads_nothing(make: Make) -> None:
    parsed = Strict(page([make()]))
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in parsed.tags}
    assert not [a for _, a in parsed.tags if "src" in a or "style" in a or any(k.startswith("on") for k in a)]
    assert all((a.get("href") or "#").startswith("#") for _, a in parsed.tags)


NASTY = "</pre></section><script>alert(1)</script>\" onmouseover='x' \x1b[0m {{ 7*7 }} &lt; \u202e"


def test_nothing_of_a_case_is_markup(make: Make) -> None:
    hostile = make(
        signature=NASTY,
        family=NASTY,
        found=msgspec.structs.replace(make().found, strategy=NASTY),
        outcomes=(record("rejected", "0.0.52", "a", signature=NASTY, message=NASTY),),
        equivalence=Equivalence(same_as=NASTY, largest_difference=1.0),
    )
    text = page([hostile, Damaged(Path(NASTY), NASTY)], title=NASTY, link="../a b/")
    parsed = Strict(text)
    assert {tag for tag, _ in parsed.tags} == {
        tag for tag, _ in Strict(page([make(), Damaged(Path("x"), "y")], link="x")).tags
    }
    assert not [a for _, a in parsed.tags if "onmouseover" in a]
    assert "alert(1)" in parsed.text
    assert "{{ 7*7 }}" in parsed.text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_an_empty_corpus(tmp_path: Path) -> None:
    assert "No cases." in Strict(page([])).text
    assert write_page(Corpus(tmp_path / "none"), tmp_path / "out.html") == (0, 0)


@pytest.mark.parametrize(
    ("seen", "look"),
    [
        (None, "untried"),
        (record("rejected", "1", "a", signature="S", family="F"), "fails"),
        (record("rejected", "1", "a", signature="reworded", family="F"), "fails"),
        (record("timed-out", "1", "a", signature="S"), "fails"),
        (record("crashed", "1", "a", signature="S"), "crashes"),
        (record("rejected", "1", "a", signature="T", family="G"), "other"),
        (record("rejected", "1", "a", signature="T"), "other"),
        (record("crashed", "1", "a", signature="T"), "other"),
        (record("compiled", "1", "a"), "compiles"),
        (record("compiled", "1", "a", signature="S"), "lost"),
        (record("incompatible", "1", "a"), "unjudged"),
        (record("invalid", "1", "a"), "unjudged"),
    ],
)
def test_looks(make: Make, seen: OutcomeRecord | None, look: str) -> None:
    assert look_of(make(signature="S", family="F"), seen) == LOOKS[look]


def test_looks_differ_without_colour() -> None:
    assert len({look.sign for look in LOOKS.values()}) == len({look.word for look in LOOKS.values()}) == len(LOOKS)


def test_one_column_for_each_file_and_topology(make: Make) -> None:
    other = msgspec.structs.replace(record("compiled", "0.0.52", "a"), topology="v6e:2x2")
    made = columns([make().with_outcomes(other), make()])
    assert [(c.libtpu, c.topology) for c in made] == [("0.0.52", "v5e:2x2"), ("0.0.52", "v6e:2x2")]


class TestWrite:
    def test_links_lead_from_the_page_to_the_cases(self, make: Make, tmp_path: Path) -> None:
        corpus = Corpus(tmp_path / "my corpus")
        slug = corpus.add(make(), FILES).case.slug
        out = tmp_path / "deep" / "er" / "page.html"
        assert write_page(corpus, out) == (1, 0)
        links = [a["href"] or "" for t, a in Strict(out.read_text()).tags if t == "a"]
        assert f"../../my%20corpus/{slug}/report.md" in links
        assert write_page(corpus, out) == (1, 0)
        assert [p.name for p in out.parent.iterdir()] == ["page.html"]

    def test_a_module_s_case(self, make: Make) -> None:
        tiers = {"stablehlo": TierMinimum(size=7, module="program.mlir")}
        parsed = Strict(page([make(tiers=tiers)]))
        assert "7 operations, in program.mlir." in parsed.text

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match="choose another folder"):
            write_page(Corpus(tmp_path / "corpus"), tmp_path / "file" / "page.html")
        with pytest.raises(InputError, match="cannot list"):
            write_page(Corpus(tmp_path / "file"), tmp_path / "page.html")
