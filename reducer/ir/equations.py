"""Equations, blocks and programs: the IR itself, a small mirror of jaxpr.

Everything is immutable. A block is closed: it sees its parameters and nothing else, and its variable numbers mean
nothing outside it. Loops and regions take what they need as arguments, exactly as in a jaxpr.

A variable is `Var(id, type)` where it is bound; where it is used it is its id, a plain integer. A scalar constant is
`Lit`; the only constant array is `Fill`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from reducer.ir.policies import Policy
from reducer.ir.types import Memory, Type

#: XLA metadata that keeps the compiler from deleting a trip-count-one loop (`set_xla_metadata`).
BARRIER = (("skip-simplify-while-loops_trip-count-one", "true"),)


class Var(msgspec.Struct, frozen=True, array_like=True):
    """A variable where it is bound: its number within the block, and its type. JSON: ``[3, "f32[8,128]"]``."""

    id: int
    type: Type


class Lit(msgspec.Struct, frozen=True, tag_field="kind", tag="lit"):
    """A typed scalar. `value` is Python's shortest text for it: ``1.0``, ``nan``, ``-3``, ``True``."""

    dtype: str
    value: str


#: A use of a value: the id of a variable of this block, or a scalar.
Arg = int | Lit

#: A dimension's mesh axes: none, one, or several. One entry per dimension; missing trailing ones are unsharded.
Spec = tuple[str | tuple[str, ...] | None, ...]

Metadata = tuple[tuple[str, str], ...]


class Enum(msgspec.Struct, frozen=True, tag_field="attr", tag="enum"):
    """A member of a JAX enum, as ``Precision.HIGHEST``."""

    name: str


class GatherDims(msgspec.Struct, frozen=True, tag_field="attr", tag="gather-dims"):
    """`lax.GatherDimensionNumbers`."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDims(msgspec.Struct, frozen=True, tag_field="attr", tag="scatter-dims"):
    """`lax.ScatterDimensionNumbers`."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class ConvDims(msgspec.Struct, frozen=True, tag_field="attr", tag="conv-dims"):
    """`lax.ConvDimensionNumbers`."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


#: The closed set of attribute values. Tuples hold scalars and tuples of scalars only.
Attr = None | bool | int | str | tuple[Any, ...] | Enum | GatherDims | ScatterDims | ConvDims


class _Equation(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """Base of the equation kinds: what it binds, and the XLA metadata it carries."""

    outs: tuple[Var, ...]
    metadata: Metadata = ()


class Op(_Equation, frozen=True, tag="op", kw_only=True):
    """A first-order primitive, by its name in jaxprs (`tanh`, `dot_general`, ...)."""

    primitive: str
    args: tuple[Arg, ...] = ()
    attributes: tuple[tuple[str, Attr], ...] = ()

    def attr(self, name: str, default: Attr = None) -> Any:
        """The attribute of that name, or `default`."""
        return dict(self.attributes).get(name, default)


class Fill(_Equation, frozen=True, tag="fill", kw_only=True):
    """An array whose elements are all `value` (text as in `Lit`): the only constant. Not counted in sizes."""

    value: str = "0.0"


class Scan(_Equation, frozen=True, tag="scan", kw_only=True):
    """`lax.scan`. Body: consts, carry, slices of xs -> carry, slices of ys. Outs: carry, then stacked ys."""

    length: int
    body: Block
    consts: tuple[Arg, ...] = ()
    carry: tuple[Arg, ...] = ()
    xs: tuple[Arg, ...] = ()
    reverse: bool = False
    unroll: int = 1


class Checkpoint(_Equation, frozen=True, tag="checkpoint", kw_only=True):
    """`jax.checkpoint`. With `differentiated` it stands in a backward pass, where it only is a barrier."""

    args: tuple[Arg, ...]
    body: Block
    policy: Policy | None = None
    prevent_cse: bool = True
    differentiated: bool = False


class Cond(_Equation, frozen=True, tag="cond", kw_only=True):
    """`lax.switch`: `index` is an i32 scalar, clamped into the branches."""

    index: Arg
    branches: tuple[Block, ...]
    args: tuple[Arg, ...] = ()


class While(_Equation, frozen=True, tag="while", kw_only=True):
    """`lax.while_loop`. Cond: cond_consts, carry -> bool. Body: body_consts, carry -> carry."""

    cond: Block
    body: Block
    carry: tuple[Arg, ...]
    cond_consts: tuple[Arg, ...] = ()
    body_consts: tuple[Arg, ...] = ()


class Call(_Equation, frozen=True, tag="call", kw_only=True):
    """A nested `jax.jit`."""

    args: tuple[Arg, ...]
    body: Block
    name: str = "inner"


class Name(_Equation, frozen=True, tag="name", kw_only=True):
    """`checkpoint_name`: what policies refer to."""

    arg: Arg
    name: str


class Transfer(_Equation, frozen=True, tag="transfer", kw_only=True):
    """`jax.device_put` to a memory space."""

    arg: Arg
    memory: Memory


class CustomVjp(_Equation, frozen=True, tag="custom-vjp", kw_only=True):
    """`jax.custom_vjp`.

    `fwd`: args -> results, then `n_residuals` residuals. `bwd`: residuals, cotangents of results -> one per arg.
    """

    args: tuple[Arg, ...]
    primal: Block
    fwd: Block
    bwd: Block
    n_residuals: int


class CustomJvp(_Equation, frozen=True, tag="custom-jvp", kw_only=True):
    """`jax.custom_jvp`. `jvp`: args, then tangents -> results, then result tangents."""

    args: tuple[Arg, ...]
    primal: Block
    jvp: Block


class ShardMap(_Equation, frozen=True, tag="shard-map", kw_only=True):
    """`jax.shard_map` over the program's mesh. The body has per-device shapes; `manual` axes (empty: all)."""

    args: tuple[Arg, ...]
    body: Block
    in_specs: tuple[Spec, ...]
    out_specs: tuple[Spec, ...]
    manual: tuple[str, ...] = ()
    check_vma: bool = False


class ShardingConstraint(_Equation, frozen=True, tag="sharding-constraint", kw_only=True):
    """`lax.with_sharding_constraint` on the program's mesh."""

    arg: Arg
    spec: Spec


Equation = (
    Op
    | Fill
    | Scan
    | Checkpoint
    | Cond
    | While
    | Call
    | Name
    | Transfer
    | CustomVjp
    | CustomJvp
    | ShardMap
    | ShardingConstraint
)


class Block(msgspec.Struct, frozen=True):
    """Parameters, equations in order, results. Closed: results and arguments are its own variables or scalars."""

    params: tuple[Var, ...]
    eqns: tuple[Equation, ...]
    results: tuple[Arg, ...]


class Grad(msgspec.Struct, frozen=True, omit_defaults=True):
    """Differentiate the program: the objective is the f32 sum of all inexact results on the device.

    `argnums` are positions of inexact inputs. The objective is implicit and does not count in the size.
    """

    argnums: tuple[int, ...]
    with_value: bool = True


class Mesh(msgspec.Struct, frozen=True):
    """A device mesh: axis names and sizes; no device numbers."""

    axes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Number of devices."""
        total = 1
        for _, n in self.axes:
            total *= n
        return total


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one input enters: its sharding over the mesh (None: unspecified) and whether its buffer is donated."""

    spec: Spec | None = None
    donated: bool = False


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole program. The parameters of `block` are its inputs; memory spaces stand in their types.

    `inputs` and `result_specs` are empty (all default) or as long as the inputs and the results. `meta` says where
    the program came from; it is no part of the program's identity.
    """

    block: Block
    gradient: Grad | None = None
    mesh: Mesh | None = None
    inputs: tuple[Entry, ...] = ()
    result_specs: tuple[Spec | None, ...] = ()
    meta: tuple[tuple[str, str], ...] = ()
