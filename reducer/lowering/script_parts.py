"""The fixed parts of a `repro.py` before its program: `HEAD`, imports, constants, `RUN`; `MODULE` for one of a module.

Behind the program stands `script_judge.JUDGE`.
"""

from __future__ import annotations

from typing import Final

HEAD: Final = '''\
"""DESCRIPTION

Needs JAX and libtpu; needs no TPU, since libtpu compiles ahead of time for a topology it is only told about.

    python repro.py                                     the libtpu installed beside JAX
    TPU_LIBRARY_PATH=/path/libtpu.so python repro.py    another one
    python repro.py --tpu                               the TPU of this machine; this path has not been tested

Exit code: 0 as recorded for the libtpu it loaded, 1 it compiles, 2 it fails in another way, 3 cannot be judged here.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ON_TPU = "--tpu" in sys.argv[1:] or (os.path.exists("/dev/accel0") and "--no-tpu" not in sys.argv[1:])


def cannot_judge(kind, error, trace):
    """An error of this script, such as a missing JAX, says nothing about the compiler."""
    traceback.print_exception(kind, error, trace)
    print("CANNOT JUDGE: see the error above", flush=True)
    os._exit(3)


if __name__ == "__main__":
    sys.excepthook = cannot_judge
    if not ON_TPU:
        for name, value in {
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "TPU_SKIP_MDS_QUERY": "1",
            "TPU_WORKER_HOSTNAMES": "localhost",
            "TPU_WORKER_ID": "0",
            "TPU_ACCELERATOR_TYPE": "v5litepod-4",
            "TPU_LOG_DIR": "disabled",
            "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        }.items():
            os.environ.setdefault(name, value)
#: As it is now: JAX writes the path of the libtpu it finds into TPU_LIBRARY_PATH.
ENVIRONMENT = dict(os.environ)
'''

RUN: Final = """\

# ---- the program ------------------------------------------------------------------------------------------------
"""

MODULE: Final = '''\


class Lowered:
    """The module, compiled as jax.jit would; JAX has no public function for that, so private ones of 0.10 to 0.12."""

    def __init__(self, devices):
        self.devices = list(devices)[: PARTITIONS * REPLICAS]

    def compile(self, compiler_options=None):
        from jax._src import compiler
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jax._src.lib.mlir import ir

        client = self.devices[0].client
        options = compiler.get_compile_options(
            num_replicas=REPLICAS,
            num_partitions=PARTITIONS,
            device_assignment=np.array(self.devices).reshape(REPLICAS, PARTITIONS),
            env_options_overrides=compiler_options,
            backend=client,
        )
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = "sdy." in MODULE
        with mlir.make_ir_context():
            module = ir.Module.parse(MODULE)
            devices = xla_client.DeviceList(tuple(self.devices))
            return compiler.backend_compile_and_load(client, module, devices, options, [])


def lower(devices):
    """The module for these devices."""
    return Lowered(devices)
'''
