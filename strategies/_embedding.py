"""A find inside a model: the same failure, with as much around it as a real train step has.

Seeded, not drawn: the models are larger than what Hypothesis keeps of one example.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from reducer.errors import ProgramError
from reducer.ir.build import lit
from reducer.ir.equations import Arg, Block, Equation, Fill, Grad, Name, Program
from reducer.ir.normal import normalise
from reducer.ir.policies import OffloadNames, names_of
from reducer.ir.types import DTYPES, Type
from reducer.ir.walk import children
from reducer.ir.walk import equations as equations_of
from strategies._motifs import ACTS, MOTIFS, layer
from strategies._scope import Scope, State
from strategies._trees import Leaf

#: What the model's layers are made of, where they fit its state.
_LAYERS: Final = ("pointwise", "damped", "scaled", "dense", "mlp", "gated", "normed", "pooled", "attention", "heads")
_WIDEST: Final = 1024
_NAMES: Final = ("attention_out", "mlp_out")
_STATE: Final = Type("float32", (8, 128))
#: About so many equations are drawn for a region of the model at least.
_REGION: Final = 16


def embedded(find: Program, *, equations: int, seed: int) -> Program:
    """A model of about so many equations (nested ones included, `Fill` not counted) with a find on the way to its loss.

    The model is a stack of layers in loops and checkpoints; its own policy offloads two names that the find does not
    have. The find stands at a random depth of them: what it takes is computed from the carried state, and its results
    go into the state. Whether the whole fails as the find does is for an oracle to say; if not, try another seed.

    Raises:
        ProgramError: the find is over a mesh, or larger than the model is to be.
    """
    if find.mesh is not None:
        raise ProgramError("a program over a mesh cannot be embedded")
    return _Model(find, equations, random.Random(seed)).program()


class _Model:
    def __init__(self, find: Program, wanted: int, rng: random.Random) -> None:
        self.find, self.rng = find, rng
        self.room = wanted - _count(find.block.eqns)
        if self.room < 0:
            raise ProgramError(f"the find alone has more than {wanted} equations")
        taken = {name for _, _, eqn in equations_of(find) for name in _names(eqn)}
        self.names = tuple(_unlike(name, taken) for name in _NAMES)
        self.policy = OffloadNames(self.names)
        self.x = next((t for t in _types(find.block) if _carries(t)), _STATE)
        motifs = [name for name in _LAYERS if MOTIFS[name].fits(self.x)]
        narrow = bool(self.x.shape) and self.x.shape[-1] <= _WIDEST
        self.motifs = [name for name in motifs if narrow or not MOTIFS[name].dots]

    def program(self) -> Program:
        """The whole."""
        scope = Scope(gradient=self.find.gradient is not None)
        x = self._spine(scope, scope.b.param(self.x), self._regions(), self.room)
        total = scope.b.op("reduce_sum", scope.b.convert(x, "float32"), axes=tuple(range(self.x.rank)))
        block = scope.b.block(total)
        gradient = None
        if self.find.gradient is not None:
            params = enumerate(block.params)
            gradient = Grad(tuple(i for i, var in params if var.type.inexact and not var.type.on_host))
        return normalise(Program(block=block, gradient=gradient, meta=(("origin", "embedded"),)))

    def _regions(self) -> list[str]:
        """The regions around the find, outer first: a loop, a checkpoint, and perhaps more of both."""
        regions = ["scan", "checkpoint", *self.rng.choices(("scan", "checkpoint", "jit"), k=self.rng.randrange(3))]
        self.rng.shuffle(regions)
        return regions

    def _spine(self, scope: Scope, x: int, regions: list[str], room: int) -> int:
        """Layers, the next region around the find (or the find itself), layers."""
        inside = self.rng.randrange(room // 2 + 1) if regions else 0
        before = self.rng.randrange(room - inside + 1)
        x = self._layers(scope, x, before)
        if regions:
            x = self._region(scope, x, regions[0], lambda s, v: self._spine(s, v, regions[1:], inside))
        else:
            x = self._find(scope, x)
        return self._layers(scope, x, room - inside - before)

    def _layers(self, scope: Scope, x: int, room: int) -> int:
        """A stack of layers and regions of about so many equations."""
        while room >= 1:
            done = _count(scope.b.equations)
            if room > _REGION and self.rng.random() < 0.4:
                part = self.rng.randint(_REGION // 2, max(_REGION // 2, room // 2))
                kind = self.rng.choice(("scan", "scan", "checkpoint", "checkpoint", "jit"))
                x = self._region(scope, x, kind, lambda s, v, part=part: self._layers(s, v, part))  # type: ignore[misc]
            else:
                x = self._layer(scope, x, room)
            room -= _count(scope.b.equations) - done
        return x

    def _layer(self, scope: Scope, x: int, room: int) -> int:
        motif = self.rng.choice(self.motifs if room > 12 else ["pointwise"])
        point = self.rng.choice(MOTIFS[motif].residuals)
        named = ((point, self.rng.choice(self.names)),) if room > 1 and self.rng.random() < 0.4 else ()
        return layer(scope, Leaf(motif, self.rng.choice([act for act in ACTS if act != "vjp"]), named, ()), x)

    def _region(self, scope: Scope, x: int, kind: str, fill: Callable[[Scope, int], int]) -> int:
        inner, state = scope.region({"x": x})
        start = state["x"]
        assert isinstance(start, int)
        shared = self.rng.random() < 0.5
        out: State = {"x": fill(inner, start)}
        body = inner.finish(out, weights_first=inner.weights if kind == "scan" and shared else ())
        types = inner.weight_types()
        if kind != "scan":
            weights = [scope.weight(t) for t in types]
            if kind == "jit":
                return scope.b.call(body, x, *weights, name="block")[0]
            policy = self.policy if self.rng.random() < 0.7 else None
            return scope.b.checkpoint(body, x, *weights, policy=policy)[0]
        length = self.rng.choice((2, 3, 4))
        if shared:
            return scope.b.scan(body, length=length, consts=[scope.weight(t) for t in types], carry=[x])[0]
        return scope.b.scan(body, length=length, carry=[x], xs=[scope.weight(t.stacked(length)) for t in types])[0]

    def _find(self, scope: Scope, x: int) -> int:
        """The find, fed from the state and feeding it."""
        b = scope.b
        total = b.op("reduce_sum", b.convert(x, "float32"), axes=tuple(range(self.x.rank)))
        level = b.op("tanh", b.op("mul", total, lit(0.001)))
        args: list[Arg] = []
        for type_ in _types(self.find.block):
            if type_ == self.x and x not in args:
                args.append(x)
            else:
                args.append(self._fed(scope, level, type_))
        for result in b.inline(self.find.block, *args):
            x = self._taken(scope, x, result)
        return x

    def _fed(self, scope: Scope, level: int, type_: Type) -> Arg:
        """A value of a type: a parameter with the state's level in it; keys, truths and host arrays are as they are."""
        b = scope.b
        given = scope.weight(type_)
        if type_.on_host or DTYPES[type_.dtype][2] in "bkc":
            return given
        return b.op("add" if type_.integer else "mul", given, b.convert(level, type_.dtype))

    def _taken(self, scope: Scope, x: int, result: Arg) -> int:
        """The state with a result in it."""
        b = scope.b
        type_ = b.type(result)
        if DTYPES[type_.dtype][2] in "kc":
            return x
        value = scope.fit(result, "device")
        if type_ == self.x:
            return b.op("add", x, value)
        total = b.op("reduce_sum", b.convert(value, "float32"), axes=tuple(range(type_.rank)))
        return b.op("add", x, b.convert(b.op("tanh", total), self.x.dtype))


def _count(eqns: tuple[Equation, ...]) -> int:
    """Equations with those inside, `Fill` not counted."""
    inner = (block for eqn in eqns for _, block in children(eqn))
    return sum(not isinstance(eqn, Fill) for eqn in eqns) + sum(_count(block.eqns) for block in inner)


def _types(block: Block) -> list[Type]:
    return [var.type for var in block.params]


def _carries(type_: Type) -> bool:
    return type_.inexact and not type_.on_host and type_.rank >= 1 and DTYPES[type_.dtype][1] in (2, 4)


def _names(eqn: Equation) -> tuple[str, ...]:
    return (eqn.name,) if isinstance(eqn, Name) else names_of(getattr(eqn, "policy", None))


def _unlike(name: str, taken: set[str]) -> str:
    return name if name not in taken else _unlike(name + "_", taken)
