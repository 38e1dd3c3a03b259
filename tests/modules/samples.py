"""Small modules that the tests share."""

from __future__ import annotations

PLACED = """
    %{n} = stablehlo.custom_call @annotate_device_placement(%{v}) {{has_side_effect = true,
      mhlo.frontend_attributes = {{_xla_buffer_placement = "{memory}"}}}} : ({type}) -> {type}
"""


def placed(n: str, v: str, type_: str, memory: str = "pinned_host") -> str:
    """A transfer of %v to a memory."""
    return PLACED.format(n=n, v=v, type=type_, memory=memory)


def loop(carried: str, types: str, inits: str, body: str, yields: str, turns: int = 3) -> str:
    """A loop that counts to `turns`: `carried` are names, all others lists of the same length."""
    names = [name.strip() for name in carried.split(",") if name.strip()]
    starts = [name.strip() for name in inits.split(",") if name.strip()]
    binds = "".join(f", {a} = {b}" for a, b in zip(names, starts, strict=True))
    return f"""
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:{len(names) + 1} = stablehlo.while(%i = %zero{binds}) : tensor<i32>{", " if names else ""}{types}
    cond {{
      %limit = stablehlo.constant dense<{turns}> : tensor<i32>
      %t = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      {body}
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next{", " if names else ""}{yields} : tensor<i32>{", " if names else ""}{types}
    }}"""


STACK = f"""
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<3x8xf32>) {{
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<3x8xf32>
    {
    loop(
        "%c, %st",
        "tensor<8xf32>, tensor<3x8xf32>",
        "%x, %s",
        '''%n = stablehlo.sine %c : tensor<8xf32>
        %m = stablehlo.multiply %n, %y : tensor<8xf32>
        '''
        + placed("h", "m", "tensor<8xf32>")
        + '''
        %b = stablehlo.reshape %h : (tensor<8xf32>) -> tensor<1x8xf32>
        %z = stablehlo.constant dense<0> : tensor<i32>
        %u = stablehlo.dynamic_update_slice %st, %b, %i, %z : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>,
          tensor<i32>) -> tensor<3x8xf32>''',
        "%n, %u",
    )
}
    %e = stablehlo.exponential %w#1 : tensor<8xf32>
    return %e, %w#2 : tensor<8xf32>, tensor<3x8xf32>
}}
"""
"""A loop that stacks what it puts into host memory; its carry comes out too."""

DONATED = f"""
func.func @main(%x: tensor<4xf32> {{tf.aliasing_output = 0 : i32}}, %y: tensor<4xf32> {{tf.aliasing_output = 1 : i32}})
    -> (tensor<4xf32>, tensor<4xf32>) {{
    %0 = stablehlo.sine %x {{mhlo.frontend_attributes = {{a = "b"}}}} : tensor<4xf32>
    {placed("1", "y", "tensor<4xf32>")}
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
"""
"""Two donated arguments, an attribute of another dialect."""

SPLIT = """
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["d"=2, "e"=1]>
  func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"d"}]> : tensor<8xf32>
    %1 = stablehlo.sine %0 : tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
"""
"""Split over two devices by a constraint."""

MANUAL = """
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["d"=2, "e"=1]>
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %x : tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[<@mesh, [{"d"}]>]
        manual_axes={"d"} (%a: tensor<4xf32>) {
      %2 = stablehlo.exponential %a : tensor<4xf32>
      %3 = stablehlo.cosine %2 : tensor<4xf32>
      sdy.return %3 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
"""
"""A manual computation on two devices."""

RESHAPED = """
func.func @main(%x: tensor<4x6xf32>, %y: tensor<24x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
    %1 = stablehlo.dot_general %0, %y, contracting_dims = [0] x [0]
      : (tensor<24xf32>, tensor<24x5xf32>) -> tensor<5xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
    %3 = stablehlo.slice %2 [0:4, 0:5] : (tensor<4x5xf32>) -> tensor<4x5xf32>
    return %3 : tensor<4x5xf32>
}
"""
"""Sizes that are products of others."""

UNKNOWN = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.custom_call @who_knows(%x) : (tensor<4x6xf32>) -> tensor<6xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
}
"""
"""A call whose sizes nobody knows anything about."""

TYPES = """
func.func @main(%x: tensor<2xbf16>) -> tensor<2xf32> {
    %0 = stablehlo.constant dense<1.0> : tensor<2xbf16>
    %1 = stablehlo.add %x, %0 : tensor<2xbf16>
    %2 = stablehlo.convert %1 : (tensor<2xbf16>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
}
"""
"""Two floating types."""

SHAPES = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<3x2xf32>) -> tensor<1x6xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x6xf32>) -> tensor<6xf32>
    return %2 : tensor<6xf32>
}
"""
"""One change of a shape after the other."""
