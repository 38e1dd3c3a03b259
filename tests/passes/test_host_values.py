"""Pass `host-values`: keep one value in host memory and what computes it."""

from __future__ import annotations

from collections.abc import Callable

from reducer.ir.build import Builder, lit
from reducer.ir.canonical import canonical
from reducer.ir.equations import Grad, Program
from reducer.ir.text import to_text
from reducer.ir.types import parse_type
from reducer.ir.walk import equations


def program() -> Program:
    """A loop that writes to a buffer in host memory, reads it, and returns only what it has read."""
    body = Builder()
    buffer, i, c = (body.param(parse_type(t)) for t in ("f32[3,4]<host>", "i32[]", "f32[4]"))
    row = body.op("reshape", body.op("exp", c), to=parse_type("f32[1,4]"))
    written = body.op(
        "dynamic_update_slice",
        buffer,
        body.transfer(row, "host"),
        i,
        lit(0, "int32"),
        to=parse_type("f32[3,4]<host>"),
    )
    read = body.op("dynamic_slice", written, i, lit(0, "int32"), to=parse_type("f32[1,4]<host>"), slice_sizes=(1, 4))
    back = body.op("reshape", body.transfer(read, "device"), to=parse_type("f32[4]"))
    b = Builder()
    x, buffer = b.param(parse_type("f32[4]")), b.param(parse_type("f32[3,4]<host>"))
    block = body.block(written, body.op("add", i, lit(1, "int32")), back)
    outs = b.scan(block, length=3, carry=[buffer, lit(0, "int32"), x])
    return Program(b.block(outs[2]), Grad((0,)))


def writes(p: Program) -> bool:
    return any(getattr(eqn, "primitive", "") == "dynamic_update_slice" for _, _, eqn in equations(p))


def test_the_smallest_value_that_will_do_is_left(run: Callable[..., str]) -> None:
    assert (
        run("host-values", program(), writes)
        == """\
{ lambda ; a:f32[4] b:f32[3,4]<host> c:i32[]. let
    d:f32[4] = exp a
    e:f32[1,4] = reshape d
    f:f32[1,4]<host> = device_put[memory=host] e
    g:f32[3,4]<host> = dynamic_update_slice b f c 0:i32[]
  in (g,) }
"""
    )


def test_no_value_is_kept_alone_where_the_gradient_matters(run: Callable[..., str]) -> None:
    def holds(p: Program) -> bool:
        return p.gradient is not None

    assert run("host-values", program(), holds) == to_text(canonical(program())) + "\n"
