"""StableHLO modules as data: a mirror of MLIR (`model`), read in another process (`read`), printed (`text`)."""

from __future__ import annotations

from reducer.stablehlo.model import Attributes, Block, Function, Module, Operation, Value
from reducer.stablehlo.read import read_module
from reducer.stablehlo.text import to_text

__all__ = ["Attributes", "Block", "Function", "Module", "Operation", "Value", "read_module", "to_text"]
