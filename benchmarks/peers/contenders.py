"""The contenders, each called as a library with the adapter that suits it best. All ask `Meter.fails`.

They are no dependencies of scanshrink: `requirements-peers.txt` says what to install, and each is imported when it is
wanted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from peers.contest import Meter, Spent
from peers.texts import Outline
from reducer.ir.equations import Program

Contender = Callable[[Meter], Program | None]


def ddmin(meter: Meter) -> Program:
    """picire's ddmin on the flat list of parts, complements first."""
    import picire

    def test(config: Iterable[int], _: object) -> Any:
        return picire.Outcome.FAIL if meter.fails(config) else picire.Outcome.PASS

    reducer = picire.DD(test, cache=picire.ConfigCache(), subset_first=False)
    return meter.parts.program(reducer(list(range(len(meter.parts)))))


def hddr(meter: Meter) -> Program:
    """picireny's HDDr with pruning and hoisting, to its fixpoint, on the tree of parts."""
    import picire
    from picireny.hdd_tree import HDDRule, HDDToken
    from picireny.hddr import hddrmin
    from picireny.hoist import hoist
    from picireny.prune import prune

    parts = meter.parts.parts

    def tree(number: int) -> Any:
        part = parts[number]
        name = "equation" if part.is_equation else "detail"
        if not part.children:
            return HDDToken(name, f"{number} ", replace="")
        rule = HDDRule(name, replace="")
        # A region without its head is unwrapped.
        rule.add_children([HDDToken("head", f"{number} ", replace=""), *map(tree, part.children)])
        return rule

    def numbers(text: str) -> frozenset[int]:
        return frozenset(map(int, text.split()))

    class Tester:
        def __init__(self, test_builder: Callable[[Any], str]) -> None:
            self.build = test_builder

        def __call__(self, config: Any, _: object) -> Any:
            return picire.Outcome.FAIL if meter.fails(numbers(self.build(config))) else picire.Outcome.PASS

    root = HDDRule("program", replace="")
    root.add_children([tree(number) for number in meter.parts.top])
    root = hddrmin(
        root,
        reduce_class=picire.DD,
        reduce_config={"subset_first": False},
        tester_class=Tester,
        tester_config={},
        cache=picire.ContentCache(),
        unparse_with_whitespace=False,
        transformations=(prune, hoist),
    )
    return meter.parts.program(numbers(root.unparse(with_whitespace=False)))


def lithium(meter: Meter) -> Program:
    """Lithium's `minimize` on lines, one for each part."""
    from lithium.strategies import Minimize
    from lithium.testcases import TestcaseLine

    outline = Outline(meter.parts)
    case = TestcaseLine()
    case.split_parts("".join(outline.lines()).encode())
    walk = Minimize().reduce(case)
    for attempt in walk:
        walk.feedback(_judge(meter, outline.of_text(b"".join(attempt.parts))))
    kept = outline.of_text(b"".join(walk.testcase.parts))
    assert kept is not None
    return meter.parts.program(kept)


def _judge(meter: Meter, kept: frozenset[int] | None) -> bool:
    return meter.malformed() if kept is None else meter.fails(kept)


def shrink_ray_json(meter: Meter) -> Program:
    """Shrink Ray on JSON: a list for each region."""
    outline = Outline(meter.parts)
    return _shrink_ray(meter, outline.json().encode(), outline.of_json)


def shrink_ray_text(meter: Meter) -> Program:
    """Shrink Ray on the text with braces."""
    outline = Outline(meter.parts)
    return _shrink_ray(meter, outline.text().encode(), outline.of_text)


def _shrink_ray(meter: Meter, start: bytes, read: Callable[[bytes], frozenset[int] | None]) -> Program:
    import trio
    from shrinkray.problem import BasicReductionProblem
    from shrinkray.reducer import ShrinkRay
    from shrinkray.work import Volume, WorkContext

    async def interesting(data: bytes) -> bool:
        return _judge(meter, read(data))

    async def reduce() -> bytes:
        work = WorkContext(random=random.Random(0), parallelism=1, volume=Volume.quiet)
        problem: Any = BasicReductionProblem(start, interesting, work)
        await ShrinkRay(target=problem).run()
        result: bytes = problem.current_test_case
        return result

    try:
        kept = read(trio.run(reduce))
    except BaseExceptionGroup as group:
        if group.split(Spent)[1] is None:
            raise Spent from None
        raise
    assert kept is not None
    return meter.parts.program(kept)


def hypothesis_stock(meter: Meter) -> Program:
    """Hypothesis' `find`, whose shrinker stops after 500 successes or 300 seconds."""
    return _find(meter)


def hypothesis_unlimited(meter: Meter) -> Program:
    """Hypothesis' `find` with these limits raised."""
    from hypothesis.internal.conjecture import engine

    limits: Any = engine
    before = limits.MAX_SHRINKS, limits.MAX_SHRINKING_SECONDS
    limits.MAX_SHRINKS, limits.MAX_SHRINKING_SECONDS = 10**6, 10**6
    try:
        return _find(meter)
    finally:
        limits.MAX_SHRINKS, limits.MAX_SHRINKING_SECONDS = before


def _find(meter: Meter) -> Program:
    """`find`, starting from all parts: each is kept or not, those of a region are drawn inside its own draw."""
    from hypothesis import HealthCheck, Phase, core, find, settings
    from hypothesis import strategies as st
    from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes

    parts = meter.parts.parts

    @st.composite
    def some(draw: Callable[[Any], Any], numbers: tuple[int, ...]) -> frozenset[int]:
        kept: set[int] = set()
        for number in numbers:
            if parts[number].children:
                kept |= draw(region(number))
            elif draw(st.booleans()):
                kept.add(number)
        return frozenset(kept)

    @st.composite
    def region(draw: Callable[[Any], Any], number: int) -> frozenset[int]:
        own: frozenset[int] = frozenset({number} if draw(st.booleans()) else ())
        inside: frozenset[int] = draw(some(parts[number].children))
        return own | inside

    database = InMemoryExampleDatabase()
    # The smallest known failure (the primary key) would be replayed, not shrunk.
    database.save(b"start.secondary", choices_to_bytes([True] * len(parts)))
    # Its argument `random` would turn the database off.
    core.threadlocal._hypothesis_global_random = random.Random(0)
    rules = settings(
        database=database,
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    kept = find(some(meter.parts.top), meter.fails, settings=rules, database_key=b"start")
    return meter.parts.program(kept)
