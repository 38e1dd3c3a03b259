"""What lies in host memory, and how far the rest is from it."""

from __future__ import annotations

from reducer.stablehlo.distance import Distances
from reducer.stablehlo.hosted import hosted
from reducer.stablehlo.model import all_operations
from reducer.stablehlo.normal import inlined
from reducer.stablehlo.parse import read
from tests.modules.samples import STACK, placed


def test_the_stack_of_a_loop_lies_where_its_slices_do() -> None:
    module = inlined(read(STACK.encode()))
    # The placement, the reshape, the updated stack, the carry in both regions, and the loop's result.
    assert sorted(hosted(module)) == [7, 12, 15, 16, 18, 23]


def test_it_ends_where_a_value_is_brought_back() -> None:
    text = f"""func.func @main(%x: tensor<2xf32> {{mhlo.memory_kind = "pinned_host"}}) -> tensor<2xf32> {{
      %0 = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<2xf32>
      {placed("1", "0", "tensor<2xf32>", "device")}
      %2 = stablehlo.sine %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }}"""
    assert sorted(hosted(inlined(read(text.encode())))) == [0, 1]


def test_distances_do_not_cross_counters() -> None:
    module = inlined(read(STACK.encode()))
    distances = Distances(module)
    found = {one.name.partition(".")[2]: distances.of(one) for one in all_operations(module.main.body)}
    assert found["custom_call"] == found["reshape"] == found["dynamic_update_slice"] == 0
    assert found["broadcast_in_dim"] == 0  # what the stack begins as
    assert found["multiply"] == 1
    assert found["sine"] == 2
    assert found["exponential"] == 4
    assert distances.far == 5
