"""Every simplification is smaller, each by the component meant for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reducer.ir.build import Builder, lit
from reducer.ir.equations import (
    BARRIER,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomVjp,
    Entry,
    Equation,
    Fill,
    Grad,
    Mesh,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Var,
)
from reducer.ir.order import order_key, policy_cost, size
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, SaveNames
from tests.ir.samples import SEEDS, seed, t, unary, zoo

X = t("f32[4]")
replace = msgspec.structs.replace

#: Names of the components, in the order of the table in the module's docstring.
COMPONENTS = (
    "size", "gradient", "flags", "metadata", "depth", "ports", "fills", "slices", "policies", "names", "devices",
    "axes", "specs", "entries", "trips", "elements", "dimensions", "dtypes", "memory", "operations", "attributes",
    "scalars", "length", "bytes",
)  # fmt: skip


def component(smaller: Program, larger: Program) -> str:
    """The component that decides; fails if `smaller` is not."""
    a, b = order_key(smaller), order_key(larger)
    assert len(a) == len(b) == len(COMPONENTS)
    assert a < b
    return next(name for name, x, y in zip(COMPONENTS, a, b, strict=True) if x != y)


def test_sizes() -> None:
    assert [size(seed(name)) for name in SEEDS] == [5, 6, 6, 6]
    assert size(zoo()) == 38
    assert size(Program(Block((), (Fill(outs=(Var(0, X),)),), (0,)))) == 0


def test_size_counts_every_block() -> None:
    eqn = next(e for e in zoo().block.eqns if isinstance(e, CustomVjp))
    program = Program(Block((Var(0, X),), (eqn,), ()))
    assert size(program) == 1 + len(eqn.primal.eqns) + len(eqn.fwd.eqns) + len(eqn.bwd.eqns) == 5


def chain(*primitives: str, type_: str = "f32[4]") -> Program:
    b = Builder()
    x = b.param(t(type_))
    for primitive in primitives:
        x = b.op(primitive, x)
    return Program(b.block(x))


def looped(**fields: Any) -> Program:
    """A scan of a checkpoint, with fields of the scan changed."""
    i = Builder()
    body = i.block(*i.checkpoint(unary("sin", X), i.param(X), policy=OffloadNames(("h",))))
    b = Builder()
    program = Program(b.block(*b.scan(body, length=4, carry=[b.param(X)])))
    return changed(program, Scan, **fields)


def changed(program: Program, kind: type, **fields: Any) -> Program:
    """The first equation of a kind, wherever it is, changed."""
    todo = [True]

    def visit(block: Block) -> Block:
        eqns: list[Equation] = []
        for eqn in block.eqns:
            if isinstance(eqn, kind) and todo:
                todo.clear()
                eqns.append(replace(eqn, **fields))
            elif hasattr(eqn, "body"):
                eqns.append(replace(eqn, body=visit(eqn.body)))
            else:
                eqns.append(eqn)
        return Block(block.params, tuple(eqns), block.results)

    out = replace(program, block=visit(program.block))
    assert not todo
    return out


def constrained(spec: Spec) -> Program:
    b = Builder()
    return Program(b.block(b.constrain(b.param(X), spec)), mesh=Mesh((("x", 2), ("y", 2))))


def scan_ports(consts: int, carry: int, xs: int, ys: int) -> Program:
    i = Builder()
    params = [i.param(X) for _ in range(consts + carry + xs)]
    body = i.block(*params[consts : consts + carry], *params[:1] * ys)
    b = Builder()
    x, w = b.param(X), b.param(t("f32[3,4]"))
    b.scan(body, length=3, consts=[x] * consts, carry=[x] * carry, xs=[w] * xs)
    return Program(b.block())


def filled(*args: float | None, text: str = "0.0", dtype: str = "float32") -> Program:
    """`max` of an input and each of these: a scalar, or None for a constant array."""
    b = Builder()
    type_ = t("f32[4]").with_dtype(dtype)
    x = b.param(type_)
    for arg in args:
        x = b.op("max", x, b.fill(type_, text) if arg is None else lit(arg, dtype))
    return Program(b.block(x))


def parts(*args: Any, **kwargs: Any) -> Program:
    return replace(chain("sin"), *args, **kwargs)


mesh = Mesh((("x", 2), ("y", 2)))
STEPS: dict[str, tuple[Callable[[], Program], Callable[[], Program], str]] = {
    "equation deleted": (lambda: chain("sin"), lambda: chain("sin", "sin"), "size"),
    "region unwrapped": (lambda: chain("sin"), lambda: looped(), "size"),
    "equation replaced by a constant": (lambda: filled(None), lambda: filled(1.0, None), "size"),
    "no gradient": (lambda: parts(), lambda: parts(gradient=Grad((0,))), "gradient"),
    "no value": (
        lambda: parts(gradient=Grad((0,), with_value=False)),
        lambda: parts(gradient=Grad((0,))),
        "gradient",
    ),
    "fewer argnums": (
        lambda: parts(gradient=Grad((0,))),
        lambda: parts(gradient=Grad((0, 1), with_value=False)),
        "gradient",
    ),
    "moved out of a region": (
        lambda: calls(inner=("sin",), outer=("sin",)),
        lambda: calls(inner=("sin", "sin")),
        "depth",
    ),
    "input dropped": (
        lambda: chain("sin"),
        lambda: replace(chain("sin"), block=replace(chain("sin").block, params=(Var(0, X), Var(7, X)))),
        "ports",
    ),
    "result dropped": (
        lambda: chain("sin"),
        lambda: replace(chain("sin"), block=replace(chain("sin").block, results=(1, 0))),
        "ports",
    ),
    "const dropped": (lambda: scan_ports(0, 1, 1, 0), lambda: scan_ports(1, 1, 1, 0), "ports"),
    "carry dropped": (lambda: scan_ports(1, 0, 1, 0), lambda: scan_ports(1, 1, 1, 0), "ports"),
    "x dropped": (lambda: scan_ports(1, 1, 0, 0), lambda: scan_ports(1, 1, 1, 0), "ports"),
    "y dropped": (lambda: scan_ports(1, 1, 1, 0), lambda: scan_ports(1, 1, 1, 1), "ports"),
    "carry to const": (lambda: scan_ports(2, 0, 1, 0), lambda: scan_ports(1, 1, 1, 0), "ports"),
    "x to const": (lambda: scan_ports(2, 1, 0, 0), lambda: scan_ports(1, 1, 1, 0), "slices"),
    "branch dropped": (lambda: cond(1), lambda: cond(2), "ports"),
    "input replaced by zeros": (lambda: zeros_or_input(zeros=True), lambda: zeros_or_input(zeros=False), "ports"),
    "zeros replaced by a value": (lambda: shared_zeros(1), lambda: shared_zeros(2), "fills"),
    "policy dropped": (lambda: policy(None), lambda: policy(Plain("nothing_saveable")), "policies"),
    "two names merged": (
        lambda: policy(SaveNames(("h",)), SaveNames(("h",))),
        lambda: policy(SaveNames(("h",)), SaveNames(("g",))),
        "names",
    ),
    "not reversed": (lambda: looped(), lambda: looped(reverse=True), "flags"),
    "not unrolled": (lambda: looped(), lambda: looped(unroll=2), "flags"),
    "unrolled less": (lambda: looped(unroll=2), lambda: looped(unroll=4), "flags"),
    "prevent_cse by default": (
        lambda: looped(),
        lambda: changed(looped(), Checkpoint, prevent_cse=False),
        "flags",
    ),
    "not differentiated": (lambda: looped(), lambda: changed(looped(), Checkpoint, differentiated=True), "flags"),
    "default name of a call": (
        lambda: calls(inner=("sin",)),
        lambda: changed(calls(inner=("sin",)), Call, name="step"),
        "flags",
    ),
    "no vma": (lambda: sharded(), lambda: sharded(check_vma=True), "flags"),
    "barrier dropped": (lambda: looped(), lambda: looped(metadata=BARRIER), "metadata"),
    "no mesh": (lambda: parts(), lambda: parts(mesh=Mesh((("x", 1),))), "devices"),
    "fewer devices": (lambda: parts(mesh=Mesh((("x", 2),))), lambda: parts(mesh=Mesh((("x", 4),))), "devices"),
    "fewer axes": (lambda: parts(mesh=Mesh((("x", 4),))), lambda: parts(mesh=mesh), "axes"),
    "constraint on fewer axes": (lambda: constrained(("x",)), lambda: constrained((("x", "y"),)), "specs"),
    "constraint on none": (lambda: constrained(()), lambda: constrained(("x",)), "specs"),
    "fewer manual axes": (lambda: sharded(), lambda: sharded(manual=("x",)), "specs"),
    "input not sharded": (
        lambda: parts(mesh=mesh, inputs=(Entry(()),)),
        lambda: parts(mesh=mesh, inputs=(Entry(("x",)),)),
        "specs",
    ),
    "input without a spec": (
        lambda: parts(mesh=mesh),
        lambda: parts(mesh=mesh, inputs=(Entry(()),)),
        "entries",
    ),
    "not donated": (lambda: parts(), lambda: parts(inputs=(Entry(donated=True),)), "entries"),
    "result without a spec": (
        lambda: parts(mesh=mesh),
        lambda: parts(mesh=mesh, result_specs=((),)),
        "entries",
    ),
    "result not sharded": (
        lambda: parts(mesh=mesh, result_specs=((),)),
        lambda: parts(mesh=mesh, result_specs=(("x",),)),
        "specs",
    ),
    "shorter loop": (lambda: looped(length=3), lambda: looped(length=4), "trips"),
    "lower dimension": (lambda: chain("sin", type_="f32[3]"), lambda: chain("sin", type_="f32[4]"), "elements"),
    "lower dimension beside a higher": (
        lambda: chain("sin", type_="f32[2,3]"),
        lambda: chain("sin", type_="f32[1,8]"),
        "elements",
    ),
    "axis of size 1 dropped": (
        lambda: chain("sin", type_="f32[4]"),
        lambda: chain("sin", type_="f32[4,1]"),
        "dimensions",
    ),
    "float32": (lambda: chain("sin"), lambda: chain("sin", type_="bf16[4]"), "dtypes"),
    "bfloat16": (lambda: chain("sin", type_="bf16[4]"), lambda: chain("sin", type_="f8_e5m2[4]"), "dtypes"),
    "int32": (lambda: chain("neg", type_="i32[4]"), lambda: chain("neg", type_="i8[4]"), "dtypes"),
    "dtype of a scalar": (
        lambda: Program(Block((), (), (lit(0, "int32"),))),
        lambda: Program(Block((), (), (lit(0, "int8"),))),
        "dtypes",
    ),
    "device memory": (lambda: chain("sin"), lambda: chain("sin", type_="f32[4]<host>"), "memory"),
    "sin": (lambda: chain("sin"), lambda: chain("tanh"), "operations"),
    "attribute dropped": (
        lambda: chain("sin"),
        lambda: changed(chain("sin"), Op, attributes=(("accuracy", None),)),
        "attributes",
    ),
    "scalar 0": (lambda: filled(0.0), lambda: filled(1.0), "scalars"),
    "scalar 1": (lambda: filled(1.0), lambda: filled(2.0), "scalars"),
    "shorter scalar": (lambda: filled(2.0), lambda: filled(0.25), "scalars"),
    "constant 0": (lambda: filled(None), lambda: filled(None, text="0.5"), "scalars"),
    "lower integer": (lambda: filled(3, dtype="int32"), lambda: filled(7, dtype="int32"), "bytes"),
    "shorter name": (lambda: policy(SaveNames(("h",))), lambda: policy(SaveNames(("hidden",))), "length"),
}


def calls(*, inner: tuple[str, ...], outer: tuple[str, ...] = ()) -> Program:
    b = Builder()
    x = b.param(X)
    for primitive in outer:
        x = b.op(primitive, x)
    return Program(b.block(*b.call(chain(*inner).block, x)))


def cond(branches: int) -> Program:
    b = Builder()
    return Program(b.block(*b.cond(b.param(t("i32[]")), [Block((Var(0, X),), (), (0,))] * branches, b.param(X))))


def sharded(**fields: Any) -> Program:
    b = Builder()
    x = b.param(X)
    (v,) = b.shard_map(unary("sin", X), x, in_specs=[()], out_specs=[()], to=[X])
    return changed(Program(b.block(v), mesh=Mesh((("x", 2),))), ShardMap, **fields)


def policy(*policies: Any) -> Program:
    b = Builder()
    x = b.param(X)
    for each in policies:
        (x,) = b.checkpoint(unary("sin", X), x, policy=each)
    return Program(b.block(x))


def zeros_or_input(*, zeros: bool) -> Program:
    b = Builder()
    x = b.param(X)
    return Program(b.block(b.op("add", x, b.fill(X) if zeros else b.param(X))))


def shared_zeros(n: int) -> Program:
    b = Builder()
    x = b.param(X)
    fills = [b.fill(X) for _ in range(n)]
    return Program(b.block(b.op("clamp", fills[0], x, fills[-1])))


@pytest.mark.parametrize(("smaller", "larger", "decides"), STEPS.values(), ids=list(STEPS))
def test_step_is_smaller(smaller: Callable[[], Program], larger: Callable[[], Program], decides: str) -> None:
    assert component(smaller(), larger()) == decides


def test_every_component_decides_something() -> None:
    assert {decides for _, _, decides in STEPS.values()} == set(COMPONENTS)


def test_flat_is_smaller_than_trip_count_one() -> None:
    keys = [order_key(seed(name)) for name in SEEDS]
    assert keys[0] == min(keys)


def test_policies_by_complexity() -> None:
    ladder = [
        None,
        Plain("dots_saveable"),
        SaveNames(()),
        SaveNames(("h",)),
        SaveNames(("g", "h")),
        OffloadNames(("h",)),
        OffloadNames(("h",), saved=("g",)),
        OffloadNames(("g", "h")),
        OffloadNames(("g", "h"), dst="unpinned_host"),
        Both(OffloadNames(("g", "h")), SaveNames(())),
    ]
    costs = [policy_cost(p) for p in ladder]
    assert costs == sorted(costs)
    assert policy_cost(OffloadDots()) < policy_cost(OffloadDots(dst="unpinned_host"))


def test_meta_does_not_count() -> None:
    program = seed("flat")
    assert order_key(replace(program, meta=(("found", "by chance"),))) == order_key(program)


def test_equal_keys_mean_equal_programs() -> None:
    programs = [zoo(), *map(seed, SEEDS), *(make() for a, b, _ in STEPS.values() for make in (a, b))]
    for one, other in itertools.combinations(programs, 2):
        assert (order_key(one) == order_key(other)) == (one == other)


def test_constraints_count_even_without_axes() -> None:
    program = constrained(())
    assert any(isinstance(e, ShardingConstraint) for e in program.block.eqns)
    assert order_key(program)[COMPONENTS.index("specs")] == 1


def test_branches_count() -> None:
    (eqn,) = (e for e in zoo().block.eqns if isinstance(e, Cond))
    program = Program(Block((), (eqn,), ()))
    assert size(program) == 3
