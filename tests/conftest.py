"""What every test shares: Hypothesis profiles, a private cache folder, and the real compiler on demand."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from reducer.oracle.pool import Pool

# No deadlines: on a shared machine a slow example says nothing about the code. `ci` is the same on every run, so
# a red build is the change's doing; `dev` explores, and remembers what it found.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# A run in the background of a shell, or under nohup, ignores these, and every process it starts would too: tests that
# send them would wait for ever.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give this run a cache of its own, so that no test reads an outcome that another run measured.

    Fetched libtpu releases (hundreds of megabytes each, never changed) stay shared with the user's cache, and so
    do the remembered hashes of these files.
    """
    from reducer.oracle import cachedir, releases

    own = tmp_path_factory.mktemp("cache")
    shared = releases.releases_folder()
    shared.mkdir(parents=True, exist_ok=True)
    (own / shared.name).symlink_to(shared, target_is_directory=True)
    hashes = cachedir.cache_root() / "sha256.json"
    if hashes.is_file():
        shutil.copy(hashes, own / hashes.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cachedir.CACHE_VARIABLE, str(own))
        yield own


@pytest.fixture(scope="session")
def pool(private_cache: Path) -> Iterator[Pool]:
    """Two warm workers of the installed libtpu at the default topology, without an outcome cache."""
    del private_cache  # must be set before a worker inherits the environment
    from reducer.oracle.pool import Pool
    from reducer.oracle.target import resolve_target

    with Pool(resolve_target(), workers=2) as shared:
        yield shared
