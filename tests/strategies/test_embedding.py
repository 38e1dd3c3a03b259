"""A find in a model: as large as wanted, on the way to the loss, under the model's own policy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder
from reducer.ir.check import check
from reducer.ir.codec import decode
from reducer.ir.equations import Checkpoint, Mesh, Name, Op, Program
from reducer.ir.order import size
from reducer.ir.policies import OffloadNames
from reducer.ir.text import to_text
from reducer.ir.types import Type
from reducer.ir.walk import equations
from strategies import embedded

NESTED = decode((Path(__file__).parents[1] / "seed" / "nested.json").read_bytes())


@pytest.mark.parametrize("wanted", [40, 300, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_well_typed_and_as_large_as_wanted(wanted: int, seed: int) -> None:
    model = embedded(NESTED, equations=wanted, seed=seed)
    check(model)
    assert wanted <= size(model) <= wanted + 30


def test_a_seed_gives_one_model() -> None:
    assert embedded(NESTED, equations=100, seed=1) == embedded(NESTED, equations=100, seed=1)
    assert embedded(NESTED, equations=100, seed=1) != embedded(NESTED, equations=100, seed=2)


@pytest.mark.parametrize("seed", range(5))
def test_the_find_is_alive_and_the_models_policy_offloads_two_names_of_its_own(seed: int) -> None:
    # Dead code is gone from a model, so a name that is in it is on the way to the loss.
    model = embedded(NESTED, equations=400, seed=seed)
    eqns = [eqn for _, _, eqn in equations(model)]
    policies = {eqn.policy for eqn in eqns if isinstance(eqn, Checkpoint) and eqn.policy is not None}
    assert policies == {OffloadNames(("h",)), OffloadNames(("attention_out", "mlp_out"))}
    assert {eqn.name for eqn in eqns if isinstance(eqn, Name)} == {"h", "attention_out", "mlp_out"}
    assert model.gradient is not None
    assert model.gradient.argnums == tuple(range(len(model.block.params)))


def test_names_that_the_find_has_are_not_the_models() -> None:
    find = embedded(NESTED, equations=60, seed=0)
    names = {eqn.name for _, _, eqn in equations(embedded(find, equations=400, seed=0)) if isinstance(eqn, Name)}
    assert names == {"h", "attention_out", "mlp_out", "attention_out_", "mlp_out_"}


def small(type_: Type) -> Program:
    b = Builder()
    x, n = b.param(type_), b.param(Type("int32"))
    return Program(b.block(b.op("mul", b.op("sin", x), b.convert(n, "float32"))))


def test_what_it_takes_comes_from_the_state_and_its_results_go_into_it() -> None:
    find = small(Type("float32", (4,)))
    assert to_text(embedded(find, equations=size(find), seed=0)) == EXPECTED


EXPECTED = """\
{ lambda ; a:f32[4] b:i32[]. let
    c:f32[4] = jit[name=block
      body={ lambda ; d:f32[4] e:i32[]. let
          f:f32[4] = scan[length=3 num_consts=1 num_carry=1
            body={ lambda ; g:i32[] h:f32[4]. let
                i:f32[4] = checkpoint[
                  policy=save_and_offload_only_these_names(offloaded=(attention_out, mlp_out) device->pinned_host)
                  body={ lambda ; j:f32[4] k:i32[]. let
                      l:f32[] = reduce_sum[axes=(0,)] j
                      m:f32[] = mul l 0.001:f32[]
                      n:f32[] = tanh m
                      o:i32[] = convert_element_type n
                      p:i32[] = add k o
                      q:f32[4] = sin j
                      r:f32[] = convert_element_type p
                      s:f32[4] = mul q r
                      t:f32[4] = add j s
                    in (t,) }
                ] h g
              in (i,) }
          ] e d
        in (f,) }
    ] a b
    u:f32[] = reduce_sum[axes=(0,)] c
  in (u,) }"""


def test_a_program_over_a_mesh_is_refused() -> None:
    find = msgspec.structs.replace(NESTED, mesh=Mesh((("x", 2),)))
    with pytest.raises(ProgramError, match="over a mesh"):
        embedded(find, equations=100, seed=0)


def test_a_find_larger_than_the_model_is_refused() -> None:
    with pytest.raises(ProgramError, match="more than 3 equations"):
        embedded(NESTED, equations=3, seed=0)


def test_every_sort_of_input_is_fed() -> None:
    b = Builder()
    x, host = b.param(Type("bfloat16", (2, 4))), b.param(Type("float32", (3,), "host"))
    flag, key = b.param(Type("bool")), b.param(Type("key<fry>"))
    chosen = b.op("select_n", flag, b.convert(b.transfer(host, "device"), "float16"), b.fill(Type("float16", (3,))))
    block = b.block(b.op("tanh", x), chosen, key)
    model = embedded(Program(block), equations=30, seed=0)
    check(model)
    primitives = [eqn.primitive for _, _, eqn in equations(model) if isinstance(eqn, Op)]
    assert "select_n" in primitives
