"""Programs as text, in the notation jaxprs are printed in.

    value_and_grad(argnums=(1,)) of
    { lambda ; a:f32[8,128] b:f32[12,128,128]. let
        c:f32[8,128] = scan[length=12 num_carry=1
          body={ lambda ; d:f32[8,128] e:f32[128,128]. let
              f:f32[8,128] = dot_general[dimension_numbers=(((1,), (0,)), ((), ()))] d e
            in (f,) }
        ] a b
      in (c,) }

Attributes that have their default are left out. Letters are unique across the whole program, as in a jaxpr. The text
is for people and tests; it is deterministic, and it is never read back (`codec` is the stored form).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import msgspec

from reducer.ir.equations import (
    Arg,
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
    Lit,
    Name,
    Op,
    Program,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Transfer,
    Var,
    While,
)
from reducer.ir.policies import (
    Both,
    OffloadDots,
    OffloadNames,
    Plain,
    Policy,
    SaveAllBut,
    SaveNames,
    SaveNamesBut,
)
from reducer.ir.types import DTYPES
from reducer.ir.walk import Path, args_of, children

_WORD: Final = re.compile(r"[A-Za-z0-9_.:<>-]+")
#: Attributes of a region stand on its first line up to this width (not counting what encloses it), else one a line.
_WIDTH: Final = 88
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"

#: What stands for a variable: its letter when a whole program is printed, its number in an error message.
_Naming = Callable[[int], str]


def to_text(program: Program) -> str:
    """The whole program: gradient, mesh and entry lines where they say something, then the block."""
    lines = []
    if program.gradient is not None:
        what = "value_and_grad" if program.gradient.with_value else "grad"
        lines.append(f"{what}(argnums={program.gradient.argnums}) of")
    if program.mesh is not None:
        lines.append("mesh " + " ".join(f"{_word(name)}={size}" for name, size in program.mesh.axes))
    lines += [f"input {i}: {entry_text(e)}" for i, e in enumerate(program.inputs) if e != Entry()]
    lines += [f"result {i}: {spec_text(s)}" for i, s in enumerate(program.result_specs) if s is not None]
    lines += _block(program.block, count())
    return "\n".join(lines)


def equation_text(eqn: Equation) -> str:
    """One equation on one line for error messages: variables by number (``%3``), nested blocks left out."""
    body = "".join(f" {field}={{...}}" for field, _ in children(eqn))
    return _line(eqn, lambda i: f"%{i}", body.strip())


def block_text(block: Block) -> str:
    """One block by itself, with letters from ``a``."""
    return "\n".join(_block(block, count()))


def letters(program: Program) -> dict[tuple[Path, int], str]:
    """What `to_text` calls each variable: (path of its block, number) -> letter."""
    found: dict[tuple[Path, int], str] = {}
    counter = count()

    def visit(path: Path, block: Block) -> None:
        found.update(((path, var.id), _letters(next(counter))) for var in block.params)
        for i, eqn in enumerate(block.eqns):
            found.update(((path, var.id), _letters(next(counter))) for var in eqn.outs)
            for field, child in children(eqn):
                visit((*path, (i, field)), child)

    visit((), program.block)
    return found


def policy_text(policy: Policy | None) -> str:
    """A policy by its name in `jax.checkpoint_policies`, with the names it mentions."""
    match policy:
        case None:
            return "None"
        case Plain(name=name):
            return name
        case SaveNames(names=names):
            return f"save_only_these_names({_words(names)})"
        case SaveAllBut(names=names):
            return f"save_anything_except_these_names({_words(names)})"
        case SaveNamesBut(names=names):
            return f"save_any_names_but_these({_words(names)})"
        case OffloadNames(offloaded=offloaded, saved=saved, src=src, dst=dst):
            kept = f" saved=({_words(saved)})" if saved else ""
            return f"save_and_offload_only_these_names(offloaded=({_words(offloaded)}){kept} {src}->{dst})"
        case OffloadDots(src=src, dst=dst):
            return f"offload_dot_with_no_batch_dims({src}->{dst})"
        case Both(first=first, second=second):
            return f"save_from_both_policies({policy_text(first)}, {policy_text(second)})"


def spec_text(spec: Spec) -> str:
    """``P(x, None, (y, z))``."""
    axes = (f"({_words(a)})" if isinstance(a, tuple) else "None" if a is None else _word(a) for a in spec)
    return f"P({', '.join(axes)})"


def entry_text(entry: Entry) -> str:
    """How an input enters, for the lines above the block."""
    words = [] if entry.spec is None else [spec_text(entry.spec)]
    return " ".join([*words, *(["donated"] if entry.donated else [])])


def _word(text: object) -> str:
    # A name from an untrusted file may hold anything; it must not break the layout, nor an error message.
    return text if isinstance(text, str) and _WORD.fullmatch(text) else repr(text)


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(map(_word, names))


def _letters(n: int) -> str:
    tail = _ALPHABET[n % 26]
    return tail if n < 26 else _letters(n // 26) + tail


def _arg(arg: Arg, name: _Naming) -> str:
    return (
        f"{arg.value}:{DTYPES[arg.dtype][0] if arg.dtype in DTYPES else arg.dtype}[]"
        if isinstance(arg, Lit)
        else name(arg)
    )


def _vars(variables: tuple[Var, ...], name: _Naming) -> str:
    return " ".join(f"{name(v.id)}:{v.type}" for v in variables)


def _value(value: Any) -> str:
    match value:
        case Enum(name=name):
            return name
        case msgspec.Struct():
            fields = (f"{f}={getattr(value, f)}" for f in value.__struct_fields__ if getattr(value, f) != ())
            return f"{type(value).__name__}({', '.join(fields)})"
        case str():
            return _word(value)
        case tuple():
            inner = ", ".join(map(_value, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            return repr(value)


def _head(eqn: Equation) -> tuple[str, list[str]]:
    """Name of an equation as jaxprs spell it, and its attributes that are not the default."""
    match eqn:
        case Op(primitive=primitive, attributes=attributes):
            return primitive, [f"{k}={_value(v)}" for k, v in attributes]
        case Fill(value=value):
            return f"full {value}", []
        case Scan(length=length, consts=consts, carry=carry, reverse=reverse, unroll=unroll):
            counts = {"num_consts": len(consts), "num_carry": len(carry)}
            extra = [f"{k}={v}" for k, v in counts.items() if v]
            flags = [*(["reverse=True"] if reverse else []), *([f"unroll={unroll}"] if unroll != 1 else [])]
            return "scan", [f"length={length}", *extra, *flags]
        case Checkpoint(policy=policy, prevent_cse=prevent_cse, differentiated=differentiated):
            words = [] if policy is None else [f"policy={policy_text(policy)}"]
            words += [] if prevent_cse else ["prevent_cse=False"]
            return "checkpoint", words + (["differentiated=True"] if differentiated else [])
        case Cond():
            return "cond", []
        case While(cond_consts=cc, body_consts=bc):
            counts = {"cond_nconsts": len(cc), "body_nconsts": len(bc)}
            return "while", [f"{k}={v}" for k, v in counts.items() if v]
        case Call(name=name):
            return "jit", [f"name={_word(name)}"]
        case Name(name=name):
            return "name", [f"name={_word(name)}"]
        case Transfer(memory=memory):
            return "device_put", [f"memory={memory}"]
        case CustomVjp(n_residuals=n):
            return "custom_vjp_call", [f"n_residuals={n}"]
        case CustomJvp():
            return "custom_jvp_call", []
        case ShardMap(in_specs=ins, out_specs=outs, manual=manual, check_vma=check_vma):
            words = [f"in_specs=({', '.join(map(spec_text, ins))})", f"out_specs=({', '.join(map(spec_text, outs))})"]
            words += [f"manual=({_words(manual)})"] if manual else []
            return "shard_map", words + (["check_vma=True"] if check_vma else [])
        case ShardingConstraint(spec=spec):
            return "sharding_constraint", [f"spec={spec_text(spec)}"]


def _words_of(eqn: Equation) -> tuple[str, list[str]]:
    head, words = _head(eqn)
    if eqn.metadata:
        words.append("metadata={" + ", ".join(f"{_word(k)}: {_word(v)}" for k, v in eqn.metadata) + "}")
    return head, words


def _line(eqn: Equation, name: _Naming, body: str = "") -> str:
    head, words = _words_of(eqn)
    attributes = " ".join([*words, *([body] if body else [])])
    uses = "".join(f" {_arg(a, name)}" for a in args_of(eqn))
    outs = _vars(eqn.outs, name)
    return f"{outs + ' = ' if outs else ''}{head}{f'[{attributes}]' if attributes else ''}{uses}"


def _block(block: Block, letters: Iterator[int]) -> list[str]:
    names: dict[int, str] = {}

    def name(i: int) -> str:
        return names.get(i, f"?{i}")  # an unbound use: `check` refuses it, printing must not

    def bind(variables: tuple[Var, ...]) -> None:
        names.update((v.id, _letters(next(letters))) for v in variables)

    bind(block.params)
    params = _vars(block.params, name)
    lines = [f"{{ lambda ; {params}. let" if params else "{ lambda ; . let"]
    for eqn in block.eqns:
        bind(eqn.outs)
        nested = children(eqn)
        if not nested:
            lines.append(f"    {_line(eqn, name)}")
            continue
        head, words = _words_of(eqn)
        outs = _vars(eqn.outs, name)
        start = f"    {outs + ' = ' if outs else ''}{head}["
        if len(start) + len(" ".join(words)) <= _WIDTH:
            lines.append(start + " ".join(words))
        else:
            lines += [start, *(f"      {word}" for word in words)]
        for field, child in nested:
            first, *rest = _block(child, letters)
            lines.append(f"      {field}={first}")
            lines += [f"      {line}" for line in rest]
        lines.append(f"    ]{''.join(f' {_arg(a, name)}' for a in args_of(eqn))}")
    results = ", ".join(_arg(r, name) for r in block.results)
    lines.append(f"  in ({results}{',' if len(block.results) == 1 else ''}) }}")
    return lines
