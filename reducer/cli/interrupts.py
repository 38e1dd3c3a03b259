"""Ctrl-C and its kin during a command that has something to save.

Python raises `KeyboardInterrupt` wherever it happens to be, also between two lines that belong together. While a
command runs that must lose nothing, the signals only call a function; what it does is up to the command.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

#: After so many a person has to be believed: the process goes, whatever it is doing.
_PATIENCE = 4


class Interrupts:
    """Takes SIGINT, SIGTERM and SIGHUP while in the context; to be used by the main thread.

    Until `deliver` is called they raise `KeyboardInterrupt`, as there is nothing to lose yet.
    """

    def __init__(self) -> None:
        self.count = 0
        self._to: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def deliver(self, to: Callable[[], None]) -> None:
        """From now on each signal calls `to`, which must not block."""
        self._to = to

    @property
    def delivered(self) -> bool:
        """Whether there is something to lose."""
        return self._to is not None

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup asks for hang-ups to be ignored. A shell ignores SIGINT for what it puts into the background, but
            # whoever sends it there by hand means it.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (a handler's signature)
        self.count += 1
        if self._to is None or self.count >= _PATIENCE:
            raise KeyboardInterrupt
        self._to()
