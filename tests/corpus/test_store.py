"""The store: distinct failures, smaller finds, damaged cases, folders that cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, Corpus, Damaged, Start, Status, TierMinimum, encode_case, load_case, slug_for
from reducer.corpus import atomic as atomic_module
from reducer.corpus.verify import verify
from reducer.corpus.notes import REDUCTION_ENDED
from reducer.errors import InputError, StorageError

from .cases import FILES, TARGET, chain, placed, record

Make = Callable[..., Case]
OTHER = "b" * 64


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock, with its bytes."""
    files = (p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob(".*") if p.name != ".lock"]


class TestAdd:
    def test_a_new_failure_becomes_a_folder(self, corpus: Corpus, make: Make) -> None:
        result = corpus.add(make(), FILES)
        assert (result.status, result.case) == (Status.NEW, make())
        assert result.path == corpus.folder / make().slug
        assert sorted(p.name for p in result.path.iterdir()) == ["case.json", "program.mlir", "report.md", "repro.py"]
        assert list(corpus) == [make()]
        assert corpus.get(make().slug) == make()
        assert corpus.read(make().slug, "repro.py") == b"print('repro')\n"

    def test_the_same_find_again_is_counted(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(), FILES)
        before = tree(corpus.folder)
        result = corpus.add(make(), {"repro.py": "other", "program.mlir": "other"})
        assert (result.status, result.case) == (Status.KEPT, make(finds=2))
        after = tree(corpus.folder)
        assert {name for name in after if after[name] != before[name]} == {f"{make().slug}/case.json"}

    def test_a_larger_find_is_only_counted(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(5), FILES)
        assert corpus.add(make(7, finds=3), FILES).status is Status.KEPT
        assert list(corpus) == [make(5, finds=4)]

    def test_a_smaller_find_replaces_program_files_and_history(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(5, outcomes=(record(libtpu="0.0.50.1", sha=OTHER), *make().outcomes)), FILES)
        find = make(3, start=Start(tier="program", size=12, program=chain(12)))
        files = {"repro.py": "smaller", "program.mlir": "smaller module", "report.md": "smaller report"}
        result = corpus.add(find, files)
        # The outcome on 0.0.50.1 was that of another program.
        assert (result.status, result.case) == (Status.SMALLER, msgspec.structs.replace(find, finds=2))
        assert {n: t.decode() for n, t in tree(result.path).items() if n != "case.json"} == files

    def test_a_smaller_form_of_the_same_find_is_not_counted_again(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(5), FILES)
        assert corpus.add(make(4), FILES, count=False).case.finds == 1
        assert corpus.add(make(4), FILES, count=False).status is Status.KEPT

    def test_kind_signature_and_tier_tell_cases_apart(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(), FILES)
        other = make(signature="async-start")
        same = {"readable": "x", "signature": make().signature}
        lost = make(kind="lost-offload", slug=slug_for(**same, kind="lost-offload", tier="program"))
        tiers = {"placement": TierMinimum(size=1, program=placed(), script="repro.py", module="program.mlir")}
        low = make(tiers=tiers, slug=slug_for(**same, kind="error", tier="placement"))
        for case in (other, lost, low):
            assert corpus.add(case, FILES).status is Status.NEW
        assert sorted(c.slug for c in corpus) == sorted(c.slug for c in (make(), other, lost, low))

    def test_better_words_do_not_make_a_second_case(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(), FILES)
        renamed = make(slug=slug_for("better words", kind="error", signature=make().signature, tier="program"))
        assert corpus.add(renamed, FILES).case == make(finds=2)

    def test_a_find_on_another_release_is_another_case_until_its_outcome_is_known(
        self, corpus: Corpus, make: Make
    ) -> None:
        target = msgspec.structs.replace(TARGET, libtpu="0.0.50.1", sha256=OTHER)
        elsewhere = record(libtpu="0.0.50.1", sha=OTHER, signature=make().signature)
        find = make(3, target=target, outcomes=(elsewhere,))
        corpus.add(make(5), FILES)
        result = corpus.add(find, FILES)
        assert (result.status, result.case.slug) == (Status.NEW, f"{make().slug}-0-0-50-1")
        assert corpus.add(find, FILES).case.finds == 2
        shutil.rmtree(result.path)
        corpus.update(make().slug, lambda case: case.with_outcomes(elsewhere))
        assert corpus.add(find, FILES).status is Status.SMALLER
        assert len(list(corpus)) == 1

    def test_of_two_releases_that_fail_alike_a_find_joins_its_own(self, corpus: Corpus, make: Make) -> None:
        target = msgspec.structs.replace(TARGET, libtpu="0.0.50.1", sha256=OTHER)
        elsewhere = record(libtpu="0.0.50.1", sha=OTHER, signature=make().signature)
        corpus.add(make(5), FILES)
        own = corpus.add(make(4, target=target, outcomes=(elsewhere,)), FILES).case.slug
        corpus.update(make().slug, lambda case: case.with_outcomes(elsewhere))
        result = corpus.add(make(3, target=target, outcomes=(elsewhere,)), FILES)
        assert (result.status, result.case.slug) == (Status.SMALLER, own)
        assert [case.minimum.size for case in corpus if isinstance(case, Case)] == [5, 3]

    def test_a_lower_tier_joins_the_case(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(), FILES)
        module = TierMinimum(size=4, module="stablehlo.mlir", script="repro_stablehlo.py", order_key=(4,))
        find = make(7, tiers={"program": make(7).minimum, "stablehlo": module})
        result = corpus.add(find, FILES | {"stablehlo.mlir": "module @a {}", "repro_stablehlo.py": "pass"})
        assert result.status is Status.SMALLER
        assert result.case.tiers == {"program": make().minimum, "stablehlo": module}
        assert corpus.read(make().slug, "repro.py") == FILES["repro.py"].encode()
        assert corpus.read(make().slug, "stablehlo.mlir") == b"module @a {}"
        again = msgspec.structs.replace(module, order_key=(5,))
        find = make(7, tiers={"program": make(7).minimum, "stablehlo": again})
        result = corpus.add(find, FILES | {"stablehlo.mlir": "x", "repro_stablehlo.py": "y"})
        assert (result.status, result.case.tiers["stablehlo"]) == (Status.KEPT, module)
        assert corpus.read(make().slug, "stablehlo.mlir") == b"module @a {}"

    def test_a_shrunk_case_stays_so_when_another_find_of_it_is_not(self, corpus: Corpus, make: Make) -> None:
        corpus.add(make(3, notes=("seen",)), FILES)
        assert corpus.add(make(5, notes=(REDUCTION_ENDED, "twice")), FILES).case.notes == ("seen", "twice")
        assert corpus.add(make(2, notes=(REDUCTION_ENDED,)), FILES).case.notes == ("seen", "twice", REDUCTION_ENDED)
        assert corpus.add(make(1), FILES).case.notes == ("seen", "twice")

    def test_a_person_s_notes_stay_and_a_tier_s_old_files_go(self, corpus: Corpus, make: Make) -> None:
        path = corpus.add(make(5), FILES).path
        (path / "NOTES.txt").write_text("mine")
        minimum = msgspec.structs.replace(make(3).minimum, module="small.mlir")
        corpus.add(make(3, tiers={"program": minimum}), {"repro.py": "r", "small.mlir": "m"})
        assert sorted(os.listdir(path)) == ["NOTES.txt", "case.json", "report.md", "repro.py", "small.mlir"]

    def test_a_case_without_options_is_preferred(self, corpus: Corpus, make: Make) -> None:
        flagged = make(3, target=msgspec.structs.replace(TARGET, options={"xla_flag": True}))
        corpus.add(flagged, FILES)
        assert corpus.add(make(5), FILES).status is Status.SMALLER
        assert corpus.add(flagged, FILES).status is Status.KEPT

    def test_a_named_file_must_be_given(self, corpus: Corpus, make: Make) -> None:
        with pytest.raises(InputError, match=r"names repro\.py"):
            corpus.add(make(), {"program.mlir": ""})
        assert not corpus.folder.exists()

    @pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", ".hidden", "a\x00b", "x" * 200])
    def test_a_file_name_cannot_leave_the_folder(self, corpus: Corpus, make: Make, name: str) -> None:
        with pytest.raises(InputError, match="cannot name a file of a case"):
            corpus.add(make(), {**FILES, name: "x"})
        assert tree(corpus.folder) == {}

    def test_an_invalid_case_is_never_written(self, corpus: Corpus, make: Make) -> None:
        with pytest.raises(InputError, match="finds"):
            corpus.add(make(finds=0), FILES)
        assert not corpus.folder.exists()


def test_threads_share_a_corpus(corpus: Corpus, make: Make) -> None:
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda size: corpus.add(make(size), FILES), [9, 8, 7, 6, 5, 4, 3, 2] * 2))
    assert list(corpus) == [make(2, finds=16)]
    assert sum(r.status is Status.NEW for r in results) == 1


def test_reports_are_rendered_from_the_stored_case(tmp_path: Path, make: Make) -> None:
    corpus = Corpus(tmp_path, report=lambda case: f"{case.minimum.size} {len(case.outcomes)}\ud800")
    slug = corpus.add(make(5), FILES).case.slug
    assert corpus.read(slug, "report.md") == b"5 1\\ud800"
    corpus.update(slug, lambda case: case.with_outcomes(record(libtpu="0.0.9", sha=OTHER)))
    assert corpus.read(slug, "report.md") == b"5 2\\ud800"
    assert [r.libtpu for r in corpus.get(slug).outcomes] == ["0.0.9", "0.0.52"]


class TestRead:
    def test_a_missing_corpus_is_empty_and_is_not_made(self, corpus: Corpus) -> None:
        assert list(corpus) == []
        assert not corpus.folder.exists()

    def test_damaged_cases_are_reported_and_skipped(self, corpus: Corpus, make: Make, tmp_path: Path) -> None:
        good = corpus.add(make(), FILES).case
        for name, data in {"a-broken": b"{", "a-empty": b"", "z-newer": b'{"format": 99}'}.items():
            (corpus.folder / name).mkdir()
            (corpus.folder / name / "case.json").write_bytes(data)
        (corpus.folder / "a-folder").mkdir()
        shutil.copytree(corpus.path(good.slug), corpus.folder / "z-copy")
        shutil.copytree(corpus.path(good.slug), tmp_path / "outside")
        (corpus.folder / "z-link").symlink_to(tmp_path / "outside")
        (corpus.folder / "README.md").write_text("not a case")
        (corpus.folder / "__pycache__").mkdir()
        entries = list(corpus)
        damaged = {e.path.name: e.reason for e in entries if isinstance(e, Damaged)}
        assert [e for e in entries if isinstance(e, Case)] == [good]
        assert {name: reason.split(": ", 1)[1][:30] for name, reason in damaged.items()} == {
            "a-broken": "Input data was truncated (expe",
            "a-empty": "Input data was truncated (expe",
            "a-folder": str(corpus.folder / "a-folder" / "case.json")[:30],
            "z-copy": "the case calls itself bitcast-",
            "z-link": "is a symbolic link (a case is ",
            "z-newer": "written by a newer scanshrink ",
        }

    def test_a_folder_name_that_is_no_text(self, corpus: Corpus) -> None:
        corpus.folder.mkdir()
        os.mkdir(os.fsencode(corpus.folder) + b"/caf\xe9")
        (entry,) = corpus
        assert isinstance(entry, Damaged)
        assert "caf\\udce9/case.json" in entry.reason
        result = verify(corpus, lambda _: record()).as_json()
        assert result["results"][0]["case"] == "caf\\udce9"

    def test_get_says_what_is_wrong(self, corpus: Corpus, make: Make) -> None:
        slug = corpus.add(make(), FILES).case.slug
        with pytest.raises(InputError, match=f"no case {slug[:-1]} in .*did you mean {slug}"):
            corpus.get(slug[:-1])
        with pytest.raises(InputError, match="is not the name of a case"):
            corpus.get("../x")
        (corpus.path(slug) / "case.json").write_bytes(b"[]")
        with pytest.raises(InputError, match=r"case\.json"):
            corpus.get(slug)

    def test_a_file_of_a_case_is_read_without_following_links(self, corpus: Corpus, make: Make) -> None:
        slug = corpus.add(make(), FILES).case.slug
        (corpus.path(slug) / "secret.mlir").symlink_to("/etc/passwd")
        with pytest.raises(InputError, match="is a symbolic link"):
            corpus.read(slug, "secret.mlir")
        with pytest.raises(InputError, match="cannot name a file"):
            corpus.read(slug, "../../x")

    def test_a_corpus_that_is_a_file(self, tmp_path: Path, make: Make) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="cannot list"):
            list(Corpus(tmp_path / "file"))
        for folder in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(StorageError, match="choose another folder"):
                Corpus(folder).add(make(), FILES)

    def test_a_damaged_case_is_not_overwritten(self, corpus: Corpus, make: Make) -> None:
        slug = corpus.add(make(), FILES).case.slug
        (corpus.path(slug) / "case.json").write_bytes(b"{")
        result = corpus.add(make(), FILES)
        assert (result.status, result.case.slug) == (Status.NEW, f"{slug}-0-0-52")
        assert (corpus.path(slug) / "case.json").read_bytes() == b"{"
        assert corpus.add(make(), FILES).case == make(slug=f"{slug}-0-0-52", finds=2)


def test_update_keeps_the_slug_and_the_other_files(corpus: Corpus, make: Make) -> None:
    slug = corpus.add(make(), FILES).case.slug
    case = corpus.update(slug, lambda c: msgspec.structs.replace(c, slug="other", notes=("seen",)), {"extra.txt": b"e"})
    assert case == make(notes=("seen",)) == corpus.get(slug)
    assert corpus.read(slug, "extra.txt") == b"e"
    assert corpus.read(slug, "repro.py") == FILES["repro.py"].encode()
    with pytest.raises(InputError, match="no case"):
        corpus.update("nothing-here", lambda c: c)


class TestUnwritable:
    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that not even root can write to")
    def test_a_read_only_folder(self, make: Make) -> None:
        with pytest.raises(StorageError, match=r"cannot write /proc/corpus.*"):
            Corpus(Path("/proc/corpus")).add(make(), FILES)

    @pytest.mark.parametrize("call", ["write", "fsync", "open", "rename", "replace", "mkdir"])
    @pytest.mark.parametrize("at", [0, 1, 3, 6])
    def test_a_disk_that_fills_up_at_any_call(
        self, corpus: Corpus, make: Make, monkeypatch: pytest.MonkeyPatch, call: str, at: int
    ) -> None:
        slug = corpus.add(make(5), FILES).case.slug
        before = tree(corpus.folder)
        real, calls = getattr(os, call), 0

        def full(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls > at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(atomic_module.os, call, full)
            for find, files in ((make(3), FILES), (make(signature="other"), FILES), (make(9), FILES)):
                try:
                    corpus.add(find, files)
                except StorageError as error:
                    assert "No space left on device (the disk is full" in str(error)  # noqa: PT017
        # Whatever succeeded is whole, and whatever failed left the old state.
        assert {type(entry) for entry in corpus} == {Case}
        kept = corpus.get(slug)
        assert kept.minimum.size in (3, 5)
        if calls > at and kept == make(5) and len(corpus.slugs()) == 1:
            # Where no folder can be opened none can be emptied: a hidden leftover may wait for the next writer.
            assert {n: t for n, t in tree(corpus.folder).items() if not n.startswith(".")} == before
        assert corpus.add(make(2), FILES).status is Status.SMALLER
        assert leftovers(corpus.folder) == []

    def test_a_really_full_disk(self, corpus: Corpus, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        slug = corpus.add(make(5), FILES).case.slug
        before = tree(corpus.folder)
        real = os.open

        def full(path: object, flags: int, *args: int, **kwargs: int) -> int:
            return real("/dev/full" if flags & os.O_CREAT else path, flags & ~os.O_NOFOLLOW, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(atomic_module.os, "open", full)
            # The lock file is opened by the same function.
            monkeypatch.setattr("reducer.corpus.store.FileLock", NoLock)
            with pytest.raises(StorageError, match=rf"cannot write .*{slug}: No space left on device"):
                corpus.add(make(3), FILES)
        assert tree(corpus.folder) == before
        assert leftovers(corpus.folder) == []

    def test_a_disk_that_fills_up_while_a_case_is_copied(
        self, corpus: Corpus, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slug = corpus.add(make(5), FILES).case.slug

        def full(*_: object, **__: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a", None, "b")

        with monkeypatch.context() as patch:
            patch.setattr(atomic_module.shutil, "copyfile", full)
            with pytest.raises(StorageError, match=rf"cannot write [^:]*{slug}: No space left on device \("):
                corpus.add(make(3), FILES)
        assert corpus.get(slug) == make(5)


class NoLock:
    def __init__(self, *_: object) -> None:
        pass

    def acquire(self, **_: object) -> None:
        pass

    def release(self) -> None:
        pass


class TestRecovery:
    """What a process that died between two steps leaves, put right by whoever comes next."""

    def test_between_the_renames_the_old_case_is_still_there(self, corpus: Corpus, make: Make) -> None:
        path = corpus.add(make(), FILES).path
        path.rename(path.with_name(f".old-{path.name}"))
        (corpus.folder / f".new-{path.name}").mkdir()
        assert list(corpus) == [make()]
        assert leftovers(corpus.folder) == []

    def test_after_the_renames_the_new_case_counts(self, corpus: Corpus, make: Make) -> None:
        path = corpus.add(make(3), FILES).path
        shutil.copytree(path, path.with_name(f".old-{path.name}"))
        assert list(corpus) == [make(3)]
        assert corpus.add(make(3), FILES).case.finds == 2
        assert leftovers(corpus.folder) == []

    def test_a_half_written_folder_or_file_is_removed_by_the_next_writer(self, corpus: Corpus, make: Make) -> None:
        path = corpus.add(make(), FILES).path
        (corpus.folder / ".new-other").mkdir()
        (corpus.folder / ".new-other" / "case.json").write_bytes(b"{")
        (path / ".new-case.json").write_bytes(b"{")
        assert list(corpus) == [make()]
        corpus.add(make(), FILES)
        assert leftovers(corpus.folder) == []

    def test_a_link_named_like_a_leftover_is_removed_and_not_followed(
        self, corpus: Corpus, make: Make, tmp_path: Path
    ) -> None:
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "file").write_text("keep")
        corpus.add(make(), FILES)
        (corpus.folder / ".new-x").symlink_to(precious)
        (corpus.path(make().slug) / "repro.py").unlink()
        (corpus.path(make().slug) / "repro.py").symlink_to(precious / "file")
        corpus.add(make(3), FILES)
        assert (precious / "file").read_text() == "keep"
        assert corpus.read(make().slug, "repro.py") == FILES["repro.py"].encode()

    def test_a_corpus_that_cannot_be_locked_is_still_read(
        self, corpus: Corpus, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = corpus.add(make(), FILES).path
        path.rename(path.with_name(f".old-{path.name}"))

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr("reducer.corpus.store.FileLock.acquire", refuse)
        assert list(corpus) == [make()]
        assert corpus.get(make().slug) == make()
        assert path.with_name(f".old-{path.name}").is_dir()


def test_encode_matches_what_is_stored(corpus: Corpus, make: Make) -> None:
    path = corpus.add(make(), FILES).path
    assert (path / "case.json").read_bytes() == encode_case(make())
    assert load_case(path) == make()
