"""Opening what commands work with: targets, pools of workers, the outcome cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import click

from reducer.cli.common import one_line
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.pool import DEFAULT_TIMEOUT, Pool, require_compatible
from reducer.oracle.target import DEFAULT_TOPOLOGY, Options, Target, check_options, parse_option, resolve_target


def parse_options(options: Sequence[str]) -> Options:
    """Read repeated ``--option NAME=VALUE``.

    Raises:
        TargetError: one is malformed.
    """
    return check_options(parse_option(text) for text in options)


def targets(libtpus: Sequence[str], topology: str | None, options: Options) -> list[Target]:
    """One target per ``--libtpu``, or the installed release.

    Raises:
        TargetError: unknown release, path, topology or option.
    """
    return [resolve_target(spec, topology or DEFAULT_TOPOLOGY, options) for spec in libtpus or (None,)]


@contextlib.contextmanager
def open_pool(target: Target, jobs: int, *, timeout: float | None = None, use_cache: bool = True) -> Iterator[Pool]:
    """A pool of `jobs` workers for a target that can compile here, with the persistent outcome cache.

    Raises:
        TargetError: this jaxlib and this libtpu cannot work together, or the compiler refuses the options.
        WorkerError: no worker can be started.
    """
    with contextlib.ExitStack() as stack:
        cache = stack.enter_context(OutcomeCache(warn=warn)) if use_cache else None
        pool = stack.enter_context(Pool(target, jobs, timeout=timeout or DEFAULT_TIMEOUT, cache=cache))
        yield pool


def warn(text: str) -> None:
    """Print a warning on stderr; the command goes on."""
    click.echo(f"warning: {one_line(text)}", err=True)


__all__ = ["open_pool", "parse_options", "require_compatible", "targets", "warn"]
