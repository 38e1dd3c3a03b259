"""Layer bodies: small pieces of models, each with *points* at which a value can be named or stacked.

Every motif maps x to a value of the same type, bounded by a small multiple of x, so that programs of any depth
stay finite on a CPU. Points that autodiff needs in the backward pass (inputs of products and of nonlinear functions)
come first in `points`: a name on one of them is really a residual. `out` usually is none, which is a shape of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reducer.ir.build import lit
from reducer.ir.equations import Arg
from reducer.ir.types import Type
from strategies._scope import Scope
from strategies._trees import Leaf


class Layer:
    """What a motif works with: the scope, the leaf's choices, and points."""

    def __init__(self, scope: Scope, leaf: Leaf) -> None:
        self.scope, self.leaf, self.b = scope, leaf, scope.b

    def point(self, point: str, value: int) -> int:
        """The value, named and made an extra result if the leaf says so."""
        name = dict(self.leaf.names).get(point)
        if name is not None:
            value = self.b.name(value, name)
        if point in self.leaf.emit:
            self.scope.extras.append(value)
        return value

    def scalar(self, value: float, like: Arg) -> Arg:
        """A literal of the dtype of a value."""
        return lit(value, self.b.type(like).dtype)

    def dot(self, x: int) -> int:
        """x times a square matrix."""
        width = self.b.type(x).shape[-1]
        w = self.point("w", self.scope.weight(Type(self.b.type(x).dtype, (width, width))))
        return self.point("dot", self.b.matmul(x, w))

    def act(self, x: int) -> int:
        """The leaf's nonlinear function of x, with values in [-1, 1] or at most |x|."""
        b = self.b
        match self.leaf.act:
            case "relu":
                # Capped, so that a deep stack of products stays finite.
                return b.op("min", b.op("max", x, self.scalar(0.0, x)), self.scalar(1.0, x))
            case "gauss":
                return b.op("exp", b.op("neg", b.op("mul", x, x)))
            case "vjp":
                return _custom_tanh(self, x)
            case primitive:
                return b.op(primitive, x)


def _custom_tanh(layer: Layer, x: int) -> int:
    """`tanh` as a `custom_vjp` whose residual is its own output, at point `res`."""
    type_ = layer.b.type(x)

    def forward(name: str | None) -> tuple[Scope, int, int]:
        inner = Scope(gradient=False)
        h = inner.b.op("tanh", inner.b.param(type_))
        return inner, h, inner.b.name(h, name) if name else h

    primal, out, _ = forward(None)
    fwd, h, residual = forward(dict(layer.leaf.names).get("res"))
    bwd = Scope(gradient=False)
    r, ct = bwd.b.param(type_), bwd.b.param(type_)
    slope = bwd.b.op("sub", lit(1.0, type_.dtype), bwd.b.op("mul", r, r))
    blocks = primal.b.block(out), fwd.b.block(h, residual), bwd.b.block(bwd.b.op("mul", ct, slope))
    return layer.b.custom_vjp(*blocks, x, n_residuals=1)[0]


def _pointwise(layer: Layer, x: int) -> int:
    return layer.point("out", layer.act(layer.point("in", x)))


def _damped(layer: Layer, x: int) -> int:
    h = layer.point("act", layer.act(layer.point("in", x)))
    return layer.point("out", layer.b.op("mul", x, h))


def _scaled(layer: Layer, x: int) -> int:
    w = layer.point("w", layer.scope.weight(layer.b.type(x)))
    return layer.point("out", layer.act(layer.point("dot", layer.b.op("mul", layer.point("in", x), w))))


def _dense(layer: Layer, x: int) -> int:
    return layer.point("out", layer.act(layer.dot(layer.point("in", x))))


def _mlp(layer: Layer, x: int) -> int:
    b = layer.b
    h = layer.point("act", layer.act(layer.dot(layer.point("in", x))))
    width = b.type(x).shape[-1]
    o = b.op("tanh", b.matmul(h, layer.scope.weight(Type(b.type(x).dtype, (width, width)))))
    return layer.point("out", b.op("add", x, o))


def _gated(layer: Layer, x: int) -> int:
    b, width = layer.b, layer.b.type(x).shape[-1]
    x = layer.point("in", x)
    gate = b.op("logistic", b.matmul(x, layer.scope.weight(Type(b.type(x).dtype, (width, width)))))
    return layer.point("out", b.op("mul", layer.point("act", layer.act(layer.dot(x))), gate))


def _normed(layer: Layer, x: int) -> int:
    b, type_ = layer.b, layer.b.type(x)
    x, last = layer.point("in", x), type_.rank - 1
    mean = b.op("mul", b.op("reduce_sum", b.op("mul", x, x), axes=(last,)), layer.scalar(1.0 / type_.shape[-1], x))
    r = layer.point("red", b.op("rsqrt", b.op("add", mean, layer.scalar(1.0, x))))
    n = layer.point("act", b.op("mul", x, b.broadcast(r, type_.shape, tuple(range(last)))))
    return layer.point("out", layer.act(layer.dot(n)))


def _pooled(layer: Layer, x: int) -> int:
    b, type_ = layer.b, layer.b.type(x)
    total = b.op("reduce_sum", layer.point("in", x), axes=tuple(range(type_.rank)))
    r = layer.act(layer.point("red", b.op("mul", total, layer.scalar(1.0 / type_.size, x))))
    return layer.point("out", b.op("mul", x, r))


def _row_pooled(layer: Layer, x: int) -> int:
    b, type_ = layer.b, layer.b.type(x)
    last = type_.rank - 1
    r = layer.act(layer.point("red", b.op("reduce_max", layer.point("in", x), axes=(last,))))
    return layer.point("out", b.op("mul", x, b.broadcast(r, type_.shape, tuple(range(last)))))


def _attention(layer: Layer, x: int) -> int:
    b, type_ = layer.b, layer.b.type(x)
    x, rank, width = layer.point("in", x), type_.rank, type_.shape[-1]
    k = b.matmul(x, layer.scope.weight(Type(type_.dtype, (width, width))))
    batch = tuple(range(rank - 2))
    q = layer.dot(x)
    scores = b.op("dot_general", q, k, dimension_numbers=(((rank - 1,), (rank - 1,)), (batch, batch)))
    s = layer.point("act", layer.act(scores))
    rows = b.type(s).shape
    top = b.broadcast(b.op("reduce_max", s, axes=(rank - 1,)), rows, tuple(range(rank - 1)))
    e = b.op("exp", b.op("sub", s, top))
    total = b.broadcast(b.op("reduce_sum", e, axes=(rank - 1,)), rows, tuple(range(rank - 1)))
    p = b.op("div", e, total)
    o = b.op("dot_general", p, x, dimension_numbers=(((rank - 1,), (rank - 2,)), (batch, batch)))
    return layer.point("out", b.op("tanh", o))


def _batched(layer: Layer, x: int) -> int:
    """A stage under vmap: every product has a batch dimension."""
    b, type_ = layer.b, layer.b.type(x)
    n, width = type_.shape[0], type_.shape[-1]
    w = layer.point("w", layer.scope.weight(Type(type_.dtype, (n, width, width))))
    dot = b.op("dot_general", layer.point("in", x), w, dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    return layer.point("out", layer.act(layer.point("dot", dot)))


def _heads(layer: Layer, x: int) -> int:
    """Split the last axis in two and swap the parts: a residual of another rank and layout."""
    b, type_ = layer.b, layer.b.type(x)
    rank, (*lead, width) = type_.rank, type_.shape
    split = b.op("reshape", layer.point("in", x), to=type_.with_shape((*lead, 2, width // 2)))
    order = (*range(rank - 1), rank, rank - 1)
    turned = layer.point("act", b.op("transpose", split, permutation=order))
    h = b.op("transpose", layer.act(turned), permutation=order)
    return layer.point("out", b.op("mul", x, b.op("reshape", h, to=type_)))


def _halves(layer: Layer, x: int) -> int:
    b, type_ = layer.b, layer.b.type(x)
    half, zeros = type_.shape[-1] // 2, (0,) * type_.rank
    middle = (*type_.shape[:-1], half)
    left = b.op("slice", x, start_indices=zeros, limit_indices=middle, strides=None)
    right = b.op("slice", x, start_indices=(*zeros[1:], half), limit_indices=type_.shape, strides=None)
    h = layer.act(layer.point("act", left))
    return layer.point("out", b.op("concatenate", right, h, dimension=type_.rank - 1))


def _quantized(dtype: str) -> Callable[[Layer, int], int]:
    def body(layer: Layer, x: int) -> int:
        """A residual stored in one byte: quantize, name, dequantize, multiply."""
        b, own = layer.b, layer.b.type(x).dtype
        h = layer.act(layer.point("in", x))
        if dtype == "int8":
            h = b.op("round", b.op("mul", h, layer.scalar(64.0, x)), rounding_method=1)
        q = layer.point("quant", b.convert(h, dtype))
        back = b.convert(q, own)
        if dtype == "int8":
            back = b.op("mul", back, layer.scalar(1.0 / 64.0, x))
        return layer.point("out", b.op("mul", x, back))

    return body


def _narrow(layer: Layer, x: int) -> int:
    """The layer in the other 16/32 bit float: a cast residual."""
    b, own = layer.b, layer.b.type(x).dtype
    other = "bfloat16" if own == "float32" else "float32"
    h = b.op("sin", layer.point("quant", b.convert(layer.act(layer.point("in", x)), other)))
    return layer.point("out", b.convert(h, own))


def _consume(layer: Layer, x: int) -> int:
    """The backward half of an explicit offload: a value that comes from the host, used on the device."""
    stored = layer.scope.weight(layer.b.type(x).in_memory("host"))
    r = layer.point("w", layer.b.transfer(stored, "device"))
    return layer.point("out", layer.act(layer.b.op("mul", x, r)))


def _optimizer(layer: Layer, x: int) -> int:
    """State that lives on the host: moved in, updated, moved out as an extra result."""
    b, type_ = layer.b, layer.b.type(x)
    m = b.transfer(layer.scope.weight(type_.in_memory("host")), "device")
    new = b.op("add", b.op("mul", m, layer.scalar(0.5, x)), layer.act(layer.point("in", x)))
    layer.scope.extras.append(b.transfer(new, "host"))
    return layer.point("out", b.op("sub", x, b.op("mul", new, layer.scalar(0.125, x))))


def _sliced(layer: Layer, x: int) -> int:
    """A table on the host, one row per step, read by a dynamic slice there."""
    b, type_ = layer.b, layer.b.type(x)
    table = layer.scope.stopped(layer.scope.weight(type_.stacked(4).in_memory("host")))
    index = layer.scope.weight(Type("int32"))
    starts: tuple[Arg, ...] = (index, *(lit(0, "int32") for _ in type_.shape))
    row = b.op("dynamic_slice", table, *starts, to=type_.stacked(1).in_memory("host"))
    h = b.op("reshape", b.transfer(row, "device"), to=type_)
    return layer.point("out", layer.act(b.op("mul", layer.point("in", x), h)))


@dataclass(frozen=True, slots=True)
class Motif:
    """A layer body, the points it has (residuals first), and the shapes it takes."""

    body: Callable[[Layer, int], int]
    points: tuple[str, ...]
    min_rank: int = 0
    max_rank: int = 9
    even: bool = False
    dots: bool = False

    @property
    def residuals(self) -> tuple[str, ...]:
        """The points autodiff keeps or recomputes for the backward pass."""
        return tuple(point for point in self.points if point != "out")

    def fits(self, x: Type) -> bool:
        """True if the motif takes an x of that type."""
        even = not self.even or (x.rank > 0 and x.shape[-1] % 2 == 0)
        return self.min_rank <= x.rank <= self.max_rank and even


MOTIFS: Final = {
    "pointwise": Motif(_pointwise, ("in", "out")),
    "damped": Motif(_damped, ("in", "act", "out")),
    "scaled": Motif(_scaled, ("in", "dot", "w", "out")),
    "dense": Motif(_dense, ("dot", "in", "w", "out"), min_rank=1, dots=True),
    "mlp": Motif(_mlp, ("act", "dot", "in", "out"), min_rank=1, dots=True),
    "gated": Motif(_gated, ("dot", "act", "in", "out"), min_rank=1, dots=True),
    "normed": Motif(_normed, ("act", "dot", "red", "in"), min_rank=1, dots=True),
    "pooled": Motif(_pooled, ("red", "in")),
    "row_pooled": Motif(_row_pooled, ("red", "in"), min_rank=1),
    "attention": Motif(_attention, ("act", "dot", "in", "w"), min_rank=2, dots=True),
    "batched": Motif(_batched, ("dot", "in", "w"), min_rank=3, max_rank=3, dots=True),
    "heads": Motif(_heads, ("act", "in"), min_rank=1, even=True),
    "halves": Motif(_halves, ("act",), min_rank=1, even=True),
    "int8": Motif(_quantized("int8"), ("quant", "in")),
    "fp8": Motif(_quantized("float8_e4m3fn"), ("quant", "in")),
    "fp8_wide": Motif(_quantized("float8_e5m2"), ("quant", "in")),
    "narrow": Motif(_narrow, ("quant", "in")),
    "consume": Motif(_consume, ("w", "out")),
    "optimizer": Motif(_optimizer, ("in", "out")),
    "sliced": Motif(_sliced, ("in", "out")),
}

#: Motifs with floating weights on the device, which can be streamed in from the host.
WEIGHTED: Final = ("scaled", "dense", "mlp", "gated", "normed", "attention", "batched")

#: Functions a leaf may use; `vjp` is a custom_vjp, with one point more (`res`).
ACTS: Final = ("tanh", "sin", "logistic", "cos", "relu", "gauss", "vjp")


def layer(scope: Scope, leaf: Leaf, x: int) -> int:
    """Build one leaf."""
    return MOTIFS[leaf.motif].body(Layer(scope, leaf), x)
