"""The text as a whole: what it looks like, that nothing in a program can break out of it, and what `lower` asks."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import strategies
from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.codec import decode
from reducer.ir.equations import (
    Block,
    Call,
    Checkpoint,
    Entry,
    Enum,
    Grad,
    Lit,
    Mesh,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Var,
)
from reducer.ir.policies import Both, OffloadDots, OffloadNames, Plain, SaveAllBut, SaveNames, SaveNamesBut
from reducer.ir.types import Type, parse_type
from reducer.lowering.emit import emit
from reducer.lowering.load import load

SEED = Path(__file__).parents[1] / "seed"

HEAD = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
{more}from jax.sharding import SingleDeviceSharding

policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["h"],
    offload_src="device",
    offload_dst="pinned_host",
)


def loss(x, w):
"""
FLAT = """\
    def layer(c, w):
        return jnp.tanh(checkpoint_name(c, "h") @ w), None

    c, _ = lax.scan(jax.checkpoint(layer, policy=policy, prevent_cse=False), x, w)
    return c.sum()
"""
NESTED = """\
    def block(c, w):
        def layer(c, w):
            return jnp.tanh(checkpoint_name(c, "h") @ w), None

        y, _ = lax.scan(jax.checkpoint(layer, policy=policy, prevent_cse=False), c, w)
        return y, None

    c, _ = lax.scan(block, x, w)
    return c.sum()
"""
TRIP_COUNT_ONE = """\
    def block(c, w):
        def layer(c, w):
            return jnp.tanh(checkpoint_name(c, "h") @ w), None

        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            y, _ = lax.scan(jax.checkpoint(layer, policy=policy, prevent_cse=False), c, w)
        return y, None

    c, _ = lax.scan(block, x, w)
    return c.sum()
"""
TAIL = '''\


fn = jax.value_and_grad(loss, argnums=1)


def lower(devices):
    """Lower `fn` for these devices; nothing is computed."""
    device = SingleDeviceSharding(devices[0])
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=device)
    w = jax.ShapeDtypeStruct(SHAPE, jnp.float32, sharding=device)
    return jax.jit(fn).lower(x, w)
'''
METADATA = "from jax.experimental.xla_metadata import set_xla_metadata\n"


@pytest.mark.parametrize(
    ("name", "body", "shape", "more"),
    [
        ("flat", FLAT, "(12, 128, 128)", ""),
        ("nested", NESTED, "(4, 3, 128, 128)", ""),
        ("trip_count_one", TRIP_COUNT_ONE, "(12, 1, 128, 128)", METADATA),
        ("trip_count_one_no_barrier", NESTED, "(12, 1, 128, 128)", ""),
    ],
)
def test_seed_programs_read_as_written_by_hand(name: str, body: str, shape: str, more: str) -> None:
    program = decode((SEED / f"{name}.json").read_bytes())
    assert emit(program) == HEAD.format(more=more) + body + TAIL.replace("SHAPE", shape)


def test_emitting_needs_no_jax() -> None:
    code = (
        "import sys, reducer.lowering.emit, reducer.lowering.load, reducer.lowering.script\n"
        f"from reducer.ir.codec import decode\n"
        f"program = decode(open({str(SEED / 'flat.json')!r}, 'rb').read())\n"
        "reducer.lowering.emit.emit(program, typed=True)\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib', 'numpy')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- nothing breaks out -------------------------------------------------------------------------------------------

EVIL = (
    '"); raise SystemExit("injected") #',
    "'); raise SystemExit('injected') #",
    '\n    raise SystemExit("injected")\n',
    "\\'); raise SystemExit(1) #",
    '"""',
    "\\",
    "{x}",
    "\u2028raise SystemExit(1)",
    "\x00\ud800",
    "x\r\ny",
)


def everything(text: str) -> Program:
    """A program with a string of the user's in every place that takes one."""
    f = Type("float32", (4,))

    def leaf(*eqns: Any) -> Block:
        return Block((Var(0, f),), eqns, (eqns[-1].outs[0].id,))

    policies = (
        OffloadNames((text,), (text + "2",), src=text, dst=text),
        Both(SaveNames((text,)), OffloadDots(text, text)),
        SaveAllBut((text,)),
        SaveNamesBut((text,)),
    )
    eqns: list[Any] = [Name(outs=(Var(1, f),), arg=0, name=text, metadata=((text, text),))]
    for i, policy in enumerate(policies):
        inner = leaf(Name(outs=(Var(1, f),), arg=0, name=text))
        eqns.append(Checkpoint(outs=(Var(2 + i, f),), args=(1 + i,), body=inner, policy=policy))
    n = 1 + len(policies)
    psum = Op(outs=(Var(1, f),), primitive="psum", args=(0,), attributes=(("axes", (text,)),))
    inner_block = leaf(psum)
    eqns += [
        Call(outs=(Var(n + 1, f),), args=(n,), body=leaf(Name(outs=(Var(1, f),), arg=0, name="k")), name=text),
        ShardingConstraint(outs=(Var(n + 2, f),), arg=n + 1, spec=((text, text),)),
        ShardMap(outs=(Var(n + 3, f),), args=(n + 2,), body=inner_block, in_specs=((text,),), out_specs=((),),
                 manual=(text,)),
        Scan(outs=(Var(n + 4, f),), length=1, carry=(n + 3,), body=leaf(Name(outs=(Var(1, f),), arg=0, name="k")),
             metadata=((text, text),)),
    ]  # fmt: skip
    return Program(
        leaf(*eqns),
        mesh=Mesh(((text, 1),)),
        inputs=(Entry((text,)),),
        result_specs=((text,),),
        meta=((text, text),),
    )


def skeleton(text: str) -> str:
    """The syntax tree without the contents of strings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "s"
    return ast.dump(tree)


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_strings_stay_strings(text: str, typed: bool) -> None:
    hostile = emit(everything(text), typed=typed)
    assert skeleton(hostile) == skeleton(emit(everything("not an identifier"), typed=typed))
    strings = {n.value for n in ast.walk(ast.parse(hostile)) if isinstance(n, ast.Constant)}
    assert text in strings


@pytest.mark.parametrize(
    "name",
    [
        "jax",
        "lax",
        "jnp",
        "np",
        "policy",
        "policy_1",
        "check",
        "loss",
        "device",
        "is",
        "x",
        "c",
        "layer",
        "_",
        "__class__",
    ],
)
def test_names_of_values_hide_nothing_the_text_needs(name: str) -> None:
    import jax
    import numpy as np

    b, inner = Builder(), Builder()
    h = inner.name(inner.op("tanh", inner.param(Type("float32", (4,)))), name)
    body = inner.block(inner.op("mul", h, inner.op("sin", h)))
    x = b.name(b.param(Type("float32", (4,))), name)
    (y,) = b.checkpoint(body, x, policy=SaveNames((name,)))
    (z,) = b.checkpoint(body, b.op("mul", y, y), policy=SaveNames(("other",)))
    (z,) = b.call(body, z, name=name)
    z = b.op("mul", b.name(z, name), x)
    program = Program(b.block(z), gradient=Grad((0,)))
    for typed in (True, False):
        value, _ = load(program, typed=typed).fn(np.ones(4, np.float32))
        assert np.isfinite(value)
    assert jax.config.jax_enable_x64 is False


def test_a_value_called_complex_does_not_hide_the_number_type() -> None:
    import numpy as np

    b = Builder()
    x = b.name(b.param(Type("complex64", (3,))), "complex")
    scaled = b.op("mul", x, Lit("complex64", "(1+2j)"))
    fn = load(Program(b.block(b.op("add", scaled, x)))).fn
    assert np.array_equal(fn(np.ones(3, np.complex64)), np.full(3, 2 + 2j, np.complex64))


@pytest.mark.parametrize(
    "bad",
    [
        Plain("everything_saveable and __import__('os')"),  # type: ignore[arg-type]
        "text",
    ],
)
def test_an_unknown_policy_is_refused(bad: Any) -> None:
    f = Type("float32", (4,))
    inner = Builder()
    body = inner.block(inner.param(f))
    eqn = Checkpoint(outs=(Var(1, f),), args=(0,), body=body, policy=bad)
    with pytest.raises(ProgramError, match="policy"):
        emit(Program(Block((Var(0, f),), (eqn,), (1,))))


def test_an_unknown_enum_is_refused() -> None:
    f = Type("float32", (4, 4))
    b = Builder()
    x = b.param(f)
    dims = (((1,), (0,)), ((), ()))
    y = b.op("dot_general", x, x, dimension_numbers=dims, precision=Enum("Precision.HIGH if 1 else 0"))
    with pytest.raises(ProgramError, match="unknown enum"):
        emit(Program(b.block(y)))


# -- what is compiled ---------------------------------------------------------------------------------------------


def test_the_objective_sums_inexact_results_on_the_device_in_f32() -> None:
    import jax
    import numpy as np

    b = Builder()
    x = b.param(Type("bfloat16", (3,)))
    s = b.param(Type("float32"))
    i = b.param(Type("int32", (2,)))
    block = b.block(x, s, i, b.op("mul", s, lit(2.0)), lit(4.0))
    module = load(Program(block, gradient=Grad((0, 1))))
    inputs = (np.ones(3, jax.numpy.bfloat16), np.float32(5), np.ones(2, np.int32))
    value, (dx, ds) = module.fn(*inputs)
    assert (value.dtype, float(value)) == ("float32", 3 + 5 + 10 + 4)
    assert (dx.dtype, ds.dtype) == ("bfloat16", "float32")
    assert float(ds) == 3
    assert "astype(jnp.float32).sum()" in module.text


def test_a_gradient_without_value_or_with_one_argument_is_written_plainly() -> None:
    b = Builder()
    block = b.block(b.op("sin", b.param(Type("float32"))))
    assert "fn = jax.grad(loss, argnums=0)" in emit(Program(block, gradient=Grad((0,), with_value=False)))
    assert "return jnp.sin(x)" in emit(Program(block, gradient=Grad((0,))))
    with pytest.raises(ProgramError, match="argnums"):
        emit(Program(block, gradient=Grad((3,))))


def lowered(program: Program) -> str:
    import jax

    return load(program).lower(jax.devices()).as_text()


def test_host_inputs_and_results_are_placed_on_the_host() -> None:
    b = Builder()
    x, h = b.param(parse_type("f32[8]")), b.param(parse_type("f32[8]<host>"))
    y = b.op("mul", x, b.transfer(h, "device"))
    block = b.block(y, b.transfer(y, "host"))
    text = lowered(Program(block, inputs=(Entry(donated=True), Entry())))
    main = next(line for line in text.splitlines() if "@main" in line)
    arguments, results = main.split("->")
    assert arguments.count('mhlo.memory_kind = "pinned_host"') == 1
    assert results.count('mhlo.memory_kind = "pinned_host"') == 1
    assert "tf.aliasing_output" in arguments
    gradient = lowered(Program(block, gradient=Grad((0, 1))))
    results = next(line for line in gradient.splitlines() if "@main" in line).split("->")[1]
    assert results.count('mhlo.memory_kind = "pinned_host"') == 1


def test_a_differentiated_move_to_the_host_says_where_it_comes_from() -> None:
    """Without that JAX cannot transpose it; where nothing is differentiated, or no number, the text stays short."""
    b = Builder()
    x, n = b.param(parse_type("f32[8]")), b.param(parse_type("i32[8]"))
    h, m = b.transfer(b.op("sin", x), "host"), b.transfer(n, "host")
    block = b.block(b.op("sin", b.transfer(h, "device")), m)
    gradient = Program(block, gradient=Grad((0,)))
    text = emit(gradient)
    assert "jax.device_put(y, jax.memory.Space.Host, src=jax.memory.Space.Device)" in text
    assert text.count("src=") == 1
    assert "src=" not in emit(Program(block))
    assert "stablehlo.cosine" in lowered(gradient)


@pytest.mark.parametrize("key", ["key<fry>", "key<rbg>", "key<urbg>"])
def test_keys_are_inputs(key: str) -> None:
    b = Builder()
    bits = b.op("random_bits", b.param(Type(key)), to=Type("uint32", (4,)))
    assert "tensor<4xui32>" in lowered(Program(b.block(bits)))


def test_wide_types_stay_wide() -> None:
    import jax

    for dtype in ("float64", "int64", "uint64"):
        b = Builder()
        y = b.op("add", b.param(Type(dtype, (2,))), lit(1 if dtype != "float64" else 1.0, dtype))
        assert f"tensor<2x{dtype[:1].replace('f', 'f') if dtype[0] != 'u' else 'ui'}64>" in lowered(Program(b.block(y)))
    assert jax.config.jax_enable_x64 is False


def test_entries_must_fit() -> None:
    b = Builder()
    block = b.block(b.op("sin", b.param(Type("float32"))))
    with pytest.raises(ProgramError, match="2 entries for 1 inputs"):
        emit(Program(block, inputs=(Entry(), Entry())))
    with pytest.raises(ProgramError, match="2 result specs for 1 results"):
        emit(Program(block, result_specs=(None, None)))


def wide_program(n: int) -> Program:
    b, inner = Builder(), Builder()
    own = [inner.param(Type("float32")) for _ in range(n)]
    body = inner.block(*[inner.op("sin", p) for p in own])
    params = [b.param(Type("float32")) for _ in range(n)]
    outs = b.scan(body, length=2, carry=params)
    outs = b.checkpoint(body, *outs, policy=OffloadNames(tuple(f"name_{i} (, + \\'" for i in range(n))))
    return Program(b.block(*outs), gradient=Grad(tuple(range(n))))


def test_long_lines_are_broken_and_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    program = wide_program(40)
    folded = emit(program)
    assert max(map(len, folded.splitlines())) <= 100
    monkeypatch.setattr("reducer.lowering.emit.fold", lambda line: [line])
    assert ast.dump(ast.parse(folded)) == ast.dump(ast.parse(emit(program)))
    assert lowered(program)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(strategies.programs())
def test_what_a_user_gets_is_what_was_compiled(program: Program) -> None:
    """Generated programs trace with the types they record, and checked and plain text lower to one module."""
    if program.mesh is not None:  # there is one CPU; this much needs no devices
        compile(emit(program, typed=True), "text", "exec")
        return
    import jax

    typed, plain = (load(program, typed=typed).lower(jax.devices()) for typed in (True, False))
    assert typed.as_text() == plain.as_text()
