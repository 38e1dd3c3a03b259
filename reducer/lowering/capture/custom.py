"""Custom derivative rules: traced, because a rule is code and its program needs it as data.

Inside a rule other rules are inlined: a program is differentiated at most once, so they are never used there. That
also ends the recursion of rules that call their own function, as most jvp rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from reducer.errors import ProgramError
from reducer.ir.equations import Arg, Block, CustomJvp, CustomVjp
from reducer.ir.walk import fresh
from reducer.lowering.capture import versions
from reducer.lowering.capture.convert import REGIONS, Converter, Needs, handles, ids, inline_call, outs_of
from reducer.lowering.capture.frame import Frame, type_of, zeros
from reducer.lowering.capture.regions import passed, with_params

_HINT: Final = "reduce it after differentiation, where rules have been applied: --tier placement"


def _traced(trace: Callable[[], Any]) -> Any:
    """Run the user's rule.

    Raises:
        ProgramError: it cannot be traced by itself.
    """
    try:
        return trace()
    except ProgramError:
        raise
    except Exception as error:  # the user's code: it may raise anything
        text = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {text[0] if text else ''}"
        raise ProgramError(f"its derivative rule cannot be traced by itself ({reason:.200})", hint=_HINT) from error


def _union(*needs: Needs) -> Needs:
    return list({id(value): (value, aval) for part in needs for value, aval in part}.values())


def _inexact(avals: Sequence[Any]) -> list[Any]:
    return [a for a in avals if type_of(a).inexact]


@handles("custom_jvp_call", table=REGIONS)
def _custom_jvp(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    if not converter.keeps_rules:
        return inline_call(converter, frame, eqn, args)
    metadata, inherited = converter.metadata(frame, eqn)
    avals, n = [v.aval for v in eqn.invars], int(eqn.params["num_consts"])
    exact = [not type_of(a).inexact for a in avals[n:]]
    jaxpr, consts, out_zeros = _traced(lambda: versions.jvp_rule(eqn.params, exact))

    def complete(inner: Frame, results: list[Arg]) -> list[Arg]:
        # Results, then one tangent per inexact result: the rule left out those it knows to be zero.
        m = len(eqn.outvars)
        given = iter(results[m:])
        tangents = [(v.aval, None if zero else next(given)) for v, zero in zip(eqn.outvars, out_zeros, strict=True)]
        return results[:m] + [
            zeros(inner, aval) if tangent is None else tangent for aval, tangent in tangents if type_of(aval).inexact
        ]

    with converter.inside_rule():
        primal, primal_needs = converter.block(versions.body_of(eqn.params), inherited)
        jvp, jvp_needs = converter.block(
            jaxpr, inherited, at=len(args), consts=consts, complete=complete, before=avals[:n]
        )
    needs = _union(primal_needs, jvp_needs)
    jvp = with_params(jvp, jvp_needs, needs, at=len(args))
    # What a function closes over becomes an argument, and so gets a tangent, which its rule does not look at.
    jvp = with_params(jvp, [], _unused(avals[:n]), at=len(args) + len(needs))
    jvp = with_params(jvp, [], _unused([a for _, a in needs]))
    outs = outs_of(frame, eqn)
    frame.add(
        CustomJvp(
            outs=outs,
            args=args + passed(frame, needs),
            primal=with_params(primal, primal_needs, needs),
            jvp=jvp,
            metadata=metadata,
        )
    )
    return ids(outs)


def _unused(avals: Sequence[Any]) -> Needs:
    return [(object(), a) for a in _inexact(avals)]


@handles("custom_vjp_call", "custom_vjp_call_jaxpr", table=REGIONS)
def _custom_vjp(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    if not converter.keeps_rules:
        return inline_call(converter, frame, eqn, args)
    metadata, inherited = converter.metadata(frame, eqn)
    avals, n = [v.aval for v in eqn.invars], int(eqn.params["num_consts"])
    rule: versions.VjpRule = _traced(lambda: versions.vjp_rule(eqn))
    returned = sum(i is None for i in rule.residuals)

    def residuals_last(_: Frame, results: list[Arg]) -> list[Arg]:
        # The traced rule gives residuals first, and leaves out those that are arguments: block parameters 0, 1, ...
        given = iter(results[:returned])
        residuals: list[Arg] = [next(given) if i is None else i for i in rule.residuals]
        return results[returned:] + residuals

    with converter.inside_rule():
        primal, primal_needs = converter.block(versions.body_of(eqn.params), inherited)
        fwd, fwd_needs = converter.block(
            rule.fwd, inherited, consts=rule.fwd_consts, complete=residuals_last, before=avals[:n]
        )
        bwd, bwd_needs = converter.block(rule.bwd, inherited, at=len(rule.residuals))
    needs = _union(primal_needs, fwd_needs, bwd_needs)
    fwd = with_params(fwd, fwd_needs, needs)
    position = {id(value): len(args) + i for i, (value, _) in enumerate(needs)}
    more = tuple(fwd.params[position[id(value)]].id for value, _ in bwd_needs)
    outs = outs_of(frame, eqn)
    frame.add(
        CustomVjp(
            outs=outs,
            args=args + passed(frame, needs),
            primal=with_params(primal, primal_needs, needs),
            fwd=replace(fwd, results=fwd.results + more),
            bwd=_with_zeros(bwd, avals[:n], [a for _, a in needs]),
            n_residuals=len(rule.residuals) + len(more),
            metadata=metadata,
        )
    )
    return ids(outs)


def _with_zeros(bwd: Block, before: Sequence[Any], behind: Sequence[Any]) -> Block:
    """Cotangents of closed-over values are zero: JAX refuses to differentiate with respect to them."""
    frame = Frame(eqns=list(bwd.eqns), ids=fresh(bwd))
    first, last = ([zeros(frame, a) for a in _inexact(avals)] for avals in (before, behind))
    return Block(bwd.params, tuple(frame.eqns), (*first, *bwd.results, *last))


@handles("custom_linear_solve", table=REGIONS)
def _linear_solve(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    if converter.keeps_rules:
        raise ProgramError("a linear solver has derivative rules of its own", hint=_HINT)
    lengths, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
    first = lengths.matvec + lengths.vecmat
    jaxpr, consts = versions.open_jaxpr(solve)
    given = args[first : first + lengths.solve] + args[sum(lengths) :]
    return converter.inline(frame, jaxpr, consts, dict(zip(jaxpr.invars, given, strict=True)))


@handles("call_hi_primitive", table=REGIONS)
def _high_level(converter: Converter, frame: Frame, eqn: Any, args: tuple[Arg, ...]) -> Sequence[Arg]:
    """Operations some versions define by an expansion into others."""
    if converter.keeps_rules and any(type_of(v.aval).inexact for v in eqn.outvars):
        raise ProgramError("it has derivative rules of its own", hint=_HINT)
    jaxpr, consts = versions.open_jaxpr(_traced(lambda: versions.expansion(eqn)))
    return converter.inline(frame, jaxpr, consts, dict(zip(jaxpr.invars, args, strict=True)))
