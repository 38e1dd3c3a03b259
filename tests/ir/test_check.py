"""One test per invariant: the place and the words of the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reducer.errors import ProgramError
from reducer.ir.build import Builder, lit
from reducer.ir.check import check
from reducer.ir.check_equations import LIMITS
from reducer.ir.equations import (
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomJvp,
    CustomVjp,
    Entry,
    Enum,
    Equation,
    Fill,
    Grad,
    Lit,
    Mesh,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Var,
    While,
)
from reducer.ir.policies import Both, OffloadDots, OffloadNames, SaveNames
from reducer.ir.walk import equations
from tests.ir.samples import SEEDS, fill, name, op, seed, t, transfer, unary, zoo

X = t("f32[4]")
replace = msgspec.structs.replace


def alone(eqn: Equation, *params: str, results: tuple[Any, ...] = ()) -> Program:
    """A program of one equation whose inputs are ``%0``, ``%1``, ... of these types."""
    return Program(Block(tuple(Var(i, t(p)) for i, p in enumerate(params)), (eqn,), results))


def zoo_with(kind: type, **fields: Any) -> Program:
    """The zoo with fields of its first equation of a kind changed."""
    program = zoo()
    eqns = list(program.block.eqns)
    i = next(i for i, eqn in enumerate(eqns) if isinstance(eqn, kind))
    eqns[i] = replace(eqns[i], **fields)
    return replace(program, block=replace(program.block, eqns=tuple(eqns)))


def no_results(block: Block) -> Block:
    return replace(block, results=())


def of(kind: type) -> Any:
    return next(eqn for _, _, eqn in equations(zoo()) if isinstance(eqn, kind))


def where_of(kind: type) -> str:
    return f"block.eqns[{next(i for i, eqn in enumerate(zoo().block.eqns) if isinstance(eqn, kind))}]"


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_are_well_formed(name: str) -> None:
    check(seed(name))


def test_every_kind_of_equation_can_be_well_formed() -> None:
    check(zoo())


BLOCKS = {
    "parameter bound twice": (
        Program(Block((Var(0, X), Var(0, X)), (), ())),
        "block.params",
        "%0 is bound twice",
    ),
    "result bound twice": (
        alone(replace(op("f32[4]", "sin", 0), outs=(Var(0, X),)), "f32[4]"),
        "block.eqns[0]",
        "%0 is bound twice",
    ),
    "negative number": (Program(Block((Var(-1, X),), (), ())), "block.params", "%-1 is not a number of a variable"),
    "used before bound": (
        alone(op("f32[4]", "sin", 9), "f32[4]"),
        "block.eqns[0]",
        "%9 is not bound here (a block sees its parameters and earlier results only)",
    ),
    "result not bound": (
        Program(Block((), (), (3,))),
        "block.results",
        "%3 is not bound here",
    ),
    "outer variable in a body": (
        alone(Call(outs=(Var(9, X),), args=(), body=Block((), (), (0,))), "f32[4]"),
        "eqns[0].body.results",
        "%0 is not bound here",
    ),
    "too many elements": (
        Program(Block((Var(0, t("f32[1048577,1048576]")),), (), ())),
        "block.params",
        "f32[1048577,1048576] has too many elements",
    ),
    "too many dimensions": (
        Program(Block((Var(0, t(f"f32[{','.join('1' * 33)}]")),), (), ())),
        "block.params",
        f"f32[{','.join('1' * 33)}] has too many dimensions",
    ),
    "scalar of another dtype": (
        Program(Block((), (), (Lit("float32", "__import__('os')"),))),
        "block.results",
        "\"__import__('os')\" is not a scalar of float32",
    ),
    "scalar out of range": (
        Program(Block((), (), (Lit("int8", "128"),))),
        "block.results",
        "128 is out of the range of int8",
    ),
    "scalar of an unknown dtype": (
        Program(Block((), (), (Lit("float31", "0.0"),))),
        "block.results",
        "'0.0' is not a scalar of float31",
    ),
}

OPERATIONS = {
    "recorded type": (
        alone(op("f32[5]", "sin", 0), "f32[4]"),
        "block.eqns[0]",
        "sin gives f32[4], but f32[5] is recorded",
    ),
    "arity": (alone(op("f32[4]", "add", 0), "f32[4]"), "block.eqns[0]", "takes 2 arguments, got 1"),
    "mixed memory spaces": (
        alone(op("f32[4]", "add", 0, 1), "f32[4]", "f32[4]<host>"),
        "block.eqns[0]",
        "host and device values are mixed in one operation (transfer one of them first)",
    ),
    "mixed memory spaces of an unlisted primitive": (
        alone(op("f32[4]", "fused_thing", 0, 1), "f32[4]", "f32[4]<host>"),
        "block.eqns[0]",
        "host and device values are mixed in one operation (transfer one of them first)",
    ),
    "mixed memory spaces of results": (
        alone(replace(op("f32[4]", "thing"), outs=(Var(8, X), Var(9, X.in_memory("host"))))),
        "block.eqns[0]",
        "results lie in different memory spaces",
    ),
    "primitive that is no name": (
        alone(op("f32[4]", "tanh(x); import os", 0), "f32[4]"),
        "block.eqns[0]",
        "not a primitive's name: 'tanh(x); import os'",
    ),
    "attribute that is no name": (
        alone(replace(op("f32[4]", "sin", 0), attributes=(("a b", 1),)), "f32[4]"),
        "block.eqns[0]",
        "not an attribute's name: 'a b'",
    ),
    "attribute twice": (
        alone(replace(op("f32[4]", "sin", 0), attributes=(("a", 1), ("a", 2))), "f32[4]"),
        "block.eqns[0]",
        "an attribute is given twice",
    ),
    "attribute of another kind": (
        alone(replace(op("f32[4]", "sin", 0), attributes=(("a", 1.5),)), "f32[4]"),
        "block.eqns[0]",
        "not an attribute value: 1.5",
    ),
    "enum that is no name": (
        alone(replace(op("f32[4]", "sin", 0), attributes=(("a", Enum("os.system('')")),)), "f32[4]"),
        "block.eqns[0]",
        "not an enum member: \"os.system('')\"",
    ),
    "attributes of the wrong form": (
        alone(replace(op("f32[4]", "dot_general", 0, 0), attributes=(("dimension_numbers", 3),)), "f32[4]"),
        "block.eqns[0]",
        "attributes of dot_general have the wrong form",
    ),
    "name changes the type": (
        alone(name("f32[5]", 0), "f32[4]"),
        "block.eqns[0]",
        "results of name are f32[5], not f32[4]",
    ),
    "transfer changes more than memory": (
        alone(transfer("f32[4]", 0), "f32[4]"),
        "block.eqns[0]",
        "results of a transfer are f32[4], not f32[4]<host>",
    ),
    "transfer to nowhere": (
        alone(replace(transfer("f32[4]", 0), memory="disk"), "f32[4]"),
        "block.eqns[0]",
        "no memory space: 'disk'",
    ),
    "fill on the host": (alone(fill("f32[4]<host>", "0.0")), "block.eqns[0]", "a fill makes one array on the device"),
    "fill of another dtype": (alone(fill("i32[4]", "0.5")), "block.eqns[0]", "'0.5' is not a scalar of int32"),
    "fill of keys": (alone(fill("key<fry>[4]", "0")), "block.eqns[0]", "'0' is not a scalar of key<fry>"),
    "name that is no string": (
        alone(replace(name("f32[4]", 0), name=7), "f32[4]"),
        "block.eqns[0]",
        "not a name: 7",
    ),
    "metadata that is no string": (
        alone(replace(name("f32[4]", 0), metadata=(("a", None),)), "f32[4]"),
        "block.eqns[0]",
        "not a name: None",
    ),
    "long name": (
        alone(replace(name("f32[4]", 0), name="x" * (LIMITS["text"] + 1)), "f32[4]"),
        "block.eqns[0]",
        "not a name: 'xxx",
    ),
}

sin, cos = unary("sin", X), unary("cos", X)
scan, while_, cond, vjp, jvp = of(Scan), of(While), of(Cond), of(CustomVjp), of(CustomJvp)
REGIONS = {
    "negative length": (zoo_with(Scan, length=-1), Scan, "a scan of length -1"),
    "no turn of an unrolled scan": (zoo_with(Scan, unroll=0), Scan, "a scan unrolled by 0"),
    "unrolled too far": (zoo_with(Scan, unroll=4097), Scan, "a scan unrolled by 4097"),
    "x of another length": (
        zoo_with(Scan, length=4),
        Scan,
        "x f32[3,4] has no leading dimension of size 4, the length of the scan",
    ),
    "scalar x": (
        zoo_with(Scan, xs=(lit(1.0),)),
        Scan,
        "x f32[] has no leading dimension of size 3, the length of the scan",
    ),
    "scan body's parameters": (
        zoo_with(Scan, body=sin),
        Scan,
        "parameters of the body are f32[4], not f32[4] f32[4] f32[4]",
    ),
    "scan body's carry": (
        zoo_with(Scan, body=replace(scan.body, results=(lit(1.0), scan.body.results[1]))),
        Scan,
        "carries the body returns are f32[], not f32[4]",
    ),
    "scan's results": (
        zoo_with(Scan, outs=scan.outs[:1]),
        Scan,
        "results of scan are f32[4], not f32[4] f32[3,4]",
    ),
    "while condition's result": (
        zoo_with(While, cond=replace(while_.cond, results=(lit(1, "int32"),))),
        While,
        "results of cond are i32[], not bool[]",
    ),
    "while condition's parameters": (
        zoo_with(While, cond_consts=()),
        While,
        "parameters of cond are i32[] f32[4] i32[], not f32[4] i32[]",
    ),
    "while body's parameters": (
        zoo_with(While, body_consts=()),
        While,
        "parameters of the body are f32[4] f32[4] i32[], not f32[4] i32[]",
    ),
    "while body's carry": (
        zoo_with(While, body=replace(while_.body, results=while_.body.results[::-1])),
        While,
        "carries the body returns are i32[] f32[4], not f32[4] i32[]",
    ),
    "while's results": (
        zoo_with(While, outs=while_.outs[:1]),
        While,
        "results of while are f32[4], not f32[4] i32[]",
    ),
    "index of a cond": (zoo_with(Cond, index=lit(1.0)), Cond, "index of cond are f32[], not i32[]"),
    "no branch": (zoo_with(Cond, branches=()), Cond, "a cond has at least one branch"),
    "branch's parameters": (
        zoo_with(Cond, branches=(sin, Block((), (), (lit(1.0),)))),
        Cond,
        "parameters of branches[1] are (), not f32[4]",
    ),
    "branch's results": (
        zoo_with(Cond, branches=(sin, no_results(sin))),
        Cond,
        "results of branches[1] are (), not f32[4]",
    ),
    "checkpoint's parameters": (
        zoo_with(Checkpoint, args=()),
        Checkpoint,
        "parameters of the body are f32[4], not ()",
    ),
    "checkpoint's results": (
        zoo_with(Checkpoint, body=no_results(sin)),
        Checkpoint,
        "results of the body are (), not f32[4]",
    ),
    "name offloaded and saved": (
        zoo_with(Checkpoint, policy=Both(SaveNames(()), OffloadNames(("h", "g"), saved=("g",)))),
        Checkpoint,
        "names are both offloaded and saved: g",
    ),
    "memory kind": (
        zoo_with(Checkpoint, policy=OffloadDots(dst="disk")),
        Checkpoint,
        "no memory kind: 'disk' (known: device, pinned_host, unpinned_host)",
    ),
    "call's results": (zoo_with(Call, body=no_results(sin)), Call, "results of the body are (), not f32[4]"),
    "custom_vjp's primal": (
        zoo_with(CustomVjp, primal=no_results(sin)),
        CustomVjp,
        "results of primal are (), not f32[4]",
    ),
    "custom_vjp's fwd": (
        zoo_with(CustomVjp, fwd=sin),
        CustomVjp,
        "fwd gives 1 values: 1 results and 1 residuals",
    ),
    "custom_vjp's bwd parameters": (
        zoo_with(CustomVjp, bwd=sin),
        CustomVjp,
        "parameters of bwd (residuals, then cotangents) are f32[4], not f32[4] f32[4]",
    ),
    "custom_vjp's bwd results": (
        zoo_with(CustomVjp, bwd=no_results(vjp.bwd)),
        CustomVjp,
        "results of bwd (one cotangent per inexact argument) are (), not f32[4]",
    ),
    "custom_jvp's parameters": (
        zoo_with(CustomJvp, jvp=sin),
        CustomJvp,
        "parameters of jvp (arguments, then tangents) are f32[4], not f32[4] f32[4]",
    ),
    "custom_jvp's results": (
        zoo_with(CustomJvp, jvp=replace(jvp.jvp, results=jvp.jvp.results[:1])),
        CustomJvp,
        "results of jvp (results, then tangents) are f32[4], not f32[4] f32[4]",
    ),
    "number of in_specs": (zoo_with(ShardMap, in_specs=()), ShardMap, "0 in_specs for 1 arguments"),
    "number of out_specs": (zoo_with(ShardMap, out_specs=()), ShardMap, "0 out_specs for 1 results"),
    "unknown axis": (zoo_with(ShardMap, in_specs=(("y",),)), ShardMap, "unknown mesh axis 'y' (here: x)"),
    "unknown manual axis": (zoo_with(ShardMap, manual=("y",)), ShardMap, "unknown mesh axis 'y' (here: x)"),
    "local parameters": (
        zoo_with(ShardMap, in_specs=((),)),
        ShardMap,
        "parameters of the body are f32[2], not f32[4]",
    ),
    "local results": (
        zoo_with(ShardMap, out_specs=((),)),
        ShardMap,
        "results of the body are f32[2], not f32[4]",
    ),
    "spec longer than the rank": (
        zoo_with(ShardingConstraint, spec=(None, "x")),
        ShardingConstraint,
        "a spec of 2 dimensions for f32[4]",
    ),
}

program = zoo()
ENTRIES = {
    "number of inputs": (replace(program, inputs=(Entry(),)), "inputs", "1 given for 3 values"),
    "number of result specs": (replace(program, result_specs=(None,)), "result_specs", "1 given for 3 values"),
    "spec that does not divide": (
        replace(program, inputs=(Entry(), Entry(("x",)), Entry())),
        "inputs[1]",
        "dimension 0 of f32[3,4] does not divide into 2 parts",
    ),
    "spec with an axis twice": (
        replace(program, inputs=(Entry(), Entry((None, ("x", "x"))), Entry())),
        "inputs[1]",
        "spec (None, ('x', 'x')) uses a mesh axis twice",
    ),
    "spec without a mesh": (
        Program(sin, inputs=(Entry(("x",)),)),
        "inputs[0]",
        "unknown mesh axis 'x' (here: none)",
    ),
    "result spec": (
        replace(program, result_specs=(None, None, ("x",))),
        "result_specs[2]",
        "a spec of 1 dimensions for f32[]",
    ),
    "mesh axis twice": (replace(program, mesh=Mesh((("x", 2), ("x", 2)))), "mesh", "a mesh axis is given twice"),
    "mesh axis of no device": (replace(program, mesh=Mesh((("x", 0),))), "mesh", "not an axis: 'x' of size 0"),
    "too many devices": (replace(program, mesh=Mesh((("x", 2**17),))), "mesh", "131072 devices are too many"),
    "no argnums": (replace(program, gradient=Grad(())), "gradient", "argnums () are not rising positions of inputs"),
    "falling argnums": (
        replace(program, gradient=Grad((1, 0))),
        "gradient",
        "argnums (1, 0) are not rising positions of inputs",
    ),
    "argnum out of range": (
        replace(program, gradient=Grad((0, 7))),
        "gradient",
        "argnum 7, but there are 3 inputs",
    ),
    "argnum of an integer": (
        replace(program, gradient=Grad((2,))),
        "gradient",
        "input 2 is i32[], which has no gradient",
    ),
    "nothing to sum up": (
        Program(Block((Var(0, X.in_memory("host")),), (), (0,)), gradient=Grad((0,))),
        "gradient",
        "no inexact result on the device to sum up",
    ),
}


@pytest.mark.parametrize(("program", "where", "message"), [*BLOCKS.values(), *OPERATIONS.values(), *ENTRIES.values()],
                         ids=[*BLOCKS, *OPERATIONS, *ENTRIES])  # fmt: skip
def test_refuses(program: Program, where: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(program)
    assert caught.value.where == where
    assert str(caught.value).startswith(f"{where}: {message}")


@pytest.mark.parametrize(("program", "kind", "message"), REGIONS.values(), ids=list(REGIONS))
def test_refuses_region(program: Program, kind: type, message: str) -> None:
    test_refuses(program, where_of(kind), message)


def test_error_in_a_body_names_the_equation_there() -> None:
    body = scan.body
    bad = replace(body.eqns[1], primitive="dot_general")
    program = zoo_with(Scan, body=replace(body, eqns=(body.eqns[0], bad, *body.eqns[2:])))
    with pytest.raises(ProgramError) as caught:
        check(program)
    assert caught.value.where == f"{where_of(Scan).removeprefix('block.')}.body.eqns[1]"


def test_error_shows_the_equation_between_its_neighbours() -> None:
    b = Builder()
    x = b.param(X)
    for _ in range(3):
        x = b.op("sin", x)
    block = b.block(b.scan(sin, length=1, carry=[b.op("cos", x)])[0])
    eqns = list(block.eqns)
    eqns[2] = Op(outs=(Var(3, t("f32[5]")),), primitive="sin", args=(2,))
    with pytest.raises(ProgramError) as caught:
        check(Program(replace(block, eqns=tuple(eqns))))
    assert str(caught.value) == (
        "block.eqns[2]: sin gives f32[4], but f32[5] is recorded\n"
        "    %1:f32[4] = sin %0\n"
        "    %2:f32[4] = sin %1\n"
        "  > %3:f32[5] = sin %2\n"
        "    %4:f32[4] = cos %3\n"
        "    %5:f32[4] = scan[length=1 num_carry=1 body={...}] %4"
    )


def nested(depth: int) -> Program:
    block = sin
    for _ in range(depth):
        b = Builder()
        block = b.block(*b.call(block, b.param(X)))
    return Program(block)


def test_nesting_is_bounded() -> None:
    check(nested(LIMITS["nesting"]))
    with pytest.raises(ProgramError, match="nested deeper than 64"):
        check(nested(LIMITS["nesting"] + 1))


def manual(body: Callable[[Builder, int], int], **fields: Any) -> Program:
    """A shard_map over both axes of a mesh, with this body on f32[2]."""
    inner = Builder()
    block = inner.block(body(inner, inner.param(t("f32[2]"))))
    outer = Builder()
    x = outer.param(t("f32[8]"))
    spec = (("x", "y"),)
    (v,) = outer.shard_map(block, x, in_specs=[spec], out_specs=[spec], to=[t("f32[8]")])
    program = Program(outer.block(v), mesh=Mesh((("x", 2), ("y", 2))))
    eqn = replace(program.block.eqns[0], **fields)
    return replace(program, block=replace(program.block, eqns=(eqn,)))


def test_manual_axes() -> None:
    check(manual(lambda b, x: b.op("sin", x)))
    with pytest.raises(ProgramError, match=r"unknown mesh axis 'y' \(here: x\)"):
        check(manual(lambda b, x: b.op("sin", x), manual=("x",)))
    with pytest.raises(ProgramError, match=r"eqns\[0\]\.body\.eqns\[0\]: unknown mesh axis 'x' \(here: none\)"):
        check(manual(lambda b, x: b.constrain(x, ("x",))))
    again = unary("sin", t("f32[1]"))
    with pytest.raises(ProgramError, match="mesh axis 'x' is manual already"):
        check(
            manual(
                lambda b, x: b._add(
                    ShardMap(
                        outs=b._bind((t("f32[2]"),)), args=(x,), body=again, in_specs=(("x",),), out_specs=(("x",),),
                        manual=("x",),
                    )
                )[0]
            )
        )  # fmt: skip


def test_shard_map_needs_a_mesh() -> None:
    with pytest.raises(ProgramError, match="shard_map needs a mesh"):
        check(replace(zoo(), mesh=None, inputs=(), result_specs=()))


def test_scalars_go_with_host_arrays() -> None:
    b = Builder()
    x = b.param(t("f32[4]<host>"))
    check(Program(b.block(b.op("mul", x, lit(2.0)))))


def test_constraints_may_be_uneven_but_shard_map_may_not() -> None:
    b = Builder()
    check(Program(b.block(b.constrain(b.param(t("f32[3]")), ("x",))), mesh=Mesh((("x", 2),))))


def test_unlisted_primitives_pass() -> None:
    check(alone(Op(outs=(Var(9, t("f32[2,2]")),), primitive="fft", args=(0,)), "f32[4]", results=(9,)))


def test_integer_arguments_of_custom_rules_have_no_cotangent() -> None:
    i = t("i32[]")

    def rule(n: int) -> CustomVjp:
        p = Builder()
        primal = p.block((p.param(X), p.param(i))[0])
        f = Builder()
        fwd = f.block((x := f.param(X)), x, f.param(i))
        b = Builder()
        _, index, ct = b.param(X), b.param(i), b.param(X)
        return CustomVjp(
            outs=(Var(9, X),), args=(0, 1), primal=primal, fwd=fwd, bwd=b.block(*(ct, index)[:n]), n_residuals=2
        )

    check(alone(rule(1), "f32[4]", "i32[]"))
    with pytest.raises(ProgramError, match="one cotangent per inexact argument"):
        check(alone(rule(2), "f32[4]", "i32[]"))


def test_fills_of_scalars_and_empty_shapes_pass() -> None:
    check(alone(Fill(outs=(Var(9, t("bool[]")),), value="True")))
    check(alone(Fill(outs=(Var(9, t("bf16[0,3]")),), value="-inf")))
