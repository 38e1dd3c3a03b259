"""The outcome cache's file: one sqlite3 database that several processes write, within a quota.

It is never the reason that a run fails: a damaged file is moved aside, a full disk turns the cache off, each with one
warning. What is in the tables, and what of it may be believed, is `reducer.oracle.cache`'s business.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from reducer.oracle.cachedir import cache_root

QUOTA = 2 << 30
"""Largest size of the file, in bytes; the least recently used rows go first."""
_SCHEMA = 2
_CHECK_EVERY = 2000
_TABLES = """
CREATE TABLE programs(
    key TEXT PRIMARY KEY, module TEXT NOT NULL, host INTEGER NOT NULL, invalid TEXT, used REAL NOT NULL, owed BLOB
) WITHOUT ROWID;
CREATE TABLE answers(
    key TEXT NOT NULL, identity TEXT NOT NULL, outcome BLOB NOT NULL, seconds REAL NOT NULL,
    count INTEGER NOT NULL, fresh INTEGER NOT NULL, used REAL NOT NULL, PRIMARY KEY(key, identity)
);
CREATE INDEX answers_used ON answers(used);
CREATE INDEX programs_used ON programs(used);
"""

_R = TypeVar("_R")


class CacheFile:
    """The file. May be used from several threads and by several processes at once."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        quota: int = QUOTA,
        warn: Callable[[str], None] = lambda text: warnings.warn(text, RuntimeWarning, stacklevel=3),
    ) -> None:
        """`path` defaults to ``outcomes.sqlite3`` in the cache root. `warn` is called at most once or twice."""
        self.path = path or cache_root() / "outcomes.sqlite3"
        self._quota = quota
        self._warn = warn
        self._lock = threading.Lock()
        self._writes = 0
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._turn_off(error)

    @property
    def enabled(self) -> bool:
        """Whether anything is remembered; False after a full disk or the like."""
        return self._connection is not None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, query: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of `query`; none when the cache is off."""
        return self._do(lambda connection: connection.execute(query, arguments).fetchall()) or []

    def write(self, query: str, arguments: tuple[Any, ...]) -> None:
        """Run one statement in its own transaction."""

        def run(connection: sqlite3.Connection) -> None:
            connection.execute(query, arguments)
            self._writes += 1
            if self._writes % _CHECK_EVERY == 0:
                self._keep_quota(connection)

        self._do(run)

    def _do(self, action: Callable[[sqlite3.Connection], _R]) -> _R | None:
        with self._lock:
            if self._connection is None:
                return None
            try:
                return action(self._connection)
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or "busy" in str(error):
                    return None  # another process writes; one answer fewer is remembered
                self._turn_off(error)
            except (sqlite3.Error, OSError) as error:
                self._turn_off(error)
            return None

    def _turn_off(self, error: Exception) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self._warn(f"the outcome cache {self.path} is off for this run: {error}")

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._connect()
        except sqlite3.OperationalError:
            raise  # cannot open, read-only, full, locked: the file is not at fault
        except sqlite3.DatabaseError as error:
            for earlier in self.path.parent.glob(f"{self.path.name}.damaged-*"):
                earlier.unlink(missing_ok=True)  # one is kept to look at; more would be beyond the quota
            aside = self.path.with_name(f"{self.path.name}.damaged-{int(time.time())}-{os.getpid()}")
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.path}{suffix}")
            self._warn(f"the outcome cache {self.path} is damaged ({error}); moved aside to {aside.name}")
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > _SCHEMA:
                raise sqlite3.OperationalError(f"it is of format {version}, this program knows {_SCHEMA}")
            if version == 0:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only an empty file can be given it
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if version < _SCHEMA:
                self._create(connection)
            self._keep_quota(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        """Create the tables, or bring those of an older format to this one."""
        connection.execute("BEGIN IMMEDIATE")  # another process may be creating them: ask again inside
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
        elif version == 1:
            connection.execute("ALTER TABLE programs ADD COLUMN owed BLOB")
        if version < _SCHEMA:
            connection.execute(f"PRAGMA user_version={_SCHEMA}")
        connection.execute("COMMIT")

    def _keep_quota(self, connection: sqlite3.Connection) -> None:
        def size() -> int:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            return int(pages - free) * int(connection.execute("PRAGMA page_size").fetchone()[0])

        if size() <= self._quota:
            return
        while size() > self._quota * 3 // 4:
            gone = 0
            for table in ("answers", "programs"):
                gone += connection.execute(
                    f"DELETE FROM {table} WHERE used <= (SELECT used FROM {table} ORDER BY used "
                    f"LIMIT 1 OFFSET (SELECT count(*) / 4 FROM {table}))"
                ).rowcount
            if not gone:
                break
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would step once: one page
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
