from __future__ import annotations

from pathlib import Path

import pytest

from reducer.oracle.cachedir import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test begins without a journal: most reduce the same programs."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder
