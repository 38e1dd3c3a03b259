"""`st.from_type` knows programs and types without anybody importing `strategies`, and importing stays light."""

from __future__ import annotations

import subprocess
import sys

FROM_TYPE = """
import sys
from hypothesis import Phase, find, settings, strategies as st
from reducer.ir.equations import Program
from reducer.ir.types import Type
# Nothing but the entry point's own module is loaded so far.
assert [m for m in sys.modules if m.startswith("strategies.")] == ["strategies._entry_point"]
program = find(st.from_type(Program), lambda p: True, settings=settings(database=None, phases=[Phase.generate]))
type_ = find(st.from_type(Type), lambda t: t.on_host, settings=settings(database=None, phases=[Phase.generate]))
assert isinstance(program, Program) and isinstance(type_, Type)
assert "jax" not in sys.modules
print("ok")
"""

LIGHT = """
import sys
import strategies
strategies.hunting(), strategies.types(), strategies.policies()
assert "jax" not in sys.modules and "numpy" not in sys.modules
assert not any(m.startswith(("reducer.lowering", "reducer.oracle")) for m in sys.modules)
print("ok")
"""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_from_type_without_importing_strategies():
    assert run(FROM_TYPE) == "ok"


def test_importing_strategies_is_light():
    assert run(LIGHT) == "ok"
