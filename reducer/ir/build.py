"""Building blocks equation by equation, with types inferred: for strategies, passes and tests.

b = Builder()
x, w = b.param(x_type), b.param(w_type)
block = b.block(b.op("tanh", b.matmul(x, w)))
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from reducer.ir.equations import (
    Arg,
    Attr,
    Block,
    Call,
    Checkpoint,
    Cond,
    CustomVjp,
    Equation,
    Fill,
    Lit,
    Metadata,
    Name,
    Op,
    Scan,
    ShardingConstraint,
    ShardMap,
    Spec,
    Transfer,
    Var,
    While,
)
from reducer.ir.policies import Policy
from reducer.ir.rules import infer
from reducer.ir.types import Memory, Type
from reducer.ir.walk import arg_type, inlined, types_of


class Builder:
    """Collects parameters and equations of one block. Every method returns the ids of what it binds."""

    def __init__(self) -> None:
        self._ids = count()
        self._params: list[Var] = []
        self._eqns: list[Equation] = []
        self._types: dict[int, Type] = {}

    def type(self, arg: Arg) -> Type:
        """The type of a value of this block, or of a scalar."""
        return arg_type(arg, self._types)

    def _var(self, type_: Type) -> Var:
        var = Var(next(self._ids), type_)
        self._types[var.id] = type_
        return var

    def param(self, type_: Type) -> int:
        """A parameter of the block."""
        var = self._var(type_)
        self._params.append(var)
        return var.id

    def _bind(self, types: Sequence[Type]) -> tuple[Var, ...]:
        return tuple(self._var(t) for t in types)

    def _add(self, eqn: Equation) -> tuple[int, ...]:
        self._eqns.append(eqn)
        return tuple(var.id for var in eqn.outs)

    def ops(self, primitive: str, *args: Arg, to: Sequence[Type] = (), **attributes: Attr) -> tuple[int, ...]:
        """A primitive with any number of results; `to` gives result types that are parameters of the primitive.

        Raises:
            ProgramError: the arguments do not fit the primitive.
        """
        types = infer(primitive, tuple(map(self.type, args)), attributes, tuple(to))
        attrs = tuple(sorted((k, v) for k, v in attributes.items()))
        return self._add(Op(outs=self._bind(types), primitive=primitive, args=args, attributes=attrs))

    def op(self, primitive: str, *args: Arg, to: Type | None = None, **attributes: Attr) -> int:
        """A primitive with one result."""
        (out,) = self.ops(primitive, *args, to=(to,) if to else (), **attributes)
        return out

    def matmul(self, x: Arg, w: Arg) -> int:
        """`x @ w`: the last axis of `x` against the first of `w`."""
        return self.op("dot_general", x, w, dimension_numbers=(((self.type(x).rank - 1,), (0,)), ((), ())))

    def convert(self, x: Arg, dtype: str) -> int:
        """`x.astype(dtype)`; the value itself if it already has that dtype is not reused, the equation is written."""
        return self.op("convert_element_type", x, to=self.type(x).with_dtype(dtype))

    def broadcast(self, x: Arg, shape: tuple[int, ...], dims: tuple[int, ...] = ()) -> int:
        """`broadcast_in_dim`: axis i of `x` becomes axis ``dims[i]`` of `shape`."""
        return self.op("broadcast_in_dim", x, to=self.type(x).with_shape(shape), broadcast_dimensions=dims)

    def fill(self, type_: Type, value: str = "0.0") -> int:
        """A constant array."""
        return self._add(Fill(outs=self._bind((type_,)), value=value))[0]

    def name(self, x: Arg, name: str) -> int:
        """`checkpoint_name(x, name)`."""
        return self._add(Name(outs=self._bind((self.type(x),)), arg=x, name=name))[0]

    def transfer(self, x: Arg, memory: Memory) -> int:
        """`jax.device_put(x, memory)`."""
        return self._add(Transfer(outs=self._bind((self.type(x).in_memory(memory),)), arg=x, memory=memory))[0]

    def scan(
        self,
        body: Block,
        *,
        length: int,
        consts: Sequence[Arg] = (),
        carry: Sequence[Arg] = (),
        xs: Sequence[Arg] = (),
        reverse: bool = False,
        unroll: int = 1,
        metadata: Metadata = (),
    ) -> tuple[int, ...]:
        """`lax.scan` of a closed body; results are the carry, then the stacked ys."""
        types = _result_types(body)
        outs = types[: len(carry)] + [t.stacked(length) for t in types[len(carry) :]]
        return self._add(
            Scan(
                outs=self._bind(outs),
                length=length,
                body=body,
                consts=tuple(consts),
                carry=tuple(carry),
                xs=tuple(xs),
                reverse=reverse,
                unroll=unroll,
                metadata=metadata,
            )
        )

    def checkpoint(
        self,
        body: Block,
        *args: Arg,
        policy: Policy | None = None,
        prevent_cse: bool = True,
        differentiated: bool = False,
        metadata: Metadata = (),
    ) -> tuple[int, ...]:
        """`jax.checkpoint(body, policy=policy, prevent_cse=prevent_cse)(*args)`."""
        outs = self._bind(_result_types(body))
        return self._add(
            Checkpoint(
                outs=outs,
                args=args,
                body=body,
                policy=policy,
                prevent_cse=prevent_cse,
                differentiated=differentiated,
                metadata=metadata,
            )
        )

    def cond(self, index: Arg, branches: Sequence[Block], *args: Arg) -> tuple[int, ...]:
        """`lax.switch(index, branches, *args)`; `index` is an i32 scalar."""
        outs = self._bind(_result_types(branches[0]))
        return self._add(Cond(outs=outs, index=index, branches=tuple(branches), args=args))

    def while_loop(
        self,
        cond: Block,
        body: Block,
        carry: Sequence[Arg],
        *,
        cond_consts: Sequence[Arg] = (),
        body_consts: Sequence[Arg] = (),
    ) -> tuple[int, ...]:
        """`lax.while_loop(cond, body, carry)`."""
        return self._add(
            While(
                outs=self._bind(_result_types(body)),
                cond=cond,
                body=body,
                carry=tuple(carry),
                cond_consts=tuple(cond_consts),
                body_consts=tuple(body_consts),
            )
        )

    def call(self, body: Block, *args: Arg, name: str = "inner") -> tuple[int, ...]:
        """`jax.jit(body)(*args)`."""
        return self._add(Call(outs=self._bind(_result_types(body)), args=args, body=body, name=name))

    def custom_vjp(self, primal: Block, fwd: Block, bwd: Block, *args: Arg, n_residuals: int) -> tuple[int, ...]:
        """`jax.custom_vjp` with its forward and backward rules."""
        outs = self._bind(_result_types(primal))
        return self._add(CustomVjp(outs=outs, args=args, primal=primal, fwd=fwd, bwd=bwd, n_residuals=n_residuals))

    def shard_map(
        self,
        body: Block,
        *args: Arg,
        in_specs: Sequence[Spec],
        out_specs: Sequence[Spec],
        to: Sequence[Type],
        manual: tuple[str, ...] = (),
    ) -> tuple[int, ...]:
        """`jax.shard_map`; `to` are the global types of the results."""
        return self._add(
            ShardMap(
                outs=self._bind(to),
                args=args,
                body=body,
                in_specs=tuple(in_specs),
                out_specs=tuple(out_specs),
                manual=manual,
            )
        )

    def constrain(self, x: Arg, spec: Spec) -> int:
        """`lax.with_sharding_constraint(x, spec)`."""
        return self._add(ShardingConstraint(outs=self._bind((self.type(x),)), arg=x, spec=spec))[0]

    def inline(self, body: Block, *args: Arg) -> tuple[Arg, ...]:
        """The equations of a closed block, with `args` for its parameters; returns what stands for its results."""
        eqns, results = inlined(body, args, self._ids)
        for eqn in eqns:
            self._types.update((var.id, var.type) for var in eqn.outs)
        self._eqns += eqns
        return results

    @property
    def equations(self) -> tuple[Equation, ...]:
        """What has been written so far, in order."""
        return tuple(self._eqns)

    def block(self, *results: Arg) -> Block:
        """The finished block."""
        return Block(tuple(self._params), tuple(self._eqns), results)


def _result_types(body: Block) -> list[Type]:
    types = types_of(body)
    return [arg_type(result, types) for result in body.results]


def lit(value: float | int | bool, dtype: str = "float32") -> Lit:
    """A scalar: ``lit(2.0)``, ``lit(3, "int32")``."""
    return Lit(dtype, repr(value))
