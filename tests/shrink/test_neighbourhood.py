"""The documented neighbourhood: what it holds, and what it leaves out."""

from __future__ import annotations

import re

from reducer import neighbourhood
from reducer.ir.build import Builder, lit
from reducer.ir.canonical import canonical
from reducer.ir.check import check
from reducer.ir.equations import BARRIER, Entry, Enum, Grad, Mesh, Program
from reducer.ir.order import order_key
from reducer.ir.policies import Both, OffloadNames, SaveNames
from reducer.ir.text import to_text
from reducer.ir.types import parse_type
from reducer.neighbourhood import neighbours, steps

SCALAR = parse_type("f32[]")


def trip_count_one() -> Program:
    layer = Builder()
    c = layer.name(layer.param(SCALAR), "h")
    body = Builder()
    outs = body.checkpoint(layer.block(layer.op("sin", c)), body.param(SCALAR), policy=OffloadNames(("h",)))
    b = Builder()
    x = b.param(SCALAR)
    return canonical(
        Program(b.block(*b.scan(body.block(*outs), length=1, carry=[x], metadata=BARRIER)), gradient=Grad((0,)))
    )


def everything() -> Program:
    """A program that has at least one step of every kind."""
    layer = Builder()
    i, c, x = layer.param(parse_type("i32[]")), layer.param(parse_type("bf16[4,1]")), layer.param(SCALAR)
    one = Builder()
    one_block = one.block(one.op("tanh", one.param(parse_type("bf16[4,1]"))))
    two = Builder()
    two_block = two.block(two.op("neg", two.param(parse_type("bf16[4,1]"))))
    (y,) = layer.cond(i, [one_block, two_block], layer.name(layer.name(c, "a"), "b"))
    y = layer.op("mul", y, layer.broadcast(layer.convert(x, "bfloat16"), (4, 1)))
    policy = Both(SaveNames(("b",)), OffloadNames(("a",)))
    body = Builder()
    j, k = body.param(parse_type("i32[]")), body.param(SCALAR)
    c, x = body.param(parse_type("bf16[4,1]")), body.op("add", body.param(SCALAR), k)
    outs = body.checkpoint(layer.block(y), j, c, x, policy=policy, prevent_cse=False)
    b = Builder()
    c, xs = b.param(parse_type("bf16[4,1]")), b.param(parse_type("f32[3]"))
    w = b.param(parse_type("f32[4,4]"))
    b.param(SCALAR)
    numbers = (((1,), (0,)), ((), ()))
    ww = b.op("dot_general", w, w, dimension_numbers=numbers, precision=Enum("Precision.HIGHEST"))
    (y,) = b.scan(body.block(*outs), length=3, consts=[lit(1, "int32"), lit(2.0)], carry=[c], xs=[xs], metadata=BARRIER)
    return canonical(
        Program(
            b.block(y, b.op("add", ww, lit(2.0)), b.transfer(ww, "host")),
            gradient=Grad((0, 1)),
            mesh=Mesh((("x", 2),)),
            inputs=(Entry(), Entry(), Entry((None, "x"), donated=True), Entry()),
        )
    )


def test_the_neighbours_of_a_small_minimum() -> None:
    found = [(n.kind, n.description) for n in neighbours(trip_count_one())]
    assert found == [
        ("delete", "eqns[0]"),
        ("unwrap", "eqns[0].body"),
        ("delete", "eqns[0].body.eqns[0]"),
        ("unwrap", "eqns[0].body.eqns[0].body"),
        ("hoist", "eqns[0].body.eqns[0].body.eqns[0] before it"),
        ("hoist", "eqns[0].body.eqns[0].body.eqns[1] after it"),
        ("delete", "eqns[0].body.eqns[0].body.eqns[0]"),
        ("delete", "eqns[0].body.eqns[0].body.eqns[1]"),
        ("replace", "%1 of block by zeros"),
        ("replace", "%1 of eqns[0].body by zeros"),
        ("replace", "%0 of eqns[0].body.eqns[0].body by zeros"),
        ("replace", "%1 of eqns[0].body.eqns[0].body by zeros"),
        ("replace", "%2 of eqns[0].body.eqns[0].body by zeros"),
        ("replace", "%2 of eqns[0].body.eqns[0].body by %0"),
        ("input", "input 0"),
        ("gradient", "none"),
        ("gradient", "without the value"),
        ("policy", "eqns[0].body.eqns[0]: None"),
        ("policy", "eqns[0].body.eqns[0]: nothing_saveable"),
        ("policy", "eqns[0].body.eqns[0]: everything_saveable"),
        ("policy", "eqns[0].body.eqns[0]: save_only_these_names(h)"),
        (
            "policy-name",
            "eqns[0].body.eqns[0]: save_and_offload_only_these_names(offloaded=() device->pinned_host)",
        ),
        ("metadata", "eqns[0]: skip-simplify-while-loops_trip-count-one"),
        ("operation", "eqns[0]"),
        ("operation", "eqns[0].body.eqns[0]"),
    ]


def test_neighbours_are_smaller_well_formed_distinct_and_canonical() -> None:
    program = everything()
    check(program)
    found = list(neighbours(program))
    assert len({to_text(n.program) for n in found}) == len(found)
    for n in found:
        check(n.program)
        assert order_key(n.program) < order_key(program)
        assert canonical(n.program) == n.program


def test_every_documented_kind_occurs_and_no_other() -> None:
    table = re.findall(r"^(\w[\w, -]*?)  +\S", (neighbourhood.__doc__ or "").split("=\n", 1)[1], flags=re.MULTILINE)
    documented = {kind.strip() for row in table for kind in row.split(",")}
    assert {kind for kind, _, _ in steps(everything())} == documented


def test_a_loop_keeps_its_counter() -> None:
    cond = Builder()
    k = cond.param(parse_type("i32[]"))
    cond.param(SCALAR)
    body = Builder()
    i, c = body.param(parse_type("i32[]")), body.param(SCALAR)
    block = body.block(body.op("add", i, lit(1, "int32")), body.op("sin", c))
    b = Builder()
    x = b.param(SCALAR)
    _, y = b.while_loop(cond.block(cond.op("lt", k, lit(3, "int32"))), block, [lit(0, "int32"), x])
    program = canonical(Program(b.block(y)))
    assert all("while" not in to_text(n.program) or " = add " in to_text(n.program) for n in neighbours(program))


def test_sizes_say_where_they_are() -> None:
    found = [n.description for n in neighbours(everything()) if n.kind in ("length", "dimension", "axis")]
    assert "the length of eqns[0] to 1" in found
    assert "axis 0 of %0 of block to 2" in found


def test_one_value_in_host_memory_alone() -> None:
    body = Builder()
    x = body.op("exp", body.param(SCALAR))
    back = body.transfer(body.transfer(x, "host"), "device")
    b = Builder()
    (y,) = b.scan(body.block(body.op("sin", back)), length=3, carry=[b.param(SCALAR)])
    program = canonical(Program(b.block(y), Grad((0,))))
    (alone,) = (n for n in neighbours(program) if n.kind == "alone")
    assert alone.description == "%2 of eqns[0].body"
    assert (
        to_text(alone.program)
        == """\
{ lambda ; a:f32[]. let
    b:f32[] = exp a
    c:f32[]<host> = device_put[memory=host] b
  in (c,) }"""
    )
