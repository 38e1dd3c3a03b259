"""The pool against a worker without a compiler: every way a worker can end, and what becomes of its job."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from reducer.errors import TargetError, WorkerError
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.cachefile import QUOTA
from reducer.oracle.conversation import Conversation
from reducer.oracle.jobs import ProgramJob, ScriptJob
from reducer.oracle.outcome import Compiled, Crashed, Incompatible, Invalid, Rejected, Result, Skipped, TimedOut
from reducer.oracle.pool import Pool, default_memory_limit
from reducer.oracle.target import Target

FAKE = [sys.executable, "-S", "-E", str(Path(__file__).with_name("fake_worker.py"))]
COMPILED = {"outcome": "compiled", "memory": {"temp": 7}}
#: A limit, in seconds, within which the fake worker answers what it does answer, also on a busy machine.
ANSWERED = 2.0


def target(mode: str = "good") -> Target:
    return Target(libtpu="0.0.0", path="/nowhere/libtpu.so", sha256="0" * 64, topology=mode)


def pool(mode: str = "good", workers: int = 1, **options) -> Pool:
    return Pool(target(mode), workers, command=FAKE, **options)


def job(key: str = "", *, require: bool = False, **order) -> ProgramJob:
    return ProgramJob(json.dumps(order), key=key, require_host_placement=require)


def gone(pid: int) -> bool:
    """Whether a process is gone or a zombie, waiting a while for it."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        threading.Event().wait(0.02)
    return False


def group(leader: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[2]) == leader:
                found.append(int(status.parent.name))
    return found


@pytest.fixture
def one():
    with pool() as made:
        yield made


def test_an_answer(one):
    result = one.submit(job(outcome=COMPILED)).result()
    assert isinstance(result.answer, Compiled)
    assert result.answer.memory.temp == 7
    assert result.answer.memory.host_temp is None
    assert (result.seconds_lower, result.seconds_compile, result.module_key) == (0.01, 0.02, "m")
    assert not result.cached
    assert result.worker_pid > 0


def test_workers_are_warm(one):
    pids = {one.submit(job()).result().worker_pid for _ in range(5)}
    assert len(pids) == 1
    assert one.stats().starts == 1


def test_module_text_on_request(one):
    assert one.submit(job()).result().module == ""
    assert one.submit(job(), want_module=True).result().module == "text"


def test_invalid(one):
    assert one.submit(job(invalid="no")).result().answer == Invalid("no")


@pytest.mark.parametrize(("phase", "expected"), [("lower", "lower"), ("compile", "compile")])
def test_abort_is_an_outcome_with_its_fatal_line(one, phase, expected):
    result = one.submit(job(**{phase: ["abort", 0]})).result()
    assert result.answer == Crashed("SIGABRT", "some_file.cc:12] Check failed: a == b (1 vs. 2) Bad.", expected)
    assert isinstance(one.submit(job()).result().answer, Rejected)
    stats = one.stats()
    assert (stats.deaths, stats.starts, stats.answered) == (1, 2, 2)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGILL, signal.SIGBUS])
def test_other_signals(one, number):
    answer = one.submit(job(compile=["kill", number])).result().answer
    assert isinstance(answer, Crashed)
    assert answer.signal == number.name


def test_exit_is_a_crash(one):
    answer = one.submit(job(compile=["exit", 3])).result().answer
    assert answer == Crashed("exit 3", "")


def test_hang_is_a_timeout_and_the_process_ends(one):
    pid = one.submit(job()).result().worker_pid
    assert one.submit(job(compile=["hang", 0]), timeout=ANSWERED).result().answer == TimedOut(ANSWERED)
    assert gone(pid)
    assert one.submit(job(lower=["hang", 0]), timeout=0.2).result().answer == TimedOut(0.2, "lower")


def test_memory_hog():
    with pool(memory_limit=64 << 20) as made:
        answer = made.submit(job(compile=["grow", 200 << 20])).result().answer
    assert answer == Crashed("memory-cap", "used more than 64 MiB of memory")


def test_garbage_is_tried_once_more_then_the_programs_fault(one):
    answer = one.submit(job(lower=["garbage", 0])).result().answer
    assert isinstance(answer, Invalid)
    assert "pipe" in answer.message
    assert one.stats().deaths == 2


@pytest.mark.parametrize("order", [{"compile": ["close", 0]}, {"wrong_id": 77}])
def test_a_closed_pipe_and_a_forged_message(one, order, monkeypatch):
    monkeypatch.setattr("reducer.oracle.process._GRACE", 0.1)
    assert isinstance(one.submit(job(**order)).result().answer, Invalid)
    assert isinstance(one.submit(job()).result().answer, Rejected)


def test_a_flood_on_standard_output_is_harmless(one):
    assert isinstance(one.submit(job(lower=["print", 20000], compile=["print", 20000])).result().answer, Rejected)
    assert one.stats().deaths == 0


def test_a_kill_from_outside_is_tried_once_more(one, tmp_path):
    result = one.submit(job(compile=["kill-once", str(tmp_path / "flag")])).result()
    assert isinstance(result.answer, Rejected)
    assert one.stats().deaths == 1
    answer = one.submit(job(compile=["kill", signal.SIGKILL])).result().answer
    assert isinstance(answer, Crashed)
    assert answer.signal == "SIGKILL"


def test_a_death_before_the_job_was_read_is_not_its_own(one, tmp_path):
    result = one.submit(job(before="die-unread", flag=str(tmp_path / "flag"))).result()
    assert isinstance(result.answer, Rejected)


def test_death_while_idle(one):
    result = one.submit(job(after="die")).result()
    assert isinstance(result.answer, Rejected)
    assert gone(result.worker_pid)
    again = one.submit(job()).result()
    assert isinstance(again.answer, Rejected)
    assert again.worker_pid != result.worker_pid


def test_children_of_a_dead_worker_end_too(one):
    pid = one.submit(job()).result().worker_pid
    assert isinstance(one.submit(job(compile=["child", 0])).result().answer, Crashed)
    assert all(gone(child) for child in group(pid))


def test_a_bug_reaches_whoever_waits_and_the_pool_goes_on(one, monkeypatch):
    run = Conversation.run

    def broken(*_):
        monkeypatch.setattr(Conversation, "run", run)
        raise AssertionError("a bug")

    monkeypatch.setattr(Conversation, "run", broken)
    with pytest.raises(AssertionError, match="a bug"):
        one.submit(job()).result()
    assert isinstance(one.submit(job()).result().answer, Rejected)
    assert (one.stats().running, one.stats().starts) == (0, 2)


def test_no_job_is_lost_among_crashes():
    with pool(workers=3) as made:
        futures = [made.submit(job(say=n, **({"compile": ["abort", 0]} if n % 5 == 0 else {}))) for n in range(40)]
        answers = [future.result(60).answer for future in futures]
    assert [type(answer) for answer in answers] == [Crashed if n % 5 == 0 else Rejected for n in range(40)]
    assert [answer.message for answer in answers if isinstance(answer, Rejected)] == [
        f"INTERNAL: pid {n}" for n in range(40) if n % 5
    ]


def test_fresh_asks_a_new_worker_each_time_and_leaves_the_others_alone(one):
    ordinary = one.submit(job()).result().worker_pid
    fresh = [one.submit(job(), fresh=True).result().worker_pid for _ in range(3)]
    assert len({ordinary, *fresh}) == 4
    assert one.submit(job()).result().worker_pid == ordinary


def test_what_is_done_afresh_keeps_no_worker_busy(one):
    one.submit(job(), fresh=True).result()
    assert one.stats().busy_seconds == 0
    one.submit(job()).result()
    assert one.stats().busy_seconds > 0


def test_recycling():
    with pool(recycle_jobs=2) as made:
        pids = [made.submit(job()).result().worker_pid for _ in range(6)]
    assert len(set(pids)) == 3
    with pool(recycle_memory=1) as made:
        pids = [made.submit(job()).result().worker_pid for _ in range(3)]
    assert len(set(pids)) == 3


def test_a_script_never_shares_a_worker(one):
    first = one.submit(ScriptJob("x.py", "f")).result()
    assert one.submit(job()).result().worker_pid != first.worker_pid


def test_priority_and_order():
    with pool() as made:
        blocker = made.submit(job(lower=["hang", 0]), timeout=0.5)
        done: list[int] = []
        futures = []
        for number, priority in enumerate([0, 0, 5, 5, 1]):
            future = made.submit(job(), priority=priority)
            future.add_done_callback(lambda _, n=number: done.append(n))
            futures.append(future)
        blocker.result()
        for future in futures:
            future.result()
    assert done == [2, 3, 4, 0, 1]


def test_cancelling_queued_jobs():
    with pool() as made:
        blocker = made.submit(job(lower=["hang", 0]), timeout=0.5)
        while not blocker.running():
            threading.Event().wait(0.005)
        futures = [made.submit(job()) for _ in range(3)]
        assert made.queue_depth == 3
        assert futures[1].cancel()
        assert made.queue_depth == 2
        assert not blocker.cancel()
        assert isinstance(futures[2].result().answer, Rejected)
        assert futures[1].cancelled()
        assert made.queue_depth == 0


def test_close_fails_what_runs_and_cancels_what_waits():
    made = pool()
    running = made.submit(job(compile=["hang", 0]))
    waiting = made.submit(job())
    while not running.running():
        threading.Event().wait(0.005)
    made.close()
    with pytest.raises(WorkerError, match="closed"):
        running.result()
    with pytest.raises(CancelledError):
        waiting.result()
    with pytest.raises(WorkerError, match="closed"):
        made.submit(job())
    made.close()


def test_close_while_starting():
    made = pool("hang-probe")
    waiting = made.submit(job())
    made.close()
    assert waiting.cancelled() or isinstance(waiting.exception(), WorkerError)


def test_an_interrupt_ends_the_workers():
    pids = []

    def interrupted():
        with pool(workers=2) as made:
            pids.extend(future.result().worker_pid for future in [made.submit(job()) for _ in range(4)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(gone(pid) for pid in pids)


def test_busy_seconds(one):
    one.submit(job()).result()
    one.submit(job()).result()
    assert one.busy_seconds == pytest.approx(0.06)
    assert one.stats().start_seconds > 0


# --- starting up


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("unfit-import", WorkerError, "cannot import JAX"),
        ("die-import", WorkerError, r"died \(SIGABRT\): start.cc:7\] Check failed"),
        ("unfit-load", TargetError, "does not load as a libtpu"),
        ("die-load", TargetError, "does not load as a libtpu"),
        ("unfit-topology", TargetError, "does not know topology unfit-topology"),
        ("unfit-options", TargetError, "does not take the compiler options"),
        ("die-options", TargetError, "does not take the compiler options"),
        ("garbage-probe", None, "something else than the protocol"),
        ("locked", WorkerError, "lock is held.*libtpu_lockfile"),
        ("wrong-library", WorkerError, "loaded /other/libtpu.so"),
        ("wrong-version", WorkerError, "another version"),
    ],
)
def test_why_it_does_not_start(mode, error, words):
    with pool(mode) as made:
        future = made.submit(job())
        if error is None:
            assert isinstance(future.result().answer, Incompatible)
            return
        with pytest.raises(error, match=words):
            made.wait_ready()
        with pytest.raises(error, match=words):
            future.result()
        with pytest.raises(error, match=words):
            made.submit(job()).result()


@pytest.mark.parametrize("mode", ["unfit-probe", "die-probe", "die-topology"])
def test_incompatible_is_every_jobs_answer(mode):
    with pool(mode) as made:
        unfit = made.wait_ready()
        assert isinstance(unfit, Incompatible)
        assert "0.0.0 does not work with this jaxlib" in unfit.message
        assert made.submit(job()).result().answer == unfit
        assert made.confirm(job(), 2).result().counts == {"incompatible": 2}


def test_a_start_that_hangs():
    with pool("hang-load", start_seconds=ANSWERED) as made, pytest.raises(TargetError, match="ran out of time"):
        made.wait_ready()


def test_a_worker_killed_while_starting_is_started_again(tmp_path):
    with pool(f"once:{tmp_path / 'flag'}") as made:
        assert isinstance(made.submit(job()).result().answer, Rejected)
        assert made.stats().starts == 2


def test_a_command_that_cannot_run():
    with (
        Pool(target(), command=["/nowhere/python"]) as made,
        pytest.raises(WorkerError, match="cannot start a worker process"),
    ):
        made.wait_ready()


def test_workers_end_with_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys, os, signal\n"
        "from reducer.oracle.pool import Pool\n"
        "from reducer.oracle.jobs import ProgramJob\n"
        "from reducer.oracle.target import Target\n"
        "t = Target(libtpu='0', path='/nowhere/libtpu.so', sha256='0', topology='good')\n"
        "pool = Pool(t, command=sys.argv[1:])\n"
        "print(pool.submit(ProgramJob('{}')).result().worker_pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script), *FAKE], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout))


def test_memory_limit_is_sane():
    assert 2 << 30 <= default_memory_limit(2) <= 16 << 30
    assert default_memory_limit(1000) == 2 << 30


# --- with a cache


@pytest.fixture
def cache(tmp_path):
    with OutcomeCache(tmp_path / "outcomes.sqlite3") as made:
        yield made


def test_a_program_is_answered_without_a_worker(cache):
    with pool(cache=cache) as made:
        first = made.submit(job("a", outcome=COMPILED)).result()
        second = made.submit(job("a", outcome=COMPILED)).result()
        assert second.cached
        assert second.worker_pid == 0
        assert second.answer == first.answer
        assert second.module_key == first.module_key
        assert made.submit(job("", outcome=COMPILED)).result().worker_pid > 0
        assert (made.stats().cached, made.stats().compiled) == (2, 1)


def test_another_program_of_the_same_module_is_lowered_only(cache):
    with pool(cache=cache) as made:
        made.submit(job("a", module_key="k")).result()
        result = made.submit(job("b", module_key="k", compile=["abort", 0])).result()
        assert result.cached
        assert isinstance(result.answer, Rejected)
        assert (result.seconds_lower, result.seconds_compile) == (0.01, 0.0)


def test_invalid_and_skipped_are_remembered(cache):
    with pool(cache=cache) as made:
        made.submit(job("a", invalid="no")).result()
        again = made.submit(job("a", compile=["abort", 0])).result()
        assert (again.answer, again.cached) == (Invalid("no"), True)
        first = made.submit(job("b", host=False, require=True)).result()
        assert (first.answer, first.cached) == (Skipped("no host placement"), False)
        again = made.submit(job("b", host=False, require=True)).result()
        assert (again.answer, again.cached) == (Skipped("no host placement"), True)
        assert isinstance(made.submit(job("b", host=False)).result().answer, Rejected)
        assert (made.stats().skipped, made.stats().invalid) == (2, 2)


@pytest.mark.parametrize("what", [["abort", 0], ["hang", 0]])
def test_a_crash_or_timeout_is_believed_only_after_a_fresh_repeat(cache, what):
    with pool(cache=cache, timeout=ANSWERED) as made:
        assert not made.submit(job("a", compile=what)).result().cached
        assert not made.submit(job("a", compile=what)).result().cached
        made.submit(job("a", compile=what), fresh=True).result()
        assert made.submit(job("a", compile=what)).result().cached


def test_a_longer_limit_is_a_miss(cache):
    with pool(cache=cache) as made:
        made.submit(job("a", compile=["hang", 0]), fresh=True, timeout=ANSWERED).result()
        assert made.submit(job("a"), timeout=0.2).result().answer == TimedOut(ANSWERED)
        result = made.submit(job("a", outcome=COMPILED), timeout=60).result()
        assert isinstance(result.answer, Compiled)


def test_flaky_answers_are_asked_again(cache):
    with pool(cache=cache) as made:
        made.submit(job("a", compile=["abort", 0]), fresh=True).result()
        made.submit(job("a", outcome=COMPILED), fresh=True).result()
        assert not made.submit(job("a", outcome=COMPILED)).result().cached
        seen = cache.view(target()).seen("m")
    assert sorted((type(s.outcome).__name__, s.count, s.fresh) for s in seen) == [
        ("Compiled", 2, 1),
        ("Crashed", 1, 1),
    ]


def test_a_cache_that_turns_itself_off_costs_no_answer(tmp_path):
    warned = []
    cache = OutcomeCache(tmp_path / "c.sqlite3", warn=warned.append)
    with pool(cache=cache) as made:
        made.submit(job("a")).result()
        assert cache._connection is not None
        cache._connection.execute("DROP TABLE answers")
        assert not made.submit(job("a")).result().cached
        assert not made.submit(job("a")).result().cached
    assert len(warned) == 1
    assert QUOTA == 2 << 30


# --- confirming


def test_confirm(one):
    confirmation = one.confirm(job(compile=["abort", 0]), 2).result()
    text = "SIGABRT some_file.cc:12 Check failed: a == b (# vs. #) Bad."
    assert confirmation.counts == {text: 2}
    assert confirmation.stable
    assert confirmation.confirms(confirmation.results[0])
    assert not confirmation.confirms(Result(Rejected("INTERNAL: other")))


def test_confirm_repeats_in_one_new_worker(one):
    served = one.submit(job()).result().worker_pid
    confirmation = one.confirm(job(outcome=COMPILED), 3).result()
    pids = {result.worker_pid for result in confirmation.results}
    assert len(pids) == 1
    assert served not in pids
    assert confirmation.counts == {"compiled": 3}


def test_confirm_counts_a_flaky_job(one, tmp_path):
    flaky = job(lower=["abort-once", str(tmp_path / "flag")], outcome=COMPILED)
    confirmation = one.confirm(flaky, 3).result()
    assert sorted(confirmation.counts.values()) == [1, 2]
    assert confirmation.counts["compiled"] == 2
    assert not confirmation.stable
    assert not confirmation.confirms(confirmation.results[-1])
