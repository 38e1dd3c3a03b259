"""Where values lie and how they are divided: inferred memory spaces, shardings, donation, as exact programs."""

from __future__ import annotations

import pytest

from reducer.errors import ProgramError
from reducer.ir.equations import Entry, Mesh
from reducer.ir.text import to_text
from reducer.raising import raise_module
from reducer.stablehlo.parse import read


def raised(text: str) -> str:
    return to_text(raise_module(read(text.encode())))


def move(result: str, operand: str, kind: str, shape: str = "4xf32") -> str:
    return (
        f"{result} = stablehlo.custom_call @annotate_device_placement({operand}) {{has_side_effect = true, "
        f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}}} : (tensor<{shape}>) -> tensor<{shape}>'
    )


def test_a_stack_of_values_on_the_host_lies_there_and_so_do_its_slices() -> None:
    # The buffer is a broadcast zero: nothing but what is written into it says that it is on the host.
    text = f"""
module @m {{
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<3x4xf32>
    %0:2 = stablehlo.while(%i = %c, %y = %zero) : tensor<i32>, tensor<3x4xf32>
    cond {{
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      {move("%1", "%arg0", "pinned_host")}
      %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
      %3 = stablehlo.dynamic_update_slice %y, %2, %i, %c
        : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
      %4 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<3x4xf32>
    }}
    %5 = stablehlo.slice %0#1 [1:2, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x4xf32>) -> tensor<4xf32>
    {move("%7", "%6", "device")}
    %8 = stablehlo.add %7, %arg0 : tensor<4xf32>
    return %8 : tensor<4xf32>
  }}
}}
"""
    assert (
        raised(text)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[3,4]<host> = scan[length=3 num_consts=1
      body={ lambda ; c:f32[4]. let
          d:f32[4]<host> = device_put[memory=host] c
        in (d,) }
    ] a
    e:f32[1,4]<host> = slice[limit_indices=(2, 4) start_indices=(1, 0)] b
    f:f32[4]<host> = reshape e
    g:f32[4] = device_put[memory=device] f
    h:f32[4] = add g a
  in (h,) }"""
    )


def test_an_operation_between_two_memories_gets_a_transfer() -> None:
    text = f"""
module @m {{
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x4xf32>) {{
    %c = stablehlo.constant dense<0> : tensor<i32>
    {move("%0", "%arg0", "pinned_host")}
    %1 = stablehlo.add %0, %arg0 : tensor<4xf32>
    %2 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<1x4xf32>
    %3 = stablehlo.dynamic_update_slice %arg1, %2, %c, %c
      : (tensor<2x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    return %1, %3 : tensor<4xf32>, tensor<2x4xf32>
  }}
}}
"""
    assert (
        raised(text)
        == """\
{ lambda ; a:f32[4] b:f32[2,4]. let
    c:f32[4]<host> = device_put[memory=host] a
    d:f32[4] = device_put[memory=device] c
    e:f32[4] = add d a
    f:f32[1,4]<host> = reshape c
    g:f32[2,4]<host> = device_put[memory=host] b
    h:f32[2,4]<host> = dynamic_update_slice g f 0:i32[] 0:i32[]
  in (e, h) }"""
    )


def test_a_carry_that_the_body_leaves_on_the_host_starts_there() -> None:
    text = f"""
module @m {{
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.while(%x = %arg0) : tensor<4xf32>
    cond {{
      %1 = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      {move("%1", "%x", "pinned_host")}
      stablehlo.return %1 : tensor<4xf32>
    }}
    return %0 : tensor<4xf32>
  }}
}}
"""
    assert (
        raised(text)
        == """\
{ lambda ; a:f32[4]. let
    b:f32[4]<host> = device_put[memory=host] a
    c:f32[4]<host> = while[
      cond={ lambda ; d:f32[4]<host>. let
        in (False:bool[],) }
      body={ lambda ; e:f32[4]<host>. let
        in (e,) }
    ] b
  in (c,) }"""
    )


def test_the_entry_says_where_inputs_and_results_lie_and_what_is_donated() -> None:
    text = f"""
module @m {{
  func.func public @main(
      %arg0: tensor<4xf32> {{mhlo.memory_kind = "pinned_host"}}, %arg1: tensor<4xf32> {{jax.buffer_donor = true}},
      %arg2: tensor<f32> {{mhlo.memory_kind = "device", tf.aliasing_output = 2 : i32}})
      -> (tensor<4xf32> {{mhlo.memory_kind = "device"}}, tensor<4xf32> {{mhlo.memory_kind = "pinned_host"}},
          tensor<f32> {{mhlo.memory_kind = "device"}}) {{
    {move("%0", "%arg0", "device")}
    {move("%1", "%arg1", "pinned_host")}
    {move("%2", "%arg2", "device", "f32")}
    return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
  }}
}}
"""
    # What JAX writes for the memory kinds of results comes again by itself: the last one moved nothing.
    program = raise_module(read(text.encode()))
    assert to_text(program).splitlines()[-3:] == [
        "    d:f32[4] = device_put[memory=device] a",
        "    e:f32[4]<host> = device_put[memory=host] b",
        "  in (d, e, c) }",
    ]
    assert program.inputs == (Entry(), Entry(donated=True), Entry(donated=True))


SHARDED = """
module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["one"=1, "x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "one"}, {}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", ?}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"one", "x", "y"}, {}]>]
        out_shardings=[<@mesh, [{"x", "y"}, {}]>] manual_axes={"one", "x", "y"} (%arg1: tensor<2x4xf32>) {
      %1 = stablehlo.negate %arg1 : tensor<2x4xf32>
      sdy.return %1 : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {"x"}]> : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
"""

SHARD_MAPPED = """\
mesh x=2 y=2
input 0: P(x)
result 0: P(None, y)
{ lambda ; a:f32[8,4]. let
    b:f32[8,4] = shard_map[in_specs=(P((x, y))) out_specs=(P((x, y)))
      body={ lambda ; c:f32[2,4]. let
          d:f32[2,4] = neg c
        in (d,) }
    ] a
    e:f32[8,4] = sharding_constraint[spec=P(y, x)] b
  in (e,) }"""


def test_shardings_and_manual_computations() -> None:
    program = raise_module(read(SHARDED.encode()))
    assert program.mesh == Mesh((("x", 2), ("y", 2)))
    assert program.inputs == (Entry(spec=("x",)),)
    assert program.result_specs == ((None, "y"),)
    assert to_text(program) == SHARD_MAPPED


def test_on_one_device_nothing_is_left_of_them() -> None:
    text = SHARDED.replace("num_partitions = 4", "num_partitions = 1").replace("=2", "=1").replace("2x4", "8x4")
    assert raised(text) == "{ lambda ; a:f32[8,4]. let\n    b:f32[8,4] = neg a\n  in (b,) }"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            '%0 = "stablehlo.custom_call"(%arg0) {call_target_name = "mine"} : (tensor<4xf32>) -> tensor<4xf32>',
            "main.operations[0]: not expressible: stablehlo.custom_call -> tensor<4xf32>: "
            'call_target_name is "mine" (reduce the module itself: --tier stablehlo)',
        ),
        (
            "%t = stablehlo.create_token : !stablehlo.token\n%0 = stablehlo.negate %arg0 : tensor<4xf32>",
            "main.operations[0]: not expressible: stablehlo.create_token -> !stablehlo.token: "
            "the IR has no such operation (reduce the module itself: --tier stablehlo)",
        ),
        (
            "%0 = func.call @f(%arg0) : (tensor<4xf32>) -> tensor<4xf32>",
            "main.operations[0].f.operations[2]: not expressible: stablehlo.rng -> tensor<4xf32>: "
            "the IR has no such operation (reduce the module itself: --tier stablehlo)",
        ),
    ],
)
def test_what_cannot_be_said_is_named_with_its_place(body: str, message: str) -> None:
    text = f"""
module @m {{
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    {body}
    return %0 : tensor<4xf32>
  }}
  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %a = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.constant dense<4> : tensor<1xi64>
    %0 = stablehlo.rng %a, %a, %n, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""
    with pytest.raises(ProgramError) as error:
        raise_module(read(text.encode()))
    assert str(error.value) == message


def test_partitions_without_a_mesh_are_copies() -> None:
    text = """
module @m attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
    assert (
        raised(text)
        == """\
mesh device=4
input 0: P()
{ lambda ; a:f32[4]. let
    b:f32[4] = neg a
  in (b,) }"""
    )
    text = text.replace("%arg0: tensor<4xf32>)", '%arg0: tensor<4xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})')
    with pytest.raises(ProgramError, match="not expressible: shardings of 4 partitions without a mesh"):
        raise_module(read(text.encode()))
