"""Failures that only comparing shows, from a find to a case whose own script shows it again."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest

from reducer.corpus import Case, Corpus
from reducer.corpus.runner import Runner
from reducer.corpus.verify import Verdict, judge
from reducer.hunt import Exhausted, Find, Hunt
from reducer.hunt.besides import Besides
from reducer.hunt.workshop import RealWorkshop
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.ir.tiers import sort_of, tier_of
from reducer.oracle.beside import BesideOracle, Costs, Twinned
from reducer.oracle.outcome import Result
from reducer.oracle.pool import Pool
from reducer.oracle.programs import ProgramOracle
from reducer.oracle.verdict import Kind, verdict
from reducer.report.markdown import markdown

pytestmark = pytest.mark.slow

SEED = Path(__file__).parents[1] / "seed"
PAIR = "pair-differs with the barrier: bitcast-memory-space"


def seed(name: str) -> Program:
    return decode((SEED / f"{name}.json").read_bytes())


class Listed:
    def __init__(self, *programs: Program) -> None:
        self._programs = list(programs)

    def poll(self) -> Program | None:
        if not self._programs:
            raise Exhausted
        return self._programs.pop(0)

    def close(self) -> None:
        return None


def repro(folder: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-P", folder / "repro.py"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def the_case(folder: Path, signature: str) -> Case:
    (case,) = (entry for entry in Corpus(folder) if isinstance(entry, Case) and entry.signature == signature)
    return case


def test_a_pair_that_differs_is_found_shrunk_and_shown(pool: Pool, tmp_path: Path) -> None:
    if pool.target.libtpu != "0.0.52":
        pytest.skip(f"what libtpu {pool.target.libtpu} does was not looked at by hand")
    kinds: tuple[Kind, ...] = ("pair-differs",)
    # Of the twins of this program the one that is chosen follows from the program; here it is to be this one.
    besides = Besides(lambda _: BesideOracle(pool, Twinned("with the barrier")), kinds, share=1)
    summary = Hunt(
        Listed(seed("trip_count_one_no_barrier")),
        ProgramOracle(pool, want_ledger=True),
        RealWorkshop(pool, Corpus(tmp_path, report=markdown), seed=0, budget=80),
        seconds=1e6,
        grace=1e6,
        kinds=kinds,
        besides=besides,
    ).run()
    # Other pairs that differ are met while it shrinks.
    row, *_ = summary.signatures
    assert (row.signature, row.kind, row.finds) == (PAIR, "pair-differs", 1)
    assert (summary.compiled, summary.compared, summary.failing) == (1, 1, 0)
    case = the_case(tmp_path, PAIR)
    assert case.minimum.size <= 6
    assert case.equivalence is not None
    assert (case.equivalence.same_as, case.equivalence.largest_difference) == ("with the barrier", 0.0)
    code, said = repro(tmp_path / case.slug)
    assert code == 0, said
    assert "beside:   rejected" in said
    with Runner(Corpus(tmp_path), pool.target.path) as run:
        assert judge(case, run(case)) is Verdict.AS_RECORDED


def test_an_offload_that_costs_is_kept_with_a_script_that_shows_it(pool: Pool, tmp_path: Path) -> None:
    """A lost offload costs as well; asked about cost alone, it stands for one that is kept and costs."""
    oracle = BesideOracle(pool, Costs())
    program = seed("flat")
    result = oracle.submit(program).result()
    assert result.beside is not None
    assert result.beside.differs == ""
    assert verdict(result).word == "ok"
    nested = seed("nested")
    results = [answer.result() for answer in _large(pool, nested)]
    beside = Costs().compared(results)
    assert (beside.differs, "scaled up it needs" in beside.text) == ("offload-costs", True)
    find = _find(nested, "offload-costs", "offload-costs")
    workshop = _Fixed(pool, Corpus(tmp_path, report=markdown), msgspec.structs.replace(result, beside=beside))
    workshop.keep(find)
    code, said = repro(tmp_path / the_case(tmp_path, "offload-costs").slug)
    assert code == 0, said
    assert "with the offload" in said


def test_a_slow_compile_is_shrunk_by_a_fixed_limit(pool: Pool, tmp_path: Path) -> None:
    """With a limit of nothing every program is slow, so that nothing depends on the machine."""
    find = _find(seed("flat"), "slow-compile", "slow-compile")
    find.limit = 1e-6
    workshop = RealWorkshop(pool, Corpus(tmp_path, report=markdown), seed=0, budget=10)
    assert workshop.confirm(find)
    workshop.reduce(find, lambda _: None)
    workshop.keep(find)
    assert find.size < size(find.start)
    case = the_case(tmp_path, "slow-compile")
    assert (case.kind, case.signature) == ("slow-compile", "slow-compile")
    (record,) = case.outcomes
    assert record.slow_limit == 1e-6
    code, said = repro(tmp_path / case.slug)
    assert (code, "are slow" in said) == (0, True), said
    with Runner(Corpus(tmp_path), pool.target.path) as run:
        assert judge(case, run(case)) is Verdict.AS_RECORDED
    fast = msgspec.structs.replace(find, limit=1e6)
    assert not workshop.confirm(fast)


def _large(pool: Pool, program: Program) -> list[Future[Result]]:
    from reducer.oracle.programs import program_job

    return [pool.submit(program_job(other), want_ledger=True) for other in Costs().others(program)]


class _Fixed(RealWorkshop):
    """Gives one answer about a find as it is."""

    def __init__(self, pool: Pool, corpus: Corpus, answer: Result) -> None:
        super().__init__(pool, corpus, seed=0)
        self._answer = answer

    def _asked(self, find: Find) -> Result:
        del find
        return self._answer


def _find(program: Program, kind: Kind, signature: str) -> Find:
    return Find(
        signature=signature,
        family=kind,
        slug=kind,
        kind=kind,
        start=program,
        program=program,
        message="",
        strategy="",
        tier=tier_of(program),
        sort=sort_of(program),
        started_size=size(program),
        first_seconds=0.0,
        size=size(program),
    )
