"""Pass `merge-shaping`: two changes of a shape made one."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import SHAPES


def test_a_reshape_is_left(run: Run) -> None:
    assert (
        run("merge-shaping", SHAPES)
        == """\
main(%0:2x3xf32)
  %1:6xf32 = reshape %0
  return %1
"""
    )
