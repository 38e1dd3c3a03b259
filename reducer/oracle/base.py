"""The seam between a reducer and a compiler: `Oracle`, all that the driver, the hunt and the bisector need to know.

A candidate may be a program of any tier, a module's text, or in tests a plain integer: whoever builds the oracle
says how a candidate becomes a job. Nothing here imports JAX, or a worker process.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, TypeVar

from reducer.oracle.outcome import Result

C_contra = TypeVar("C_contra", contravariant=True)


class Oracle(Protocol[C_contra]):
    """Says what happens to a candidate on one fixed target."""

    @property
    def workers(self) -> int:
        """How many candidates are answered at once; submitting more only queues them."""
        ...

    def submit(self, candidate: C_contra, *, fresh: bool = False) -> Future[Result]:
        """Queue `candidate` and return a future of its result.

        `fresh` asks for a new worker process and bypasses the outcome cache: the repeat that confirms a crash or
        a timeout. A queued future can be cancelled; one that runs cannot.

        The future raises `WorkerError` or `TargetError` when no worker can be had, never for what a program does.
        """
        ...
