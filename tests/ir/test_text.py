"""The printed form, exactly."""

from __future__ import annotations

import msgspec

from reducer.ir.build import Builder, lit
from reducer.ir.equations import Block, Entry, Enum, GatherDims, Op, Program, ShardMap, Var
from reducer.ir.policies import OffloadDots, OffloadNames, Plain, SaveAllBut, SaveNamesBut
from reducer.ir.text import block_text, entry_text, equation_text, policy_text, spec_text, to_text
from tests.ir.samples import seed, t, unary, zoo


def test_nested_seed() -> None:
    assert to_text(seed("trip_count_one")) == TRIP_COUNT_ONE


TRIP_COUNT_ONE = """\
value_and_grad(argnums=(1,)) of
{ lambda ; a:f32[8,128] b:f32[12,1,128,128]. let
    c:f32[8,128] = scan[length=12 num_carry=1
      body={ lambda ; d:f32[8,128] e:f32[1,128,128]. let
          f:f32[8,128] = scan[
            length=1
            num_carry=1
            metadata={skip-simplify-while-loops_trip-count-one: true}
            body={ lambda ; g:f32[8,128] h:f32[128,128]. let
                i:f32[8,128] = checkpoint[
                  policy=save_and_offload_only_these_names(offloaded=(h) device->pinned_host)
                  prevent_cse=False
                  body={ lambda ; j:f32[8,128] k:f32[128,128]. let
                      l:f32[8,128] = name[name=h] j
                      m:f32[8,128] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] l k
                      n:f32[8,128] = tanh m
                    in (n,) }
                ] g h
              in (i,) }
          ] d e
        in (f,) }
    ] a b
  in (c,) }"""


def test_every_kind_of_equation() -> None:
    assert to_text(zoo()) == ZOO


ZOO = """\
value_and_grad(argnums=(0, 1)) of
mesh x=2
input 0: P(x)
input 2: donated
result 0: P(x)
{ lambda ; a:f32[4] b:f32[3,4] c:i32[]. let
    d:f32[4] = custom_vjp_call[n_residuals=1
      primal={ lambda ; e:f32[4]. let
          f:f32[4] = sin e
        in (f,) }
      fwd={ lambda ; g:f32[4]. let
          h:f32[4] = sin g
          i:f32[4] = cos g
        in (h, i) }
      bwd={ lambda ; j:f32[4] k:f32[4]. let
          l:f32[4] = mul j k
        in (l,) }
    ] a
    m:f32[4] = custom_jvp_call[
      primal={ lambda ; n:f32[4]. let
          o:f32[4] = sin n
        in (o,) }
      jvp={ lambda ; p:f32[4] q:f32[4]. let
          r:f32[4] = sin p
          s:f32[4] = cos p
          t:f32[4] = mul s q
        in (r, t) }
    ] d
    u:f32[4] = checkpoint[
      policy=save_from_both_policies(save_and_offload_only_these_names(offloaded=(h) saved=(g) device->pinned_host), save_only_these_names(g))
      prevent_cse=False
      body={ lambda ; v:f32[4]. let
          w:f32[4] = name[name=h] v
          x:f32[4] = sin w
          y:f32[4] = name[name=g] x
          z:f32[4] = tanh y
        in (z,) }
    ] m
    ba:f32[4] = checkpoint[policy=dots_saveable differentiated=True
      body={ lambda ; bb:f32[4]. let
          bc:f32[4] = tanh bb
        in (bc,) }
    ] u
    bd:f32[4] be:f32[3,4] = scan[
      length=3
      num_consts=1
      num_carry=1
      reverse=True
      unroll=2
      metadata={skip-simplify-while-loops_trip-count-one: true}
      body={ lambda ; bf:f32[4] bg:f32[4] bh:f32[4]. let
          bi:f32[4] = mul bg bf
          bj:f32[4] = add bi bh
          bk:f32[4] = tanh bj
        in (bj, bk) }
    ] a ba b
    bl:f32[4] = cond[
      branches[0]={ lambda ; bm:f32[4]. let
          bn:f32[4] = sin bm
        in (bn,) }
      branches[1]={ lambda ; bo:f32[4]. let
          bp:f32[4] = cos bo
        in (bp,) }
    ] c bd
    bq:f32[4] br:i32[] = while[cond_nconsts=1 body_nconsts=1
      cond={ lambda ; bs:i32[] bt:f32[4] bu:i32[]. let
          bv:bool[] = lt bu bs
        in (bv,) }
      body={ lambda ; bw:f32[4] bx:f32[4] by:i32[]. let
          bz:f32[4] = add bx bw
          ca:i32[] = add by 1:i32[]
        in (bz, ca) }
    ] c a bl c
    cb:f32[4] = jit[name=step
      body={ lambda ; cc:f32[4]. let
          cd:f32[4] = exp cc
        in (cd,) }
    ] bq
    ce:f32[4]<host> = device_put[memory=host] cb
    cf:f32[4] = device_put[memory=device] ce
    cg:f32[4] = full 2.5
    ch:f32[4] = add cf cg
    ci:f32[4] = shard_map[in_specs=(P(x)) out_specs=(P(x))
      body={ lambda ; cj:f32[2]. let
          ck:f32[2] = sin cj
        in (ck,) }
    ] ch
    cl:f32[4] = sharding_constraint[spec=P(x)] ci
    cm:f32[4] = mul cl 0.5:f32[]
    cn:f32[] = convert_element_type c
  in (cm, be, cn) }"""  # noqa: E501 - one line of the printed program is that long


def test_empty_block() -> None:
    assert to_text(Program(Block((), (), ()))) == "{ lambda ; . let\n  in () }"


def test_scalars_say_their_dtype() -> None:
    b = Builder()
    assert block_text(b.block(b.op("add", lit(1.0), lit(2.0)), lit(3, "int32"))) == (
        "{ lambda ; . let\n    a:f32[] = add 1.0:f32[] 2.0:f32[]\n  in (a, 3:i32[]) }"
    )


def test_letters_go_on_after_z() -> None:
    b = Builder()
    x = b.param(t("f32[]"))
    for _ in range(27):
        x = b.op("sin", x)
    lines = block_text(b.block(x)).splitlines()
    assert lines[25:28] == ["    z:f32[] = sin y", "    ba:f32[] = sin z", "    bb:f32[] = sin ba"]


def test_attributes() -> None:
    eqn = Op(
        outs=(Var(1, t("f32[2]")),),
        primitive="gather",
        args=(0, lit(0, "int32")),
        attributes=(
            ("dimension_numbers", GatherDims((0,), (), (0,))),
            ("mode", Enum("GatherScatterMode.CLIP")),
            ("slice_sizes", (2,)),
            ("text", "two words"),
        ),
    )
    assert equation_text(eqn) == (
        "%1:f32[2] = gather[dimension_numbers=GatherDims(offset_dims=(0,), start_index_map=(0,)) "
        "mode=GatherScatterMode.CLIP slice_sizes=(2,) text='two words'] %0 0:i32[]"
    )


def test_names_cannot_break_the_layout() -> None:
    b = Builder()
    x = b.param(t("f32[]"))
    text = block_text(b.block(b.name(x, "a] x\n    b:f32[] = name[name=b")))
    assert text.splitlines()[1] == "    b:f32[] = name[name='a] x\\n    b:f32[] = name[name=b'] a"


def test_policies() -> None:
    assert [policy_text(p) for p in (None, Plain("dots_saveable"), SaveAllBut(("a", "b")), SaveNamesBut(()))] == [
        "None",
        "dots_saveable",
        "save_anything_except_these_names(a, b)",
        "save_any_names_but_these()",
    ]
    assert policy_text(OffloadNames(("a",))) == "save_and_offload_only_these_names(offloaded=(a) device->pinned_host)"
    assert policy_text(OffloadDots(dst="unpinned_host")) == "offload_dot_with_no_batch_dims(device->unpinned_host)"


def test_specs_and_entries() -> None:
    assert spec_text((None, "x", ("y", "z"))) == "P(None, x, (y, z))"
    assert entry_text(Entry(("x",), donated=True)) == "P(x) donated"


def test_flags_of_shard_map() -> None:
    eqn = ShardMap(
        outs=(Var(1, t("f32[4]")),), args=(0,), body=unary("sin", t("f32[2]")), in_specs=(("x",),), out_specs=((),),
        manual=("x",), check_vma=True,
    )  # fmt: skip
    assert equation_text(eqn) == (
        "%1:f32[4] = shard_map[in_specs=(P(x)) out_specs=(P()) manual=(x) check_vma=True body={...}] %0"
    )


def test_unbound_variables_are_printed_not_refused() -> None:
    assert block_text(Block((), (), (7,))) == "{ lambda ; . let\n  in (?7,) }"


def test_meta_is_not_printed() -> None:
    program = seed("flat")
    assert to_text(msgspec.structs.replace(program, meta=(("origin", "here"),))) == to_text(program)
