"""The process that converts HLO text to StableHLO, started by `reducer.oracle.hlo`: XLA's parser may abort."""

from __future__ import annotations

import importlib.metadata
import re

import msgspec

from reducer.oracle.hlo import Converted

#: Attributes of operations that a newer compiler wrote and this parser refuses; beyond so many it is another language.
_MOST = 8
_UNKNOWN = re.compile(r'unexpected attribute "(\w{1,64})"')


def main(argument: bytes) -> bytes:
    """Answer the text of one HLO module."""
    return msgspec.json.encode(_convert(argument.decode("utf-8", "replace")))


def _convert(text: str) -> Converted:
    from jax.extend.mlir import ir
    from jax.interpreters.mlir import make_ir_context

    version = importlib.metadata.version("jaxlib")
    try:
        from jaxlib._hlo import hlo_module_from_text
        from jaxlib._jax import mlir
    except ImportError as error:
        return Converted(error=f"jaxlib {version} has no conversion from HLO text ({error})")
    if not hasattr(mlir, "hlo_to_stablehlo"):
        return Converted(error=f"jaxlib {version} has no conversion from HLO text (no hlo_to_stablehlo)")
    dropped: list[str] = []
    while True:
        try:
            module = hlo_module_from_text(text)
            break
        except Exception as error:  # its own type, by version
            unknown = _UNKNOWN.search(str(error))
            if unknown is None or len(dropped) == _MOST or unknown[1] in dropped:
                return Converted(error=f"jaxlib {version} cannot read this HLO text: {_line(error)}")
            dropped.append(unknown[1])
            text = re.sub(rf", {unknown[1]}=\w+", "", text)
    try:
        with make_ir_context():
            stablehlo = mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
            return Converted(module=str(ir.Module.parse(stablehlo)), dropped=tuple(dropped))
    except Exception as error:
        return Converted(error=f"jaxlib {version} cannot convert this HLO to StableHLO: {_line(error)}")


def _line(error: Exception) -> str:
    """The first thing the parser says is wrong; it quotes whole lines of the text after that."""
    said = re.search(r"was parsing \d+:\d+: error: .*", str(error))
    return " ".join((said[0] if said else str(error)).split())[:300]
