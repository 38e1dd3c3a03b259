"""Small programs that the tests of the IR share."""

from __future__ import annotations

from pathlib import Path

from reducer.ir.build import Builder, lit
from reducer.ir.codec import decode
from reducer.ir.equations import BARRIER, Block, CustomJvp, Entry, Fill, Grad, Mesh, Name, Op, Program, Transfer, Var
from reducer.ir.policies import Both, OffloadNames, Plain, SaveNames
from reducer.ir.types import Type, parse_type

SEEDS = ("flat", "nested", "trip_count_one", "trip_count_one_no_barrier")


def seed(name: str) -> Program:
    """One of the programs the project started from."""
    return decode((Path(__file__).parents[1] / "seed" / f"{name}.json").read_bytes())


def t(text: str) -> Type:
    """A type from its text."""
    return parse_type(text)


def unary(primitive: str, type_: Type) -> Block:
    """A block that applies one primitive to its only parameter."""
    b = Builder()
    return b.block(b.op(primitive, b.param(type_)))


def op(out: str, primitive: str, *args: int) -> Op:
    """An operation with one result, ``%9``, of any recorded type."""
    return Op(outs=(Var(9, t(out)),), primitive=primitive, args=args)


def name(out: str, arg: int) -> Name:
    """A `checkpoint_name` that binds ``%9``."""
    return Name(outs=(Var(9, t(out)),), arg=arg, name="h")


def transfer(out: str, arg: int) -> Transfer:
    """A transfer to the host that binds ``%9``."""
    return Transfer(outs=(Var(9, t(out)),), arg=arg, memory="host")


def fill(out: str, value: str) -> Fill:
    """A constant that binds ``%9``."""
    return Fill(outs=(Var(9, t(out)),), value=value)


def zoo() -> Program:
    """One program with every kind of equation, everything live, every attribute somewhere off its default."""
    x = t("f32[4]")
    b = Builder()
    a, w, i = b.param(x), b.param(t("f32[3,4]")), b.param(t("i32[]"))
    v = b.custom_vjp(unary("sin", x), _fwd(x), _bwd(x), a, n_residuals=1)[0]
    (v,) = b._add(CustomJvp(outs=b._bind((x,)), args=(v,), primal=unary("sin", x), jvp=_jvp(x)))
    policy = Both(OffloadNames(("h",), saved=("g",)), SaveNames(("g",)))
    (v,) = b.checkpoint(_named(x), v, policy=policy, prevent_cse=False)
    (v,) = b.checkpoint(unary("tanh", x), v, policy=Plain("dots_saveable"), differentiated=True)
    v, ys = b.scan(_body(x), length=3, consts=[a], carry=[v], xs=[w], reverse=True, unroll=2, metadata=BARRIER)
    (v,) = b.cond(i, [unary("sin", x), unary("cos", x)], v)
    v, _ = b.while_loop(_test(x), _turn(x), [v, i], cond_consts=[i], body_consts=[a])
    (v,) = b.call(unary("exp", x), v, name="step")
    v = b.transfer(b.transfer(v, "host"), "device")
    v = b.op("add", v, b.fill(x, "2.5"))
    (v,) = b.shard_map(unary("sin", t("f32[2]")), v, in_specs=[("x",)], out_specs=[("x",)], to=[x])
    v = b.constrain(v, ("x",))
    v = b.op("mul", v, lit(0.5))
    return Program(
        b.block(v, ys, b.op("convert_element_type", i, to=t("f32[]"))),
        gradient=Grad((0, 1)),
        mesh=Mesh((("x", 2),)),
        inputs=(Entry(("x",)), Entry(), Entry(donated=True)),
        result_specs=(("x",), None, None),
    )


def _fwd(x: Type) -> Block:
    b = Builder()
    a = b.param(x)
    return b.block(b.op("sin", a), b.op("cos", a))


def _bwd(x: Type) -> Block:
    b = Builder()
    r, ct = b.param(x), b.param(x)
    return b.block(b.op("mul", r, ct))


def _jvp(x: Type) -> Block:
    b = Builder()
    a, tangent = b.param(x), b.param(x)
    return b.block(b.op("sin", a), b.op("mul", b.op("cos", a), tangent))


def _named(x: Type) -> Block:
    b = Builder()
    a = b.param(x)
    return b.block(b.op("tanh", b.name(b.op("sin", b.name(a, "h")), "g")))


def _body(x: Type) -> Block:
    b = Builder()
    const, carry, slice_ = b.param(x), b.param(x), b.param(x)
    new = b.op("add", b.op("mul", carry, const), slice_)
    return b.block(new, b.op("tanh", new))


def _test(x: Type) -> Block:
    b = Builder()
    limit, _, counter = b.param(t("i32[]")), b.param(x), b.param(t("i32[]"))
    return b.block(b.op("lt", counter, limit))


def _turn(x: Type) -> Block:
    b = Builder()
    const, a, counter = b.param(x), b.param(x), b.param(t("i32[]"))
    return b.block(b.op("add", a, const), b.op("add", counter, lit(1, "int32")))
