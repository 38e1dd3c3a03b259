"""What a program asked to keep in host memory, and where the compiler really put it."""

from reducer.ledger.buffers import HOST, Buffers, buffers_of, carried_of
from reducer.ledger.judge import Ledger, Line, Standing, judge, ledger_of, loss_text
from reducer.ledger.owed import Owed, Stack, owed_stacks
from reducer.ledger.unused import Unused, unused
from reducer.ledger.words import bytes_text, ledger_json, ledger_text, line_text, place_text, shape_text, totals

__all__ = [
    "HOST",
    "Buffers",
    "Ledger",
    "Line",
    "Owed",
    "Stack",
    "Standing",
    "Unused",
    "buffers_of",
    "bytes_text",
    "carried_of",
    "judge",
    "ledger_json",
    "ledger_of",
    "ledger_text",
    "line_text",
    "loss_text",
    "owed_stacks",
    "place_text",
    "shape_text",
    "totals",
    "unused",
]
