"""The outcome cache: what may be believed, damage, full disks, quotas, several processes."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reducer.ledger import Owed, Stack
from reducer.oracle.cache import KnownProgram, OutcomeCache, Seen
from reducer.oracle.outcome import Compiled, Crashed, Incompatible, Invalid, Memory, Rejected, TimedOut
from reducer.oracle.target import Target

TARGET = Target(libtpu="0.0.52", path="/x/libtpu.so", sha256="a" * 64)
BITCAST = Rejected("INTERNAL: Bitcast of %a.1 f32[2]")
COMPILED = Compiled(Memory(temp=3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "outcomes.sqlite3"


@pytest.fixture
def cache(path):
    with OutcomeCache(path) as made:
        yield made


@pytest.fixture
def view(cache):
    return cache.view(TARGET)


def test_unknown(view):
    assert view.outcome("m", 60) is None
    assert view.program("p") is None
    assert view.seen("m") == []


def test_programs(view):
    view.remember("p", "m", host_placement=True)
    assert view.program("p") == KnownProgram("m", True, None)
    view.remember_invalid("q", "why not")
    assert view.program("q") == KnownProgram("", False, "why not")
    view.remember("", "m", host_placement=True)
    assert view.program("") is None


@pytest.mark.parametrize("outcome", [COMPILED, BITCAST, Rejected("")])
@pytest.mark.parametrize("fresh", [False, True])
def test_what_the_compiler_answered_is_believed_at_once(view, outcome, fresh):
    view.store("m", outcome, fresh=fresh)
    assert view.outcome("m", 60) == outcome


@pytest.mark.parametrize("outcome", [Crashed("SIGABRT", "a.cc:1] x"), TimedOut(60)])
def test_crashes_and_timeouts_need_a_fresh_repeat(view, outcome):
    view.store("m", outcome, fresh=False)
    view.store("m", outcome, fresh=False)
    assert view.outcome("m", 60) is None
    view.store("m", outcome, fresh=True)
    assert view.outcome("m", 60) == outcome
    assert view.seen("m") == [Seen(outcome, 3, 1)]


@pytest.mark.parametrize("outcome", [Invalid("x"), Incompatible("x")])
def test_what_is_no_answer_of_the_compiler_is_not_kept(view, outcome):
    view.store("m", outcome, fresh=True)
    assert view.seen("m") == []


def test_a_timeout_answers_up_to_its_limit(view):
    view.store("m", TimedOut(10), fresh=True)
    assert view.outcome("m", 10) == TimedOut(10)
    assert view.outcome("m", 2) == TimedOut(10)
    assert view.outcome("m", 11) is None
    view.store("m", TimedOut(30), fresh=True)
    assert view.outcome("m", 11) == TimedOut(30)
    view.store("m", TimedOut(20), fresh=True)
    assert view.outcome("m", 25) == TimedOut(30)
    view.store("m", TimedOut(90), fresh=False)
    assert view.outcome("m", 60) is None, "an unconfirmed time-out does not lengthen a confirmed one"


def test_an_answer_outweighs_a_timeout(view):
    view.store("m", TimedOut(1), fresh=True)
    view.store("m", COMPILED, fresh=False)
    assert view.outcome("m", 1) == COMPILED


def test_the_same_bug_in_other_words_is_one_row(view):
    view.store("m", BITCAST, fresh=False)
    view.store("m", Rejected("INTERNAL: Bitcast of %b.77 f32[9,9]"), fresh=False)
    assert [seen.count for seen in view.seen("m")] == [2]


def test_flaky_rows_are_never_believed_and_keep_their_counts(view):
    for outcome in (BITCAST, COMPILED, COMPILED):
        view.store("m", outcome, fresh=True)
    assert view.outcome("m", 60) is None
    assert view.seen("m") == [Seen(COMPILED, 2, 2), Seen(BITCAST, 1, 1)]


@pytest.mark.parametrize(
    "change",
    [{"sha256": "b" * 64}, {"topology": "v6e:1x1"}, {"options": (("xla_x", True),)}],
)
def test_another_target_is_another_answer(cache, view, change):
    view.store("m", COMPILED, fresh=False)
    assert cache.view(msgspec.structs.replace(TARGET, **change)).outcome("m", 60) is None
    same = msgspec.structs.replace(TARGET, libtpu="another name", path="/y/libtpu.so")
    assert cache.view(same).outcome("m", 60) == COMPILED


def test_versions_and_environment_matter(cache, view, monkeypatch):
    view.store("m", COMPILED, fresh=False)
    view.remember("p", "m", host_placement=False)
    assert cache.view(TARGET, jaxlib="9").outcome("m", 60) is None
    assert cache.view(TARGET, jax="9").outcome("m", 60) == COMPILED
    assert cache.view(TARGET, jax="9").program("p") is None
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_x=true")
    assert cache.view(TARGET).outcome("m", 60) is None
    monkeypatch.delenv("LIBTPU_INIT_ARGS")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert cache.view(TARGET).program("p") is None
    monkeypatch.delenv("JAX_ENABLE_X64")
    monkeypatch.setenv("EDITOR", "ed")
    assert cache.view(TARGET).outcome("m", 60) == COMPILED


def test_it_persists(path):
    with OutcomeCache(path) as cache:
        cache.view(TARGET).store("m", BITCAST, fresh=False)
    with OutcomeCache(path) as cache:
        assert cache.view(TARGET).outcome("m", 60) == BITCAST


def test_the_default_place(monkeypatch, tmp_path):
    monkeypatch.setenv("SCANSHRINK_CACHE", str(tmp_path / "cache"))
    with OutcomeCache() as cache:
        assert cache.path == tmp_path / "cache" / "outcomes.sqlite3"


@pytest.mark.parametrize("content", [b"this is not a database at all, no", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_moved_aside_with_a_warning(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    warned = []
    with OutcomeCache(path, warn=warned.append) as cache:
        cache.view(TARGET).store("m", COMPILED, fresh=False)
        assert cache.view(TARGET).outcome("m", 60) == COMPILED
    assert len(warned) == 1
    assert "damaged" in warned[0]
    [aside] = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == content


def test_damage_found_later_turns_the_cache_off(path):
    with OutcomeCache(path) as cache:
        for n in range(300):
            cache.view(TARGET).store(f"m{n}", Rejected(f"INTERNAL: {os.urandom(300).hex()}"), fresh=False)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xee" * (size - 8192))
    warned = []
    with OutcomeCache(path, warn=warned.append) as cache:
        view = cache.view(TARGET)
        for n in range(300):
            view.outcome(f"m{n}", 60)
            view.store(f"m{n}", COMPILED, fresh=False)
        assert not cache.enabled
    assert len(warned) == 1


def test_a_newer_format_is_left_alone(path):
    OutcomeCache(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()
    warned = []
    with OutcomeCache(path, warn=warned.append) as cache:
        assert not cache.enabled
        cache.view(TARGET).store("m", COMPILED, fresh=False)
        assert cache.view(TARGET).outcome("m", 60) is None
    assert len(warned) == 1
    assert "format 99" in warned[0]
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    warned = []
    with OutcomeCache(tmp_path / "file" / "c.sqlite3", warn=warned.append) as cache:
        assert not cache.enabled
    assert len(warned) == 1


def test_a_full_disk_turns_the_cache_off_with_one_warning(path):
    warned = []
    with OutcomeCache(path, warn=warned.append) as cache:
        assert cache._connection is not None
        cache._connection.execute("PRAGMA max_page_count=20")  # sqlite's own "database or disk is full"
        view = cache.view(TARGET)
        for n in range(500):
            view.store(f"m{n}", Rejected(f"INTERNAL: {os.urandom(2000).hex()}"), fresh=False)
        assert not cache.enabled
        assert view.outcome("m0", 60) is None
    assert len(warned) == 1
    assert "off for this run" in warned[0]
    assert "full" in warned[0]


def test_the_default_warning_is_a_python_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="is off for this run"):
        OutcomeCache(tmp_path / "file" / "c.sqlite3")


def test_the_quota_drops_what_was_not_used_for_long(path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    with OutcomeCache(path) as cache:
        view = cache.view(TARGET)
        for n in range(400):
            now[0] += 1
            view.store(f"m{n}", Rejected(f"INTERNAL: {os.urandom(1000).hex()}"), fresh=False)
            view.remember(f"p{n}", f"m{n}", host_placement=True)
        now[0] += 10 * 86400
        assert view.outcome("m0", 60) is not None  # used again: it stays
    quota = path.stat().st_size // 2
    with OutcomeCache(path, quota=quota) as cache:
        view = cache.view(TARGET)
        assert view.outcome("m0", 60) is not None
        assert view.outcome("m1", 60) is None
        assert view.outcome("m399", 60) is not None
        assert view.program("p1") is None
        assert view.program("p399") is not None
    assert path.stat().st_size <= quota


def test_a_row_of_another_version_is_as_good_as_absent(cache, view):
    view.store("m", COMPILED, fresh=False)
    cache.write("UPDATE answers SET outcome=?", (b"not zlib",))
    assert view.outcome("m", 60) is None
    assert view.seen("m") == []


def test_two_processes_at_once(path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from reducer.oracle.cache import OutcomeCache\n"
        "from reducer.oracle.outcome import Rejected\n"
        "from reducer.oracle.target import Target\n"
        "t = Target(libtpu='0.0.52', path='/x/libtpu.so', sha256='a' * 64)\n"
        "with OutcomeCache(Path(sys.argv[1]), warn=sys.exit) as cache:\n"
        "    view = cache.view(t)\n"
        "    for n in range(200):\n"
        "        view.store(f'm{n}', Rejected('INTERNAL: x'), fresh=False)\n"
        "        view.remember(f'p{n}', f'm{n}', host_placement=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    running = [subprocess.Popen([sys.executable, "-c", code, str(path)], env=environment) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    with OutcomeCache(path) as cache:
        view = cache.view(TARGET)
        assert {view.seen(f"m{n}")[0].count for n in range(200)} == {3}


def test_a_locked_file_costs_an_answer_not_the_run(path):
    warned = []
    with OutcomeCache(path, warn=warned.append) as cache:
        view = cache.view(TARGET)
        assert cache._connection is not None
        cache._connection.execute("PRAGMA busy_timeout=1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        view.store("m", COMPILED, fresh=False)
        assert view.outcome("m", 60) is None
        other.execute("ROLLBACK")
        other.close()
        view.store("m", COMPILED, fresh=False)
        assert view.outcome("m", 60) == COMPILED
    assert warned == []


LOOKED_AT = Compiled(Memory(temp=3), {"f32[4,8,128]": (0, 5)}, carried={})
OWED = Owed((Stack("float32", (4, 8, 128), (4,), "h", "eqns[0].body"),))


def test_what_a_program_owes_is_remembered_until_the_program_changes(view):
    view.remember("p", "m", host_placement=True, owed=OWED)
    view.remember("p", "m", host_placement=True)  # asked again by someone without interest in it
    assert view.program("p") == KnownProgram("m", True, None, OWED)


def test_an_outcome_without_buffers_does_not_answer_who_wants_them(view):
    view.store("m", COMPILED, fresh=False)
    assert view.outcome("m", 60, want_buffers=True) is None
    view.store("m", LOOKED_AT, fresh=False)
    assert view.outcome("m", 60, want_buffers=True) == LOOKED_AT
    view.store("m", COMPILED, fresh=False)
    assert view.outcome("m", 60, want_buffers=True) == LOOKED_AT
    assert len(view.seen("m")) == 1  # with and without are one way to come out


def test_buffers_that_could_not_be_read_are_not_asked_for_again(view):
    unread = Compiled(Memory(), unread="no text of the compiled program")
    view.store("m", unread, fresh=False)
    assert view.outcome("m", 60, want_buffers=True) == unread


def test_a_rejection_needs_no_buffers(view):
    view.store("m", BITCAST, fresh=False)
    assert view.outcome("m", 60, want_buffers=True) == BITCAST


def test_a_file_of_the_first_format_keeps_its_answers(path):
    with OutcomeCache(path) as cache:
        cache.view(TARGET).store("m", BITCAST, fresh=False)
        cache.view(TARGET).remember("p", "m", host_placement=True)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE programs DROP COLUMN owed")
        connection.execute("PRAGMA user_version=1")
    connection.close()
    with OutcomeCache(path) as cache:
        view = cache.view(TARGET)
        assert view.outcome("m", 60) == BITCAST
        assert view.program("p") == KnownProgram("m", True, None)
        view.remember("p", "m", host_placement=True, owed=OWED)
        assert view.program("p") == KnownProgram("m", True, None, OWED)
