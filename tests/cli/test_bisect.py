"""`scanshrink bisect`, with releases and a compiler that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.cli import bisect as command
from reducer.corpus import Case, CaseTarget, Corpus, TierMinimum, slug_for
from reducer.errors import TargetError
from reducer.oracle.outcome import Answer, Invalid

from .fakes import BITCAST, COMPILED, Opened, chain, invoke, machine, one_error, write

RELEASES = ["0.0.30", "0.0.36", "0.0.42.1", "0.0.46", "0.0.50.1", "0.0.52"]


@pytest.fixture(autouse=True)
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "list_releases", lambda: RELEASES)
    monkeypatch.setattr(command, "cached_releases", lambda: ["0.0.42.1"])
    monkeypatch.setattr(command, "installed_libtpu", lambda: ("0.0.52", Path("/x/libtpu.so")))


@pytest.fixture
def since(monkeypatch: pytest.MonkeyPatch, pools: Opened) -> dict[str, Answer]:
    """What each release says; compiled where nothing is said."""
    answers: dict[str, Answer] = {}
    open_pool = command.session.open_pool

    def opened(target: object, *arguments: object, **options: object) -> object:
        release = target.libtpu  # type: ignore[attr-defined]
        if release == "0.0.30":
            raise TargetError("libtpu 0.0.30 does not work with this jaxlib")
        pools.answer = lambda _: answers.get(release, COMPILED)
        return open_pool(target, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(command.session, "open_pool", opened)
    return answers


def test_since_when(tmp_path: Path, since: dict[str, Answer]) -> None:
    since.update({"0.0.46": BITCAST, "0.0.50.1": BITCAST})
    program = write(tmp_path / "p.json", chain(2))
    data, code = machine("bisect", program, "--to", "0.0.50.1")
    assert code == 0
    assert data == {
        "schema": 1,
        "command": "bisect",
        "boundaries": [
            {"last": "0.0.42.1", "first": "0.0.46", "from": "ok", "to": "bitcast-memory-space", "between": []}
        ],
        "tried": {
            "0.0.36": "ok",
            "0.0.42.1": "ok",
            "0.0.46": "bitcast-memory-space",
            "0.0.50.1": "bitcast-memory-space",
        },
        "skipped": ["0.0.30"],
        "fetched": [],
    }
    ran = invoke("bisect", program, "--to", "0.0.50.1")
    assert ran.stdout == "0.0.42.1 ok  ->  0.0.46 bitcast-memory-space\n"
    assert "0.0.30       skipped: libtpu 0.0.30 does not work with this jaxlib" in ran.stderr


def test_no_boundary(tmp_path: Path, since: dict[str, Answer]) -> None:
    since.update({"0.0.46": BITCAST})
    ran = invoke("bisect", write(tmp_path / "p.json", chain(2)))
    assert (ran.exit_code, ran.stdout) == (1, "no boundary: ok on 0.0.36 as on 0.0.52\n")


def test_only_what_is_here(tmp_path: Path, since: dict[str, Answer]) -> None:
    since.update({"0.0.52": BITCAST})
    data, code = machine("bisect", write(tmp_path / "p.json", chain(2)), "--fetched", "--by", "signature")
    assert code == 0
    assert list(data["tried"]) == ["0.0.42.1", "0.0.52"]


def test_a_flaky_case_is_refused(tmp_path: Path, since: dict[str, Answer]) -> None:
    del since
    made = Case(
        slug=slug_for("x", kind="flaky", signature="s", tier="placement"),
        kind="flaky",
        signature="s",
        family="f",
        target=CaseTarget(libtpu="0.0.50.1", sha256="c" * 64, topology="v5e:2x2"),
        tiers={"placement": TierMinimum(size=2, program=chain(1))},
    )
    one_error(invoke("bisect", str(Corpus(tmp_path).add(made, {}).path)), "is a failure of kind flaky")


def test_bad_input(tmp_path: Path, since: dict[str, Answer]) -> None:
    program = write(tmp_path / "p.json", chain(2))
    one_error(invoke("bisect", program, "--from", "new"), "'new' is no libtpu release")
    one_error(invoke("bisect", program, "--from", "0.0.52"), "0.0.52 does not come before 0.0.52")
    one_error(invoke("bisect", program, "--from", "0.0.51"), "fewer than two known releases")
    one_error(invoke("bisect", program, "--from", "0.0.20", "--to", "0.0.31"), "fewer than two known releases")
    one_error(invoke("bisect", str(tmp_path / "none.json")), "no such file")
    since.update(dict.fromkeys(RELEASES, Invalid("it does not trace")))
    ran = invoke("bisect", program, "--from", "0.0.36")
    assert (ran.exit_code, ran.stdout) == (2, "")
    skipped, error = ran.stderr.splitlines()
    assert skipped == "0.0.36       skipped: it does not trace"
    assert error.endswith("p.json: it does not trace (it never reached the compiler)")


def test_a_release_that_jax_gives_up_on_is_skipped(tmp_path: Path, since: dict[str, Answer]) -> None:
    since.update({"0.0.36": Invalid("AssertionError: Unexpected XLA sharding override"), "0.0.52": BITCAST})
    data, code = machine("bisect", write(tmp_path / "p.json", chain(2)), "--from", "0.0.36")
    assert (code, data["skipped"]) == (0, ["0.0.36"])
    assert [(b["last"], b["first"]) for b in data["boundaries"]] == [("0.0.50.1", "0.0.52")]
