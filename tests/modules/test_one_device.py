"""Pass `one-device`: one device instead of several."""

from __future__ import annotations

from tests.modules.conftest import Run
from tests.modules.samples import MANUAL, SPLIT


def test_split_sizes_are_what_one_device_sees(run: Run) -> None:
    assert (
        run("one-device", MANUAL)
        == """\
main(%0:4xf32)
  %1:4xf32 = sine %0
  %2:4xf32 = exponential %1
  %3:4xf32 = cosine %2
  return %3
"""
    )


def test_else_all_of_them(run: Run) -> None:
    assert (
        run("one-device", SPLIT, lambda m: "tensor<8xf32>" in {value.type for value in m.main.body.params})
        == """\
main(%0:8xf32)
  %1:8xf32 = sine %0
  return %1
"""
    )
