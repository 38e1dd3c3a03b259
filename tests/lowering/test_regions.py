"""Equations that hold blocks: written, traced with every type checked, and compared with the same thing by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.equations import (
    BARRIER,
    Block,
    Checkpoint,
    CustomJvp,
    Entry,
    Fill,
    Grad,
    Lit,
    Mesh,
    Name,
    Op,
    Program,
    Scan,
    Var,
)
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, Policy, SaveAllBut, SaveNames, SaveNamesBut
from reducer.ir.types import Type
from reducer.lowering.emit import emit
from reducer.lowering.load import load

F = Type("float32", (3,))
M = Type("float32", (3, 3))
S = Type("float32")
N = Type("int32")
C = np.array([0.5, -1.0, 2.0], np.float32)
W = (np.arange(18, dtype=np.float32).reshape(2, 3, 3) - 8) / 10


def same(program: Program, want: Any, *inputs: Any) -> str:
    """Typed and untyped text trace and give `want`; returns the untyped text."""
    import jax

    for typed in (True, False):
        got = load(program, typed=typed).fn(*inputs)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    return emit(program)


def body_names(text: str) -> list[str]:
    return [line.strip().split("(")[0][4:] for line in text.splitlines() if line.strip().startswith("def ")]


def scan_body(*, doubled: bool = False) -> Block:
    """Const k, carry c and i, x: c' = tanh(c @ x) * k, i' = i + 1; y = c (twice if doubled)."""
    b = Builder()
    k, c, i, x = b.param(S), b.param(F), b.param(N), b.param(M)
    h = b.op("tanh", b.op("dot_general", c, x, dimension_numbers=(((0,), (0,)), ((), ()))))
    new = b.op("mul", h, k)
    count = b.op("add", i, lit(1, "int32"))
    return b.block(new, count, c, *([h] if doubled else []))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("doubled", [False, True])
def test_scan_with_constants_carries_and_stacks(reverse: bool, doubled: bool) -> None:
    import jax.numpy as jnp
    from jax import lax

    b = Builder()
    k, c, ws = b.param(S), b.param(F), b.param(M.stacked(2))
    outs = b.scan(
        scan_body(doubled=doubled),
        length=2,
        consts=(k,),
        carry=(c, lit(5, "int32")),
        xs=(ws,),
        reverse=reverse,
        unroll=2,
    )
    program = Program(b.block(*outs))

    def step(carry: Any, w: Any) -> Any:
        h = jnp.tanh(carry[0] @ w)
        return (h * 2.0, carry[1] + 1), ((carry[0], h) if doubled else carry[0])

    carry, ys = lax.scan(step, (jnp.asarray(C), jnp.int32(5)), W, reverse=reverse)
    text = same(program, (*carry, *(ys if doubled else (ys,))), np.float32(2), C, W)
    assert "lax.scan(" in text
    assert ("reverse=True" in text) == reverse
    assert "unroll=2" in text


def test_scan_without_carry_or_xs() -> None:
    b = Builder()
    inner = Builder()
    x = inner.param(F)
    (y,) = b.scan(inner.block(inner.op("neg", x)), length=2, xs=(b.param(F.stacked(2)),))
    counting = Builder()
    i = counting.param(N)
    (n,) = b.scan(counting.block(counting.op("add", i, lit(2, "int32"))), length=3, carry=(lit(1, "int32"),))
    nothing = b.scan(Builder().block(), length=3)
    stacked = Builder()
    (z,) = b.scan(stacked.block(lit(1.5)), length=2)
    assert nothing == ()
    text = same(Program(b.block(y, n, z)), (-W[:, 0], 7, np.full(2, 1.5)), W[:, 0])
    assert "length=3" in text


def checkpointed(policy: Policy | None, *, prevent_cse: bool = True, order: tuple[int, ...] = (0, 1)) -> Block:
    """A scan body that is one checkpoint; `order` permutes the arguments of the checkpoint."""
    types = [F, M]
    inner = Builder()
    params = dict(zip(order, [inner.param(types[i]) for i in order], strict=True))
    c, w = params[0], params[1]
    y = inner.op("dot_general", inner.name(c, "h"), w, dimension_numbers=(((0,), (0,)), ((), ())))
    body = inner.block(inner.op("tanh", y))
    outer = Builder()
    args = (outer.param(F), outer.param(M))
    return outer.block(*outer.checkpoint(body, *(args[i] for i in order), policy=policy, prevent_cse=prevent_cse))


def scanned(body: Block) -> Program:
    b = Builder()
    c, w = b.param(F), b.param(M.stacked(2))
    return Program(b.block(*b.scan(body, length=2, carry=(c,), xs=(w,))), gradient=Grad((0, 1)))


def reference() -> Any:
    import jax
    import jax.numpy as jnp

    return jax.value_and_grad(lambda c, w: jnp.tanh(jnp.tanh(c @ w[0]) @ w[1]).sum(), argnums=(0, 1))(C, W)


POLICIES: tuple[Policy | None, ...] = (
    None,
    Plain("everything_saveable"),
    Plain("nothing_saveable"),
    Plain("dots_saveable"),
    Plain("dots_with_no_batch_dims_saveable"),
    SaveNames(("h", "k")),
    SaveAllBut(("h",)),
    SaveNamesBut(("k",)),
    OffloadNames(("h",), ("k",)),
    OffloadDots(),
    Both(SaveNames(("h",)), Plain("dots_saveable")),
)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_scan_of_a_checkpoint_is_written_as_one(policy: Policy | None) -> None:
    text = same(scanned(checkpointed(policy)), reference(), C, W)
    assert body_names(text) == ["loss", "layer", "lower"]
    assert f"lax.scan(jax.checkpoint(layer{'' if policy is None else ', policy=policy'}), " in text


def test_a_permuted_checkpoint_is_fused_too() -> None:
    text = same(scanned(checkpointed(None, order=(1, 0), prevent_cse=False)), reference(), C, W)
    assert "lax.scan(jax.checkpoint(layer, prevent_cse=False), " in text


def test_a_checkpoint_beside_other_equations_is_not_fused() -> None:
    body = checkpointed(None)
    eqn = body.eqns[0]
    extra = Op(outs=(Var(50, F),), primitive="neg", args=(eqn.outs[0].id,))
    twice = Op(outs=(Var(51, F),), primitive="neg", args=(50,))
    program = scanned(Block(body.params, (eqn, extra, twice), (51,)))
    text = same(program, reference(), C, W)
    assert "jax.checkpoint(block)(c, w)" in text


def test_two_checkpoints_share_one_policy_and_others_get_their_own() -> None:
    b = Builder()
    x = b.param(F)
    for policy in (SaveNames(("a",)), SaveNames(("b",)), SaveNames(("a",))):
        inner = Builder()
        (x,) = b.checkpoint(inner.block(inner.op("sin", inner.param(F))), x, policy=policy)
    text = same(Program(b.block(x)), np.sin(np.sin(np.sin(C))), C)
    assert text.count("save_only_these_names") == 2
    assert text.count("policy=policy)") == 2
    assert text.count("policy=policy_1)") == 1


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_a_differentiated_checkpoint_is_a_barrier(prevent_cse: bool) -> None:
    b, inner = Builder(), Builder()
    x, k = inner.param(F), inner.param(S)
    body = inner.block(inner.op("mul", inner.op("sin", x), k), k, x)
    outs = b.checkpoint(
        body, b.param(F), lit(3.0), prevent_cse=prevent_cse, differentiated=True, policy=SaveNames(("q",))
    )
    text = same(Program(b.block(*outs)), (np.sin(C) * 3, np.float32(3), C), C)
    assert ("lax.optimization_barrier" in text) == prevent_cse
    assert "jax.checkpoint" not in text


def branches(n: int) -> list[Block]:
    out = []
    for i in range(n):
        inner = Builder()
        x = inner.param(F)
        out.append(inner.block(inner.op("mul", x, lit(float(i))), inner.op("exp", x) if i else x))
    return out


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (7, 2), (-3, 0)])
def test_cond_clamps_its_index(index: int, taken: int) -> None:
    b = Builder()
    i, x = b.param(N), b.param(F)
    program = Program(b.block(*b.cond(i, branches(3), x)))
    text = same(program, (C * taken, np.exp(C) if taken else C), np.int32(index), C)
    assert "lax.switch(" in text


def test_cond_on_a_converted_predicate_is_written_as_cond() -> None:
    b = Builder()
    p, x = b.param(Type("bool")), b.param(F)
    program = Program(b.block(*b.cond(b.convert(p, "int32"), branches(2), x)))
    for value in (True, False):
        text = same(program, (C * value, np.exp(C) if value else C), np.asarray(value), C)
    assert "lax.cond(p, branch_1, branch_0, x)" in text
    assert "astype" not in text


def test_cond_of_one_branch_and_a_constant_index() -> None:
    b = Builder()
    outs = b.cond(lit(0, "int32"), branches(1), b.param(F))
    same(Program(b.block(*outs)), (C * 0, C), C)


def test_while_with_constants() -> None:
    cond = Builder()
    limit, i, _ = cond.param(N), cond.param(N), cond.param(F)
    body = Builder()
    factor, j, x = body.param(S), body.param(N), body.param(F)
    b = Builder()
    n, f, c = b.param(N), b.param(S), b.param(F)
    outs = b.while_loop(
        cond.block(cond.op("lt", i, limit)),
        body.block(body.op("add", j, lit(1, "int32")), body.op("mul", x, factor)),
        (lit(0, "int32"), c),
        cond_consts=(n,),
        body_consts=(f,),
    )
    same(Program(b.block(*outs)), (3, C * 8), np.int32(3), np.float32(2), C)


def test_call_with_a_name_that_is_no_identifier() -> None:
    for name in ("layer", "not a name", "lambda", "jnp", "x"):
        b, inner = Builder(), Builder()
        outs = b.call(inner.block(inner.op("sin", inner.param(F))), b.param(F), name=name)
        same(Program(b.block(*outs)), np.sin(C), C)


def test_custom_vjp_uses_its_own_rule() -> None:
    """f(x, n, y) = (x * y, n); the rule pretends that the derivative in x is 10."""
    primal, fwd, bwd, b = Builder(), Builder(), Builder(), Builder()
    x, n, y = primal.param(F), primal.param(N), primal.param(F)
    primal_block = primal.block(primal.op("mul", x, y), n)
    x, n, y = fwd.param(F), fwd.param(N), fwd.param(F)
    fwd_block = fwd.block(fwd.op("mul", x, y), n, x, y)
    rx, _, g = bwd.param(F), bwd.param(F), bwd.param(F)
    bwd_block = bwd.block(bwd.op("mul", g, lit(10.0)), bwd.op("mul", g, rx))
    args = (b.param(F), b.param(N), b.param(F))
    z, _ = b.custom_vjp(primal_block, fwd_block, bwd_block, *args, n_residuals=2)
    program = Program(b.block(z), gradient=Grad((0, 2)))
    want = ((C * (C + 1)).sum(), (np.full(3, 10.0), C))
    text = same(program, want, C, np.int32(4), C + 1)
    assert "@jax.custom_vjp" in text


def test_custom_vjp_of_one_argument_without_residuals() -> None:
    primal, fwd, bwd, b = Builder(), Builder(), Builder(), Builder()
    primal_block = primal.block(primal.op("sin", primal.param(F)))
    fwd_block = fwd.block(fwd.op("sin", fwd.param(F)))
    bwd_block = bwd.block(bwd.op("mul", bwd.param(F), lit(7.0)))
    outs = b.custom_vjp(primal_block, fwd_block, bwd_block, b.param(F), n_residuals=0)
    same(Program(b.block(*outs), gradient=Grad((0,))), (np.sin(C).sum(), np.full(3, 7.0)), C)


def test_custom_jvp_uses_its_own_rule() -> None:
    primal, jvp = Builder(), Builder()
    x, n = primal.param(F), primal.param(N)
    primal_block = primal.block(primal.op("sin", x), n)
    x, n, dx = jvp.param(F), jvp.param(N), jvp.param(F)
    jvp_block = jvp.block(jvp.op("sin", x), n, jvp.op("mul", dx, lit(5.0)))
    eqn = CustomJvp(outs=(Var(2, F), Var(3, N)), args=(0, 1), primal=primal_block, jvp=jvp_block)
    block = Block((Var(0, F), Var(1, N)), (eqn,), (2,))
    text = same(Program(block, gradient=Grad((0,))), (np.sin(C).sum(), np.full(3, 5.0)), C, np.int32(1))
    assert "defjvp" in text


def test_transfers_name_the_memory_space() -> None:
    b = Builder()
    x = b.param(F)
    h = b.transfer(x, "host")
    f = Fill(outs=(Var(90, F.in_memory("host")),), value="2.0")
    block = b.block(h, b.transfer(h, "device"), 90)
    text = emit(Program(msgspec.structs.replace(block, eqns=(*block.eqns, f)), gradient=None), typed=True)
    assert "jax.device_put(x, jax.memory.Space.Host)" in text
    assert "jax.memory.Space.Device)" in text
    assert "jax.device_put(jnp.full((3,), 2.0, jnp.float32), jax.memory.Space.Host)" in text


def test_fills() -> None:
    b = Builder()
    outs = [
        b.fill(F),
        b.fill(F, "1.0"),
        b.fill(F, "inf"),
        b.fill(Type("bool", (2,)), "True"),
        b.fill(N, "-7"),
        b.fill(S, "nan"),
    ]
    want = (np.zeros(3), np.ones(3), np.full(3, np.inf), np.array([True, True]), -7, np.nan)
    text = same(Program(b.block(*outs, lit(2.0), lit(True, "bool"))), (*want, 2.0, True))
    assert "jnp.zeros((3,), jnp.float32)" in text


# -- metadata -----------------------------------------------------------------------------------------------------


def loops(eqn: Any) -> list[tuple[str, dict[str, Any]]]:
    """Scans of a jaxpr, outer first, with their metadata."""
    found = []
    for e in getattr(eqn, "jaxpr", eqn).eqns:
        if e.primitive.name == "scan":
            found.append((e.primitive.name, dict(e.ctx.xla_metadata or {})))
        inner = e.params.get("jaxpr")
        found += loops(inner) if inner is not None else []
    return found


@pytest.mark.parametrize("outer", [(), BARRIER, (("other", "1"),)], ids=str)
@pytest.mark.parametrize("inner", [(), BARRIER, (("other", "1"),)], ids=str)
def test_each_loop_carries_its_own_metadata_and_no_other(outer: Any, inner: Any) -> None:
    import jax

    step = Builder()
    c = step.param(F)
    leaf = step.block(step.op("sin", c))
    middle = Builder()
    block = middle.block(*middle.scan(leaf, length=1, carry=(middle.param(F),), metadata=inner))
    b = Builder()
    program = Program(b.block(*b.scan(block, length=1, carry=(b.param(F),), metadata=outer)))
    jaxpr = jax.make_jaxpr(load(program).fn)(C)
    assert loops(jaxpr) == [("scan", dict(outer)), ("scan", dict(inner))]


def test_arguments_are_written_outside_the_metadata() -> None:
    import jax

    step, b = Builder(), Builder()
    body = step.block(step.op("sin", step.param(F)))
    c = b.op("add", b.op("exp", b.param(F)), b.fill(F, "2.0"))
    text = load(Program(b.block(*b.scan(body, length=1, carry=(c,), metadata=BARRIER))), typed=False)
    jaxpr = jax.make_jaxpr(text.fn)(C)
    assert [(e.primitive.name, bool(e.ctx.xla_metadata)) for e in jaxpr.eqns] == [
        ("exp", False), ("broadcast_in_dim", False), ("add", False), ("scan", True),
    ]  # fmt: skip


def test_metadata_of_a_plain_equation() -> None:
    import jax

    eqn = Op(outs=(Var(1, F),), primitive="sin", args=(0,), metadata=(("a b", 'c"d'),))
    program = Program(Block((Var(0, F),), (eqn,), (1,)))
    jaxpr = jax.make_jaxpr(load(program).fn)(C)
    assert dict(jaxpr.eqns[0].ctx.xla_metadata) == {"a b": 'c"d'}


# -- devices ------------------------------------------------------------------------------------------------------


def test_shard_map_and_constraints_lower_on_one_device() -> None:
    import jax

    mesh = Mesh((("data", 1), ("model", 1)))
    inner = Builder()
    x = inner.param(M)
    total = Op(outs=(Var(9, M),), primitive="psum", args=(x,), attributes=(("axes", ("data",)),))
    block = inner.block(9)
    body = msgspec.structs.replace(block, eqns=(total,))
    b = Builder()
    x = b.constrain(b.param(M), ("data", None))
    (y,) = b.shard_map(body, x, in_specs=(("data",),), out_specs=((),), to=(M,))
    (z,) = b.shard_map(body, y, in_specs=(("data",),), out_specs=((),), to=(M,), manual=("data",))
    program = Program(
        b.block(z),
        mesh=mesh,
        inputs=(Entry(("model", "data"), donated=True),),
        result_specs=((None, ("data", "model")),),
    )
    module = load(program)
    assert "check_vma=False" in module.text
    assert 'axis_names={"data"}' in module.text
    assert "sdy.sharding_constraint" in module.lower(jax.devices()).as_text()
    assert "tf.aliasing_output" in module.lower(jax.devices()).as_text()
    assert traced(module, mesh, M) == ["sharding_constraint", "shard_map", "psum", "shard_map", "psum"]


def traced(module: Any, mesh: Mesh, *types: Type) -> list[str]:
    """Primitives of a program traced on the CPU under its mesh, those of shard_map bodies included."""
    import jax

    def walk(jaxpr: Any) -> list[str]:
        found = []
        for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            found.append(eqn.primitive.name)
            found += walk(eqn.params["jaxpr"]) if "jaxpr" in eqn.params else []
        return found

    devices = np.array(jax.devices()[: mesh.size]).reshape([n for _, n in mesh.axes])
    with jax.set_mesh(jax.sharding.Mesh(devices, tuple(a for a, _ in mesh.axes))):
        return walk(jax.make_jaxpr(module.fn)(*(jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types)))


COLLECTIVES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("psum", "f32[2]", "f32[2]", {"axes": ("a",)}),
    ("psum_invariant", "f32[2]", "f32[2]", {"axes": ("a",)}),
    ("pmax", "f32[2]", "f32[2]", {"axes": ("a",)}),
    ("pmin", "f32[2]", "f32[2]", {"axes": ("a",)}),
    ("ppermute", "f32[2]", "f32[2]", {"axis_name": ("a",), "perm": ((0, 0),)}),
    ("all_gather", "f32[2]", "f32[1,2]", {"axis_name": ("a",), "all_gather_dimension": 0, "tiled": False}),
    ("all_gather", "f32[2]", "f32[2]", {"axis_name": ("a",), "all_gather_dimension": 0, "tiled": True}),
    ("reduce_scatter", "f32[2]", "f32[2]", {"axis_name": ("a",), "scatter_dimension": 0, "tiled": True}),
    ("all_to_all", "f32[2,2]", "f32[2,2]", {"axis_name": ("a",), "split_axis": 0, "concat_axis": 1, "tiled": True}),
    ("axis_index", "", "i32[]", {"axis_name": "a"}),
    ("pcast", "f32[2]", "f32[2]", {"axes": ("a",), "to": "varying"}),
    ("pvary", "f32[2]", "f32[2]", {"axes": ("a",)}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("primitive", "arg", "out", "attributes"), COLLECTIVES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_collectives_trace_inside_shard_map(primitive: str, arg: str, out: str, attributes: dict[str, Any]) -> None:

    from reducer.ir.types import parse_type

    result = parse_type(out)
    b = Builder()
    args = (b.param(parse_type(arg)),) if arg else ()
    eqn = Op(
        outs=(Var(9, result),),
        primitive=primitive,
        args=(0,) if arg else (),
        attributes=tuple(sorted(attributes.items())),
    )
    body = Block((Var(0, parse_type(arg)),) if arg else (), (eqn,), (9,))
    (y,) = b.shard_map(body, *args, in_specs=((),) * len(args), out_specs=((),), to=(result,))
    varying = primitive in ("pcast", "pvary", "psum_invariant")
    block = b.block(y)
    if varying:  # these exist only where JAX tracks which values vary
        eqns = tuple(
            msgspec.structs.replace(e, check_vma=True, in_specs=(("a",),), out_specs=(("a",),)) for e in block.eqns
        )
        if primitive == "psum_invariant":
            eqns = tuple(msgspec.structs.replace(e, out_specs=((),)) for e in eqns)
        else:
            eqns = tuple(msgspec.structs.replace(e, in_specs=((),)) for e in eqns)
        block = msgspec.structs.replace(block, eqns=eqns)
    mesh = Mesh((("a", 1),))
    found = traced(load(Program(block, mesh=mesh)), mesh, *(var.type for var in block.params))
    assert found[0] == "shard_map"
    assert {"pcast": "pvary"}.get(primitive, primitive) in found


# -- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_wrong_recorded_type_is_refused_with_its_place() -> None:
    import jax

    eqn = Op(outs=(Var(1, Type("float32", (4,))),), primitive="sin", args=(0,))
    body = Block((Var(0, F),), (eqn,), (1,))
    outer = Checkpoint(outs=(Var(1, Type("float32", (4,))),), args=(0,), body=body)
    program = Program(Block((Var(0, F),), (outer,), (1,)))
    module = load(program, typed=True)
    with pytest.raises(
        TypeError, match=r"eqns\[0\]\.body\.eqns\[0\]: float32\[4\] is recorded, float32\[3\] was traced"
    ):
        jax.make_jaxpr(module.fn)(C)
    jax.make_jaxpr(load(program, typed=False).fn)(C)


def test_an_exception_of_jax_is_placed() -> None:
    import jax

    eqn = Op(outs=(Var(1, F),), primitive="add", args=(0, 2))
    params = (Var(0, F), Var(2, Type("float32", (2,))))
    body = Block(params, (eqn,), (1,))
    scan = Scan(outs=(Var(7, F),), length=1, carry=(0,), xs=(3,), body=body)
    program = Program(Block((Var(0, F), Var(3, Type("float32", (1, 2)))), (scan,), (7,)))
    module = load(program, typed=True)
    with pytest.raises((TypeError, ValueError)) as caught:
        jax.make_jaxpr(module.fn)(C, np.zeros((1, 2), np.float32))
    assert module.place(caught.value) == "eqns[0].body.eqns[0]"


def test_an_unbound_variable_is_refused() -> None:
    program = Program(Block((), (Name(outs=(Var(1, F),), arg=0, name="h"),), (1,)))
    with pytest.raises(ProgramError, match=r"eqns\[0\]: .*variable 0") as caught:
        emit(program)
    assert caught.value.where == "eqns[0]"


def test_a_malformed_scalar_is_refused() -> None:
    program = Program(
        Block(
            (Var(0, F),), (Op(outs=(Var(1, F),), primitive="add", args=(0, Lit("float32", "__import__('os')"))),), (1,)
        )
    )
    with pytest.raises(ProgramError, match="no scalar"):
        emit(program)
