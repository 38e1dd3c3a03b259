from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reducer.cli import session
from reducer.oracle.jobs import Job
from reducer.oracle.outcome import Answer
from reducer.oracle.target import Target, check_options

from .fakes import COMPILED, TARGET, Opened


@pytest.fixture
def answers() -> Callable[[Job], Answer]:
    return lambda _: COMPILED


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch, answers: Callable[[Job], Answer]) -> Iterator[Opened]:
    """Pools that answer by `answers`, or by what a test puts into `pools.answer`; any release resolves."""
    opened = Opened(answers)

    def resolve(spec: str | None, topology: str, options: object) -> Target:
        return Target(
            libtpu=spec or TARGET.libtpu,
            path=TARGET.path,
            sha256=TARGET.sha256 if spec is None else "b" * 64,
            topology=topology,
            options=check_options(options),  # type: ignore[arg-type]
        )

    from reducer.cli import certificates, certify, check

    monkeypatch.setattr(session, "open_pool", opened)
    monkeypatch.setattr(check, "open_pool", opened)
    monkeypatch.setattr(certificates, "open_pool", opened)
    monkeypatch.setattr(certify, "open_pool", opened)
    monkeypatch.setattr(session, "resolve_target", resolve)
    return opened
