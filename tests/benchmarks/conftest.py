"""The benchmarks are scripts in a folder of their own; these tests import what they share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
        yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("peers", "common")]:
        del sys.modules[name]
