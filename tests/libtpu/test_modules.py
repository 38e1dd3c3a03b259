"""The exact minimum of modules on the real compiler: a failure is cut out of the model around it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from reducer.neighbourhood.modules import module_neighbours
from reducer.oracle.modules import ModuleOracle, module_job
from reducer.oracle.outcome import Compiled, Invalid, Rejected, Result
from reducer.oracle.verdict import failure
from reducer.shrink.certificate import certify
from reducer.shrink.modules import shrink_module
from reducer.stablehlo import Block, Module, Operation, Value, read_module
from reducer.stablehlo.edit import last_number, with_main
from reducer.stablehlo.order import identity, size
from tests.modules.conftest import brief

if TYPE_CHECKING:
    from reducer.oracle.pool import Pool

pytestmark = pytest.mark.slow

#: The module of a loop whose steps are unrolled with a remainder, which is a loop that runs once.
REMAINDER = Path(__file__).parent / "remainder_loop.mlir"


def embedded(module: Module, layers: int) -> Module:
    """The module with a tower of layers beside it: one more argument, one more result, two operations a layer."""
    main = module.main
    number = last_number(module) + 1
    values = [Value(number + i, "tensor<8x128xf32>") for i in range(2 * layers + 1)]
    tower = []
    for i in range(0, 2 * layers, 2):
        tower.append(Operation("stablehlo.tanh", (values[i],), (values[i + 1],)))
        tower.append(Operation("stablehlo.add", (values[i], values[i + 1]), (values[i + 2],)))
    *before, last = main.body.operations
    last = msgspec.structs.replace(last, operands=(*last.operands, values[-1]))
    return with_main(
        module,
        msgspec.structs.replace(
            main,
            body=Block((*main.body.params, values[0]), (*before, *tower, last)),
            param_attributes=(*main.param_attributes, ()),
            result_attributes=(*main.result_attributes, ()),
        ),
    )


def test_a_module_compiles_as_the_text_it_was_read_from(pool: Pool) -> None:
    plain = b"""func.func @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {
      %0 = stablehlo.tanh %x : tensor<8x128xf32>
      return %0 : tensor<8x128xf32>
    }"""
    oracle = ModuleOracle(pool)
    module = read_module(plain)
    assert isinstance(oracle.submit(module).result().answer, Compiled)
    many = msgspec.structs.replace(module, attributes=(("mhlo.num_partitions", "9 : i32"),))
    assert module_job(many).partitions == 9
    assert isinstance(oracle.submit(many).result().answer, Invalid)


MINIMUM = """\
main(%0:1x3xf32[mhlo.memory_kind])
  %1:1x3xf32 = constant dense<0.000000e+00>
  %2:i32 = constant dense<0>
  %11:i32 %12:1x3xf32 = while %2 %1 mhlo.frontend_attributes
  (%3:i32 %4:1x3xf32)
    %5:i32 = constant dense<1>
    %6:i1 = compare %3 %5
    return %6
  (%7:i32 %8:1x3xf32)
    %9:i32 = constant dense<1>
    %10:i32 = add %7 %9
    return %10 %0
  %13:3xf32 = reshape %12
  %14:1xf32 = constant dense<0.000000e+00>
  %15:4xf32 = concatenate %13 %14
  %16:f32 = constant dense<0.000000e+00>
  %17:4xf32 %18:f32 = optimization_barrier %15 %16
  %19:1xf32 = slice %17 array<i64: 4>
  return %19
"""


def test_a_failure_in_a_large_module_is_cut_out(pool: Pool) -> None:
    case = read_module(REMAINDER.read_bytes())
    start = embedded(case, 100)
    assert size(start) == size(case) + 200
    oracle = ModuleOracle(pool)
    signature = failure(oracle.submit(start).result())
    assert signature is not None

    def wanted(result: Result) -> bool:
        return failure(result) == signature

    shrunk = shrink_module(start, oracle, wanted)
    assert shrunk.minimal
    assert brief(shrunk.program) == MINIMUM
    assert shrunk.compiles <= 150
    around = module_neighbours(shrunk.program)
    certificate = certify(shrunk.program, around, oracle, wanted, key=identity, label=failure)
    assert certificate.minimal
    assert isinstance(shrunk.result.answer, Rejected)
