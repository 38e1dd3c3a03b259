"""The canonical form: order, names, and that it undoes any reordering."""

from __future__ import annotations

import msgspec
import pytest

from reducer.ir.build import Builder
from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.equations import Block, Checkpoint, Entry, Grad, Mesh, Program, Scan, Var
from reducer.ir.normal import normalise
from reducer.ir.policies import Both, OffloadNames, SaveNames
from reducer.ir.text import block_text, to_text
from tests.ir.samples import SEEDS, seed, t, unary, zoo
from tests.ir.shuffling import shuffled

X = t("f32[4]")


def two_chains() -> Program:
    """Two chains of different functions from two inputs of different entries, interleaved."""
    b = Builder()
    x, y = b.param(X), b.param(X)
    p, q = b.op("sin", x), b.op("cos", y)
    p, q = b.op("tanh", p), b.op("exp", q)
    return Program(
        b.block(q, p), gradient=Grad((0,)), mesh=Mesh((("x", 2),)), inputs=(Entry(("x",)), Entry(donated=True)),
        result_specs=(None, ("x",)),
    )  # fmt: skip


def ties() -> Program:
    """Loops whose two carries can only be told apart by each other."""
    i = Builder()
    body = i.block(*(i.op("sin", p) for p in (i.param(X), i.param(X))))
    b = Builder()
    values = [b.param(X), b.param(X)]
    for length in (3, 2, 3):
        values = list(b.scan(body, length=length, carry=values))
    return Program(b.block(*values))


def names() -> Program:
    """Policies that mention names by several roles, one of which nothing has."""

    def body(*attached: str) -> Block:
        i = Builder()
        x = i.param(X)
        for name in attached:
            x = i.op("sin", i.name(x, name))
        return i.block(x)

    b = Builder()
    x = b.param(X)
    (x,) = b.checkpoint(body("w", "v"), x, policy=OffloadNames(("v",), saved=("w", "z")))
    (x,) = b.checkpoint(body("u", "v"), x, policy=Both(SaveNames(("u", "w")), OffloadNames(("v", "u"))))
    return Program(b.block(x))


SAMPLES = {"zoo": zoo, "two chains": two_chains, "ties": ties, "names": names} | {
    name: lambda name=name: seed(name) for name in SEEDS
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_is_a_well_formed_normal_fixpoint(sample: str) -> None:
    program = canonical(SAMPLES[sample]())
    check(program)
    assert normalise(program) == program
    assert canonical(program) == program


@pytest.mark.parametrize("sample", SAMPLES)
def test_undoes_reordering(sample: str) -> None:
    program = SAMPLES[sample]()
    expected = to_text(canonical(program))
    for number in range(30):
        other = shuffled(program, number)
        check(other)
        assert to_text(canonical(other)) == expected


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_are_canonical(name: str) -> None:
    assert canonical(seed(name)) == seed(name)


def test_equations_come_as_they_are_needed_and_inputs_as_they_are_used() -> None:
    assert to_text(canonical(two_chains())) == TWO_CHAINS


TWO_CHAINS = """\
value_and_grad(argnums=(0,)) of
mesh x=2
input 0: P(x)
input 1: donated
result 0: P(x)
{ lambda ; a:f32[4] b:f32[4]. let
    c:f32[4] = sin a
    d:f32[4] = tanh c
    e:f32[4] = cos b
    f:f32[4] = exp e
  in (d, f) }"""


def test_gradient_entries_and_specs_follow_their_values() -> None:
    program = canonical(two_chains())
    (wanted,) = program.gradient.argnums  # type: ignore[union-attr]
    assert program.inputs[wanted] == Entry(("x",))
    sin = next(e for e in program.block.eqns if e.primitive == "sin")  # type: ignore[union-attr]
    assert sin.args == (program.block.params[wanted].id,)  # type: ignore[union-attr]
    tanh = next(e for e in program.block.eqns if e.primitive == "tanh")  # type: ignore[union-attr]
    place = program.block.results.index(tanh.outs[0].id)
    assert program.result_specs[place] == ("x",)


def test_names_by_first_use() -> None:
    policies = [e.policy for e in canonical(names()).block.eqns if isinstance(e, Checkpoint)]
    assert policies == [
        OffloadNames(("h1",), saved=("h", "h3")),
        Both(SaveNames(("h", "h2")), OffloadNames(("h1", "h2"))),
    ]


def test_unused_inputs_come_last() -> None:
    b = Builder()
    b.param(X)
    y = b.param(t("f32[2]"))
    assert block_text(canonical(Program(b.block(b.op("sin", y)))).block) == (
        "{ lambda ; a:f32[2] b:f32[4]. let\n    c:f32[2] = sin a\n  in (c,) }"
    )


def test_arguments_of_a_loop_by_first_use_in_its_body() -> None:
    i = Builder()
    late, early, carry, x = (i.param(X) for _ in range(4))
    body = i.block(i.op("add", i.op("mul", i.op("sub", carry, early), late), x))
    b = Builder()
    p, q, w = b.param(X), b.param(X), b.param(t("f32[3,4]"))
    program = canonical(Program(b.block(*b.scan(body, length=3, consts=[p, q], carry=[p], xs=[w]))))
    assert block_text(program.block) == (
        "{ lambda ; a:f32[4] b:f32[4] c:f32[3,4]. let\n"
        "    d:f32[4] = scan[length=3 num_consts=2 num_carry=1\n"
        "      body={ lambda ; e:f32[4] f:f32[4] g:f32[4] h:f32[4]. let\n"
        "          i:f32[4] = sub g e\n"
        "          j:f32[4] = mul i f\n"
        "          k:f32[4] = add j h\n"
        "        in (k,) }\n"
        "    ] a b b c\n"
        "  in (d,) }"
    )


def test_dead_code_goes_too() -> None:
    b = Builder()
    x = b.param(X)
    b.op("sin", x)
    assert canonical(Program(b.block(x))).block == Block((Var(0, X),), (), (0,))


def test_programs_that_differ_stay_different() -> None:
    one = Builder()
    x = one.param(X)
    block = one.block(one.op("sub", one.op("sin", x), one.op("cos", x)))
    other = Builder()
    x = other.param(X)
    swapped = other.block(other.op("sub", other.op("cos", x), other.op("sin", x)))
    assert canonical(Program(block)) != canonical(Program(swapped))


def test_long_chains_need_no_recursion() -> None:
    b = Builder()
    x = b.param(X)
    for _ in range(3000):
        x = b.op("sin", x)
    program = Program(b.block(x))
    assert canonical(program) == program


def test_empty_program() -> None:
    assert canonical(Program(Block((), (), ()))) == Program(Block((), (), ()))


def test_symmetric_values_through_a_loop_are_interchangeable() -> None:
    program = canonical(ties())
    loops = [e for e in program.block.eqns if isinstance(e, Scan)]
    assert [tuple(e.carry) for e in loops] == [(0, 1), (2, 3), (4, 5)]
    assert program.block.results == (6, 7)


def test_meta_stays() -> None:
    program = msgspec.structs.replace(Program(unary("sin", X)), meta=(("from", "here"),))
    assert canonical(program) == program
