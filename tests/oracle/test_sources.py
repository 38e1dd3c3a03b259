"""Scripts that are asked for a function: what is said of one that lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reducer.oracle.jobs import ScriptJob
from reducer.oracle.sources import JobError, call_script

SCRIPT = """
from os.path import join
import functools

def step():
    return None

@functools.cache
def not_a_function():
    return None

again = step
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [(SCRIPT, "it has step, again"), ("from os.path import join", "it has none"), ("absent = 3", "it has none")],
)
def test_only_functions_of_its_own_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(text)
    with pytest.raises(JobError) as error:
        call_script(ScriptJob(str(path), "absent"), [])
    assert str(error.value) == f"{path} has no function 'absent'; {said}"
