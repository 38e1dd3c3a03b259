"""Collectives over groups of devices are collectives along mesh axes again, as an exact program."""

from __future__ import annotations

import pytest

from reducer.errors import ProgramError
from reducer.ir.text import to_text
from reducer.raising import raise_module
from reducer.stablehlo.parse import read

GROUPS_Y = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
GROUPS_X = "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADD = """({
      ^bb0(%u: tensor<f32>, %v: tensor<f32>):
        %s = stablehlo.add %u, %v : tensor<f32>
        stablehlo.return %s : tensor<f32>
      })"""

MODULE = f"""
module @m attributes {{mhlo.num_partitions = 4 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x4xf32>) {{
    %0:3 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>]
        out_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>, <@mesh, [{{"x"}}, {{"y"}}]>, <@mesh, [{{"x"}}, {{"y"}}]>]
        manual_axes={{"x", "y"}} (%a: tensor<4x4xf32>) {{
      %two = stablehlo.constant dense<2> : tensor<ui32>
      %id = stablehlo.partition_id : tensor<ui32>
      %row = stablehlo.divide %id, %two : tensor<ui32>
      %x = stablehlo.remainder %row, %two : tensor<ui32>
      %index = stablehlo.convert %x : (tensor<ui32>) -> tensor<i32>
      %real = stablehlo.convert %index : (tensor<i32>) -> tensor<f32>
      %wide = stablehlo.broadcast_in_dim %real, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
      %b = "stablehlo.all_reduce"(%a) <{{{CHANNEL}, {GROUPS_Y}, use_global_device_ids}}> {ADD}
        : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %c = "stablehlo.all_reduce"(%b) <{{{CHANNEL}, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
        use_global_device_ids}}> {ADD.replace("add", "maximum")} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %d = "stablehlo.all_gather"(%c) <{{{CHANNEL}, {GROUPS_X}, all_gather_dim = 0 : i64, use_global_device_ids}}>
        : (tensor<4x4xf32>) -> tensor<8x4xf32>
      %e = "stablehlo.reduce_scatter"(%d) <{{{CHANNEL}, {GROUPS_X}, scatter_dimension = 0 : i64,
        use_global_device_ids}}> {ADD} : (tensor<8x4xf32>) -> tensor<4x4xf32>
      %f = "stablehlo.all_to_all"(%e) <{{{CHANNEL}, {GROUPS_Y}, concat_dimension = 0 : i64, split_count = 2 : i64,
        split_dimension = 1 : i64}}> : (tensor<4x4xf32>) -> tensor<8x2xf32>
      %g = "stablehlo.collective_permute"(%e) <{{{CHANNEL},
        source_target_pairs = dense<[[0, 2], [2, 0], [1, 3], [3, 1]]> : tensor<4x2xi64>}}>
        : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %h = stablehlo.add %g, %wide : tensor<4x4xf32>
      sdy.return %h, %d, %f : tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x2xf32>
    }} : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x4xf32>)
    return %0#0, %0#1, %0#2 : tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x4xf32>
  }}
}}
"""


def test_collectives_lie_along_mesh_axes() -> None:
    assert (
        to_text(raise_module(read(MODULE.encode())))
        == """\
mesh x=2 y=2
{ lambda ; a:f32[8,8]. let
    b:f32[8,8] c:f32[16,8] d:f32[16,4] = shard_map[
      in_specs=(P(x, y))
      out_specs=(P(x, y), P(x, y), P(x, y))
      body={ lambda ; e:f32[4,4]. let
          f:i32[] = axis_index[axis_name=x]
          g:f32[] = convert_element_type f
          h:f32[4,4] = psum[axes=(y,)] e
          i:f32[4,4] = pmax[axes=(x, y)] h
          j:f32[8,4] = all_gather[all_gather_dimension=0 axis_name=x tiled=True] i
          k:f32[4,4] = reduce_scatter[axis_name=x scatter_dimension=0 tiled=True] j
          l:f32[8,2] = all_to_all[axis_name=y concat_axis=0 split_axis=1 tiled=True] k
          m:f32[4,4] = ppermute[axis_name=x perm=((0, 1), (1, 0))] k
          n:f32[4,4] = add m g
        in (n, j, l) }
    ] a
  in (b, c, d) }"""
    )


def test_groups_that_lie_along_no_axes_are_refused() -> None:
    text = MODULE.replace(GROUPS_Y, "replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>", 1)
    with pytest.raises(ProgramError, match="groups of devices that lie along no mesh axes"):
        raise_module(read(text.encode()))
