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


SEEDED = """
import hashlib, sys
sys.path.insert(0, ".")
for module in sys.argv[1:]:
    __import__(module)
import hypothesis, strategies
from hypothesis import HealthCheck, Phase, given, settings
from reducer.ir.codec import encode
digest = hashlib.sha256()

@hypothesis.seed(7)
@settings(max_examples=200, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(strategies.hunting())
def take(program):
    digest.update(encode(program))

take()
print(digest.hexdigest())
"""


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_from_type_without_importing_strategies():
    assert run(FROM_TYPE) == "ok"


def test_importing_strategies_is_light():
    assert run(LIGHT) == "ok"


def test_a_seed_means_the_same_programs_whatever_else_is_loaded(tmp_path, monkeypatch):
    # Hypothesis reads constants out of the modules it takes for the user's own.
    (tmp_path / "other.py").write_text("NUMBERS = (" + ", ".join(map(str, range(300))) + ")\n")
    monkeypatch.chdir(tmp_path)
    assert run(SEEDED) == run(SEEDED, "other")
