"""What a program asked to keep in host memory, and where the compiler really put it."""

from reducer.ledger.buffers import Buffers, buffers_of
from reducer.ledger.judge import Line, judge, loss_text
from reducer.ledger.owed import Stack, owed_stacks

__all__ = ["Buffers", "Line", "Stack", "buffers_of", "judge", "loss_text", "owed_stacks"]
