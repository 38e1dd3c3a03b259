"""Pass `unify-dtypes`: all floating types f32."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import TYPES


def test_types_and_constants(run: Run) -> None:
    assert (
        run("unify-dtypes", TYPES)
        == """\
main(%0:2xf32)
  %1:2xf32 = constant dense<1.000000e+00>
  %2:2xf32 = add %0 %1
  %3:2xf32 = convert %2
  return %3
"""
    )
