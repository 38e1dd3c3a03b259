"""`scanshrink hunt` with a pool that answers by the program's text."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import strategies as st

import strategies
from reducer.cli import interrupts
from reducer.corpus import Case, Corpus
from reducer.errors import WorkerError
from reducer.hunt.workshop import UNREDUCED
from reducer.ir.equations import Program
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Answer, Incompatible

from .fakes import BITCAST, COMPILED, Opened, chain, invoke, machine, one_error

FIELDS = {
    "schema", "command", "target", "generated", "compiled", "failing", "skipped", "excused", "skeletons", "signatures",
    "seconds", "worker_busy_fraction", "corpus", "seed", "interrupted",
}  # fmt: skip
ROW = {
    "signature", "family", "kind", "tier", "strategy", "finds", "case", "size", "first_seconds",
    "compiles_to_minimum", "reduce_seconds",
}  # fmt: skip


def drawn(n: int) -> Program:
    return chain(1 + n // 2, placed=n % 2 == 1)


@pytest.fixture(autouse=True)
def simple_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "hunting", lambda: st.integers(0, 9).map(drawn))


def on_host(job: Job) -> Answer:
    return BITCAST if "device_put(" in job.source else COMPILED  # type: ignore[union-attr]


def ctrl_c_at(count: int, pools: Opened, *, times: int = 1, number: int = signal.SIGINT) -> None:
    """Send the signal to this process when the `count`-th question is asked."""
    asked = 0

    def answer(job: Job) -> Answer:
        nonlocal asked
        asked += 1
        if asked == count:
            for _ in range(times):
                os.kill(os.getpid(), number)
        return on_host(job)

    pools.answer = answer


def cases(folder: Path) -> list[Case]:
    return [entry for entry in Corpus(folder) if isinstance(entry, Case)]


def test_a_hunt_finds_shrinks_and_saves(tmp_path: Path, pools: Opened) -> None:
    pools.answer = on_host
    data, code = machine("hunt", "--seconds", "3", "--seed", "7", "--jobs", "3", "--corpus", str(tmp_path / "c"))
    assert code == 0
    assert set(data) >= FIELDS
    assert (data["schema"], data["command"], data["seed"], data["interrupted"]) == (1, "hunt", 7, False)
    assert data["target"]["libtpu"] == "0.0.52"
    (row,) = data["signatures"]
    assert set(row) >= ROW
    assert (row["tier"], row["kind"], row["family"], row["size"]) == ("placement", "error", "bitcast-memory-space", 1)
    assert row["finds"] == data["failing"] == 5
    assert data["compiled"] == 10
    assert data["skipped"]["duplicate program"] > 0
    (case,) = cases(tmp_path / "c")
    assert row["case"] == str(tmp_path / "c" / case.slug)
    assert (case.finds, case.minimum.size, case.notes) == (5, 1, ())
    ((_, jobs, _),) = pools.calls
    assert jobs == 3


def test_the_table_for_people(tmp_path: Path, pools: Opened) -> None:
    pools.answer = on_host
    ran = invoke("hunt", "--seconds", "3", "--seed", "7", "--corpus", str(tmp_path / "c"))
    assert ran.exit_code == 0
    assert "10 compiled, 5 failing" in ran.stdout
    assert "seed 7" in ran.stdout
    assert f"{tmp_path}/c/bitcast-memory-space-" in ran.stdout
    assert "starting" in ran.stderr
    assert "new failure bitcast-memory-space" in ran.stderr


def test_no_find_is_exit_code_0(tmp_path: Path, pools: Opened) -> None:
    ran = invoke("hunt", "--seconds", "1", "--corpus", str(tmp_path / "c"))
    assert ran.exit_code == 0
    assert "no failures found" in ran.stdout
    assert pools.calls


def test_a_random_seed_is_printed(tmp_path: Path, pools: Opened) -> None:
    ctrl_c_at(3, pools)
    data, _ = machine("hunt", "--corpus", str(tmp_path))
    assert isinstance(data["seed"], int)
    assert list(tmp_path.glob(f".hunt-{data['seed']}-*.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("count", [1, 4, 9, 12])
def test_a_signal_ends_a_hunt_cleanly(tmp_path: Path, pools: Opened, count: int, number: int) -> None:
    ctrl_c_at(count, pools, number=number)
    before = signal.getsignal(number)
    data, code = machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    assert (code, data["interrupted"], FIELDS - set(data)) == (0, True, set())
    assert signal.getsignal(number) is before
    (state,) = tmp_path.glob(".hunt-7-*.json")
    pending = json.loads(state.read_bytes())["pending"]
    for row in data["signatures"]:
        assert row["case"]
        assert (row["reduce_seconds"] is None) == bool(pending)
    for case in cases(tmp_path):
        assert (UNREDUCED in case.notes) == bool(pending)


def test_ctrl_c_twice(tmp_path: Path, pools: Opened) -> None:
    ctrl_c_at(6, pools, times=2)
    data, code = machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    assert (code, data["interrupted"]) == (0, True)


def test_ctrl_c_before_the_hunt_begins(tmp_path: Path, pools: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on")

    from reducer.cli import session

    monkeypatch.setattr(session, "resolve_target", resolve)
    data, code = machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    assert (code, data["interrupted"], data["generated"], data["target"]) == (0, True, 0, None)
    ran = invoke("hunt", "--seed", "7", "--corpus", str(tmp_path))
    said = "ended before the first program: nothing was found, and what was saved before is as it was\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", said)
    assert list(tmp_path.iterdir()) == []
    assert pools.calls == []


def test_ctrl_c_while_workers_start(tmp_path: Path, pools: Opened) -> None:
    class Starting(Opened):
        def __call__(self, *_: object, **__: object):  # type: ignore[no-untyped-def]
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("went on")

    from reducer.cli import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "open_pool", Starting(on_host))
        ran = invoke("hunt", "--seed", "7", "--corpus", str(tmp_path / "new"))
    assert ran.exit_code == 0
    assert "ended before the first program" in ran.stderr
    assert list(tmp_path.iterdir()) == []
    assert ran.stdout == ""
    del pools


def test_many_signals_are_believed() -> None:
    with interrupts.Interrupts() as taken:
        taken.deliver(lambda: None)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.Interrupts() as taken:
            os.kill(os.getpid(), signal.SIGHUP)
        assert taken.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_resuming_goes_on(tmp_path: Path, pools: Opened) -> None:
    ctrl_c_at(4, pools)
    first, _ = machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    pools.answer = on_host
    second, code = machine("hunt", "--seconds", "1", "--resume", "--corpus", str(tmp_path))
    assert (code, second["seed"], second["interrupted"]) == (0, 7, False)
    assert second["signatures"][0]["reduce_seconds"] is not None
    (case,) = cases(tmp_path)
    assert (case.minimum.size, case.notes) == (1, ())
    assert case.finds >= first["failing"]
    (state,) = tmp_path.glob(".hunt-7-*.json")
    assert json.loads(state.read_bytes())["pending"] == []
    assert json.loads(state.read_bytes())["batch"] >= 2


def test_resuming_what_is_not_there(tmp_path: Path, pools: Opened) -> None:
    one_error(invoke("hunt", "--resume", "--corpus", str(tmp_path / "c")), "no hunt on libtpu 0.0.52", "--resume")
    one_error(invoke("hunt", "--resume", "--seed", "4", "--corpus", str(tmp_path)), "no hunt with seed 4")
    assert pools.calls == []


def test_resuming_on_another_target_is_refused(tmp_path: Path, pools: Opened) -> None:
    ctrl_c_at(2, pools)
    machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    one_error(invoke("hunt", "--resume", "--topology", "v6e:2x2", "--corpus", str(tmp_path)), "no hunt on")


def test_resuming_a_damaged_state(tmp_path: Path, pools: Opened) -> None:
    ctrl_c_at(2, pools)
    machine("hunt", "--seed", "7", "--corpus", str(tmp_path))
    (state,) = tmp_path.glob(".hunt-7-*.json")
    state.write_bytes(b"{")
    one_error(invoke("hunt", "--resume", "--corpus", str(tmp_path)), "cannot be used", "delete it")


def test_a_second_hunt_does_not_shrink_again(tmp_path: Path, pools: Opened) -> None:
    pools.answer = on_host
    words = ("hunt", "--seconds", "1", "--corpus", str(tmp_path), "--seed")
    machine(*words, "7")
    data, _ = machine(*words, "8")
    (row,) = data["signatures"]
    assert (row["size"], row["reduce_seconds"], data["failing"]) == (1, None, 5)
    assert cases(tmp_path)[0].finds == 10


def test_excluding_a_corpus(tmp_path: Path, pools: Opened, capfd: pytest.CaptureFixture[str]) -> None:
    pools.answer = on_host
    known = tmp_path / "known"
    machine("hunt", "--seconds", "1", "--corpus", str(known))
    (known / "damaged").mkdir()
    data, code = machine("hunt", "--seconds", "1", "--corpus", str(tmp_path / "new"), "--exclude-known", str(known))
    assert code == 0
    (row,) = data["signatures"]
    assert (row["case"], row["finds"], data["failing"]) == ("", 5, 5)
    assert cases(tmp_path / "new") == []
    del capfd


def test_excluding_what_is_not_there(tmp_path: Path, pools: Opened) -> None:
    ran = invoke("hunt", "--corpus", str(tmp_path / "c"), "--exclude-known", str(tmp_path / "nothing"))
    one_error(ran, "no such corpus")
    assert not (tmp_path / "c").exists()
    assert pools.calls == []


def test_a_corpus_that_cannot_be_written(tmp_path: Path, pools: Opened) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing")):
        one_error(invoke("hunt", "--corpus", str(folder)), f"cannot write to {folder}", "choose another --corpus")
        data, code = machine("hunt", "--corpus", str(folder))
        assert (code, data["error"]["kind"]) == (2, "storage")
    assert (tmp_path / "file").read_text() == "mine"
    assert pools.calls == []


def test_a_disk_that_fills_up(tmp_path: Path, pools: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from reducer.corpus import store

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    pools.answer = on_host
    monkeypatch.setattr(store, "write_folder", full)
    ran = invoke("hunt", "--seed", "7", "--corpus", str(tmp_path))
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1].startswith(f"scanshrink hunt: cannot write {tmp_path}/bitcast-memory-space-")
    assert "the disk is full" in ran.stderr
    assert "--resume --seed 7" in ran.stderr
    (state,) = tmp_path.glob(".hunt-7-*.json")
    assert len(json.loads(state.read_bytes())["pending"]) == 1
    assert cases(tmp_path) == []


def test_a_state_that_cannot_be_saved(tmp_path: Path, pools: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from reducer.hunt import state

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    ctrl_c_at(2, pools)
    monkeypatch.setattr(state, "write_file", full)
    ran = invoke("hunt", "--corpus", str(tmp_path))
    assert ran.exit_code == 2
    assert "cannot save the hunt's state" in ran.stderr.splitlines()[-1]


def test_workers_that_die_end_the_hunt_with_what_was_found_saved(tmp_path: Path, pools: Opened) -> None:
    saved = False

    def answer(job: Job) -> Answer:
        nonlocal saved
        if cases(tmp_path):
            raise WorkerError("workers keep dying")
        return on_host(job)

    pools.answer = answer
    ran = invoke("hunt", "--corpus", str(tmp_path))
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == "scanshrink hunt: workers keep dying"
    assert len(cases(tmp_path)) == 1


def test_a_libtpu_that_does_not_fit(tmp_path: Path, pools: Opened) -> None:
    pools.unfit = Incompatible("libtpu 0.0.20 does not work with this jaxlib: x + 1 does not compile")
    ran = invoke("hunt", "--libtpu", "0.0.20", "--corpus", str(tmp_path))
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1].startswith("scanshrink hunt: libtpu 0.0.20 does not work with this jaxlib")
    data, code = machine("hunt", "--libtpu", "0.0.20", "--corpus", str(tmp_path))
    assert (code, data["error"]["kind"]) == (2, "target")
    assert cases(tmp_path) == []


def test_failures_not_confirmed_are_not_called_none(capsys: pytest.CaptureFixture[str]) -> None:
    from reducer.cli.hunt import _report
    from reducer.hunt import Summary

    _report(Summary(seed=5, corpus="finds", excused={"unconfirmed": 2}), None, as_json=False)
    shown = capsys.readouterr().out
    assert "not counted: 2 failing programs whose failure is not confirmed;" in shown
    assert "--resume --seed 5" in shown
    assert "no failures found" not in shown
    _report(Summary(seed=5, corpus="finds"), None, as_json=False)
    assert "no failures found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ("lost", "'lost' is no kind of failure"),
        ("flaky", "flaky says how often others come"),
        ("error,", "'' is no kind of failure"),
    ],
)
def test_kinds_that_cannot_be_looked_for(tmp_path: Path, pools: Opened, kinds: str, says: str) -> None:
    one_error(invoke("hunt", "--kinds", kinds, "--corpus", str(tmp_path / "c")), says)
    assert pools.calls == []
