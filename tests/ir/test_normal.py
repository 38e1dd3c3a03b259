"""The normal form: what goes, what stays, exactly."""

from __future__ import annotations

import msgspec
import pytest

from reducer.ir.build import Builder, lit
from reducer.ir.check import check
from reducer.ir.equations import Block, CustomVjp, Entry, Grad, Lit, Mesh, Program, Scan, Var
from reducer.ir.normal import normalise
from reducer.ir.text import block_text
from tests.ir.samples import SEEDS, seed, t, unary, zoo

X = t("f32[4]")
I = t("i32[]")  # noqa: E741 - the type of an index


def normal_text(block: Block) -> str:
    """The normal form of a block, printed; checked before and after, and checked to be a fixpoint."""
    program = Program(block)
    check(program)
    once = normalise(program)
    check(once)
    assert normalise(once) == once
    return block_text(once.block)


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_are_normal(name: str) -> None:
    assert normalise(seed(name)) == seed(name)


def test_live_things_of_every_kind_stay() -> None:
    program = normalise(zoo())
    check(program)
    assert msgspec.structs.replace(program, block=zoo().block) == zoo()
    assert block_text(program.block) == block_text(zoo().block)


def test_dead_equations_go_inputs_stay() -> None:
    b = Builder()
    x, _ = b.param(X), b.param(X)
    b.op("cos", b.op("sin", x))
    assert normal_text(b.block(b.op("tanh", x))) == (
        "{ lambda ; a:f32[4] b:f32[4]. let\n    c:f32[4] = tanh a\n  in (c,) }"
    )


def test_scalar_conversions_fold() -> None:
    b = Builder()
    half = b.convert(b.convert(lit(0.1), "bfloat16"), "float32")
    assert normal_text(b.block(b.op("mul", b.param(X), half), half)) == (
        "{ lambda ; a:f32[4]. let\n    b:f32[4] = mul a 0.1:f32[]\n  in (b, 0.1:f32[]) }"
    ).replace("0.1:", "0.100097656:")


def test_conversions_to_the_same_dtype_fold() -> None:
    b = Builder()
    x = b.param(X)
    y = b.convert(b.op("sin", x), "float32")
    assert normal_text(b.block(b.op("cos", y), y)) == (
        "{ lambda ; a:f32[4]. let\n    b:f32[4] = sin a\n    c:f32[4] = cos b\n  in (c, b) }"
    )


def test_conversions_that_are_not_decided_here_stay() -> None:
    b = Builder()
    assert normal_text(b.block(b.convert(lit(0.1), "float8_e4m3fn"))) == (
        "{ lambda ; . let\n    a:f8_e4m3fn[] = convert_element_type 0.1:f32[]\n  in (a,) }"
    )


def scan_of(results: tuple[int, ...]) -> Block:
    """A scan with two consts, four carries, two xs and two ys, of which these results are used.

    Carry 0 needs carry 1, carry 1 needs const 0; carry 2 is returned unchanged; carry 3 needs x 0; y 0 is made of x 1
    and carry 3, y 1 of const 1.
    """
    i = Builder()
    c0, c1, k0, k1, k2, k3, x0, x1 = (i.param(X) for _ in range(8))
    body = i.block(
        i.op("add", k0, k1), i.op("mul", k1, c0), k2, i.op("sub", k3, x0), i.op("max", x1, k3), i.op("sin", c1)
    )
    b = Builder()
    a, w = b.param(X), b.param(t("f32[3,4]"))
    s0, s1 = b.op("sin", a), b.op("cos", a)
    outs = b.scan(
        body, length=3, consts=[s0, s1], carry=[a, b.op("exp", a), a, b.op("tanh", a)], xs=[w, b.op("sin", w)]
    )
    return b.block(*(outs[r] for r in results))


@pytest.mark.parametrize(
    ("results", "consts", "carry", "xs", "ys"),
    [
        ((0,), 1, 2, 0, 0),
        ((1,), 1, 1, 0, 0),
        ((2,), 0, 1, 0, 0),
        ((3,), 0, 1, 1, 0),
        ((4,), 0, 1, 2, 1),
        ((5,), 1, 0, 0, 1),
        ((2, 5), 1, 1, 0, 1),
        ((0, 1, 2, 3, 4, 5), 2, 4, 2, 2),
    ],
)
def test_scan_keeps_what_its_used_results_need(
    results: tuple[int, ...], consts: int, carry: int, xs: int, ys: int
) -> None:
    normal_text(scan_of(results))
    (eqn,) = (e for e in normalise(Program(scan_of(results))).block.eqns if isinstance(e, Scan))
    assert (len(eqn.consts), len(eqn.carry), len(eqn.xs), len(eqn.outs) - len(eqn.carry)) == (consts, carry, xs, ys)


def test_scan_without_used_results_goes() -> None:
    assert normal_text(scan_of(())) == "{ lambda ; a:f32[4] b:f32[3,4]. let\n  in () }"


def test_scan_by_its_text() -> None:
    assert normal_text(scan_of((4,))) == (
        "{ lambda ; a:f32[4] b:f32[3,4]. let\n"
        "    c:f32[4] = tanh a\n"
        "    d:f32[3,4] = sin b\n"
        "    e:f32[4] f:f32[3,4] = scan[length=3 num_carry=1\n"
        "      body={ lambda ; g:f32[4] h:f32[4] i:f32[4]. let\n"
        "          j:f32[4] = sub g h\n"
        "          k:f32[4] = max i g\n"
        "        in (j, k) }\n"
        "    ] c b d\n"
        "  in (f,) }"
    )


def test_dead_carries_of_nested_loops_go() -> None:
    i = Builder()
    a, c = i.param(X), i.param(X)
    inner = i.block(i.op("sin", a), i.op("cos", c))
    o = Builder()
    carry = [o.param(X), o.param(X)]
    outer = o.block(*o.scan(inner, length=2, carry=carry))
    b = Builder()
    x = b.param(X)
    assert normal_text(b.block(b.scan(outer, length=3, carry=[x, x])[1])) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[4] = scan[length=3 num_carry=1\n"
        "      body={ lambda ; c:f32[4]. let\n"
        "          d:f32[4] = scan[length=2 num_carry=1\n"
        "            body={ lambda ; e:f32[4]. let\n"
        "                f:f32[4] = cos e\n"
        "              in (f,) }\n"
        "          ] c\n"
        "        in (d,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_carries_in_a_circle_that_nothing_uses_go() -> None:
    i = Builder()
    a, c, d = (i.param(X) for _ in range(3))
    body = i.block(c, i.op("sin", a), d)
    b = Builder()
    x = b.param(X)
    outs = b.scan(body, length=3, carry=[x, x, x])
    assert normal_text(b.block(outs[2])) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[4] = scan[length=3 num_carry=1\n"
        "      body={ lambda ; c:f32[4]. let\n"
        "        in (c,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )
    assert "num_carry=2" in normal_text(b.block(outs[0]))


def while_of(results: tuple[int, ...]) -> Block:
    """A loop on (value, counter, other); the condition needs the counter and a limit, the value a constant."""
    c = Builder()
    limit, _, _, n, _ = c.param(I), c.param(X), c.param(X), c.param(I), c.param(X)
    cond = c.block(c.op("lt", n, limit))
    i = Builder()
    const, unused, v, n, other = i.param(X), i.param(X), i.param(X), i.param(I), i.param(X)
    del unused
    body = i.block(i.op("add", v, const), i.op("add", n, lit(1, "int32")), i.op("sin", other))
    b = Builder()
    x, m = b.param(X), b.param(I)
    outs = b.while_loop(cond, body, [x, lit(0, "int32"), x], cond_consts=[m, x], body_consts=[x, b.op("sin", x)])
    return b.block(*(outs[r] for r in results))


def test_while_keeps_what_its_condition_needs() -> None:
    assert normal_text(while_of((0,))) == (
        "{ lambda ; a:f32[4] b:i32[]. let\n"
        "    c:f32[4] d:i32[] = while[cond_nconsts=1 body_nconsts=1\n"
        "      cond={ lambda ; e:i32[] f:f32[4] g:i32[]. let\n"
        "          h:bool[] = lt g e\n"
        "        in (h,) }\n"
        "      body={ lambda ; i:f32[4] j:f32[4] k:i32[]. let\n"
        "          l:f32[4] = add j i\n"
        "          m:i32[] = add k 1:i32[]\n"
        "        in (l, m) }\n"
        "    ] b a a 0:i32[]\n"
        "  in (c,) }"
    )
    assert normal_text(while_of(())) == "{ lambda ; a:f32[4] b:i32[]. let\n  in () }"


def test_cond_keeps_what_any_branch_needs() -> None:
    branches = []
    for k in range(2):
        i = Builder()
        p = [i.param(X) for _ in range(3)]
        branches.append(i.block(i.op("sin", p[k]), i.op("cos", p[2])))
    b = Builder()
    x, index = b.param(X), b.param(I)
    args = [x, b.op("sin", x), b.op("exp", x)]
    outs = b.cond(index, branches, *args)
    assert normal_text(b.block(outs[0])) == (
        "{ lambda ; a:f32[4] b:i32[]. let\n"
        "    c:f32[4] = sin a\n"
        "    d:f32[4] = cond[\n"
        "      branches[0]={ lambda ; e:f32[4] f:f32[4]. let\n"
        "          g:f32[4] = sin e\n"
        "        in (g,) }\n"
        "      branches[1]={ lambda ; h:f32[4] i:f32[4]. let\n"
        "          j:f32[4] = sin i\n"
        "        in (j,) }\n"
        "    ] b a c\n"
        "  in (d,) }"
    )


def two_in_two_out() -> Block:
    b = Builder()
    x, y = b.param(X), b.param(X)
    return b.block(b.op("sin", x), b.op("cos", y))


@pytest.mark.parametrize("kind", ["checkpoint", "call"])
def test_regions_lose_what_is_not_used(kind: str) -> None:
    b = Builder()
    x = b.param(X)
    region = b.checkpoint if kind == "checkpoint" else b.call
    outs = region(two_in_two_out(), b.op("exp", x), x)
    head = "checkpoint[" if kind == "checkpoint" else "jit[name=inner"
    assert normal_text(b.block(outs[1])) == (
        "{ lambda ; a:f32[4]. let\n"
        f"    b:f32[4] = {head}\n"
        "      body={ lambda ; c:f32[4]. let\n"
        "          d:f32[4] = cos c\n"
        "        in (d,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_shard_map_loses_specs_with_its_arguments() -> None:
    i = Builder()
    x, y = i.param(t("f32[2]")), i.param(X)
    body = i.block(i.op("sin", x), i.op("cos", y))
    b = Builder()
    x = b.param(X)
    outs = b.shard_map(body, x, x, in_specs=[("x",), ()], out_specs=[("x",), ()], to=[X, X])
    program = normalise(Program(b.block(outs[1]), mesh=Mesh((("x", 2),))))
    check(program)
    assert block_text(program.block) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[4] = shard_map[in_specs=(P()) out_specs=(P())\n"
        "      body={ lambda ; c:f32[4]. let\n"
        "          d:f32[4] = cos c\n"
        "        in (d,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_custom_rules_are_dead_or_alive_as_a_whole() -> None:
    i = Builder()
    x, y = i.param(X), i.param(X)
    i.op("exp", x)  # dead in its own block
    primal = i.block(x, y)
    f = Builder()
    x, y = f.param(X), f.param(X)
    fwd = f.block(x, y, x)
    r = Builder()
    _, ct, _ = r.param(X), r.param(X), r.param(X)
    bwd = r.block(ct, ct)
    b = Builder()
    x = b.param(X)
    outs = b.custom_vjp(primal, fwd, bwd, x, b.op("sin", x), n_residuals=1)
    (kept,) = (e for e in normalise(Program(b.block(outs[0]))).block.eqns if isinstance(e, CustomVjp))
    assert (len(kept.args), len(kept.outs), len(kept.bwd.params)) == (2, 2, 3)
    assert kept.primal.eqns == ()
    assert normal_text(b.block(x)) == "{ lambda ; a:f32[4]. let\n  in (a,) }"


def test_duplicate_arguments_are_merged_within_a_role() -> None:
    i = Builder()
    c0, c1, k, x0, x1 = (i.param(X) for _ in range(5))
    body = i.block(i.op("add", k, c0), i.op("mul", c1, x0), i.op("sub", x0, x1))
    b = Builder()
    a, w = b.param(X), b.param(t("f32[3,4]"))
    assert normal_text(b.block(*b.scan(body, length=3, consts=[a, a], carry=[a], xs=[w, w]))) == (
        "{ lambda ; a:f32[4] b:f32[3,4]. let\n"
        "    c:f32[4] d:f32[3,4] e:f32[3,4] = scan[length=3 num_consts=1 num_carry=1\n"
        "      body={ lambda ; f:f32[4] g:f32[4] h:f32[4]. let\n"
        "          i:f32[4] = add g f\n"
        "          j:f32[4] = mul f h\n"
        "          k:f32[4] = sub h h\n"
        "        in (i, j, k) }\n"
        "    ] a a b\n"
        "  in (c, d, e) }"
    )


def test_duplicates_merge_all_the_way_down() -> None:
    i = Builder()
    inner = i.block(i.op("add", i.param(X), i.param(X)))
    m = Builder()
    middle = m.block(*m.checkpoint(inner, m.param(X), m.param(X)))
    b = Builder()
    x = b.param(X)
    assert normal_text(b.block(*b.call(middle, x, x))) == (
        "{ lambda ; a:f32[4]. let\n"
        "    b:f32[4] = jit[name=inner\n"
        "      body={ lambda ; c:f32[4]. let\n"
        "          d:f32[4] = checkpoint[\n"
        "            body={ lambda ; e:f32[4]. let\n"
        "                f:f32[4] = add e e\n"
        "              in (f,) }\n"
        "          ] c\n"
        "        in (d,) }\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_shard_map_merges_arguments_of_one_spec_only() -> None:
    i = Builder()
    body = i.block(i.op("add", i.op("add", i.param(X), i.param(X)), i.param(X)))
    b = Builder()
    x = b.param(X)
    whole = b.shard_map(body, x, x, x, in_specs=[(), (None,), ()], out_specs=[()], to=[X])
    program = normalise(Program(b.block(*whole), mesh=Mesh((("x", 1),))))
    assert len(program.block.eqns[0].in_specs) == 1  # type: ignore[union-attr]


def test_a_conversion_that_folds_can_make_arguments_alike() -> None:
    i = Builder()
    inner = i.block(i.op("add", i.param(X), i.param(X)))
    b = Builder()
    x = b.param(X)
    text = normal_text(b.block(*b.call(inner, x, b.convert(x, "float32"))))
    assert text.splitlines()[-2:] == ["    ] a", "  in (b,) }"]


def test_sets_and_mappings_come_in_one_order() -> None:
    b = Builder()
    x = b.param(X)
    b.op("sin", x)
    (eqn,) = b.block().eqns
    eqn = msgspec.structs.replace(eqn, attributes=(("b", 1), ("a", 2)), metadata=(("d", "1"), ("c", "2")))
    (out,) = normalise(Program(Block((Var(0, X),), (eqn,), (1,)))).block.eqns
    assert out == msgspec.structs.replace(eqn, attributes=(("a", 2), ("b", 1)), metadata=(("c", "2"), ("d", "1")))


def test_specs_are_short() -> None:
    b = Builder()
    x = b.param(t("f32[4,4]"))
    program = Program(
        b.block(b.constrain(x, (("x",), ())), x),
        mesh=Mesh((("x", 2),)),
        inputs=(Entry((None, None)),),
        result_specs=((("x",), None), None),
    )
    out = normalise(program)
    check(out)
    assert out.inputs == (Entry(()),)
    assert out.result_specs == (("x",), None)
    assert out.block.eqns[0].spec == ("x",)  # type: ignore[union-attr]


def test_entries_that_say_nothing_go() -> None:
    out = normalise(Program(unary("sin", X), inputs=(Entry(),), result_specs=(None,)))
    assert out == Program(unary("sin", X))


def test_scalars_get_their_canonical_text() -> None:
    block = Block((), (), (Lit("float32", "1e0"), Lit("int32", "007")))
    assert normal_text(block) == "{ lambda ; . let\n  in (1.0:f32[], 7:i32[]) }"


def test_variables_are_numbered_in_order_of_binding() -> None:
    block = Block((Var(7, X),), (msgspec.structs.replace(unary("sin", X).eqns[0], args=(7,), outs=(Var(3, X),)),), (3,))
    assert normalise(Program(block)).block == unary("sin", X)


def test_gradient_and_meta_stay() -> None:
    program = Program(unary("sin", X), gradient=Grad((0,)), meta=(("from", "here"),))
    assert normalise(program) == program


def test_zero_length_scans_keep_their_carry() -> None:
    b = Builder()
    x = b.param(X)
    assert "length=0 num_carry=1" in normal_text(b.block(*b.scan(unary("sin", X), length=0, carry=[x])))
