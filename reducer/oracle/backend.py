"""The JAX side of a worker: topology, lowering, compiling. Imported by worker processes only.

JAX is imported inside the functions: the environment that chooses libtpu must be complete before that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reducer.errors import ProgramError
from reducer.ledger.buffers import buffers_of, carried_of
from reducer.ledger.owed import Owed, owed_stacks
from reducer.oracle.jobs import Job, ModuleJob, ScriptJob, has_host_placement, module_partitions, returns_host
from reducer.oracle.outcome import Compiled, Memory
from reducer.oracle.sources import JobError, lower_program, lower_script, on_one_device
from reducer.oracle.target import Options


class Backend:
    """One libtpu's topology, and what can be done with it."""

    def __init__(self, topology: str, options: Options) -> None:
        from jax.experimental import topologies

        self._options: dict[str, Any] = dict(options)
        self.devices: Sequence[Any] = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices

    def probe(self, *, with_options: bool) -> None:
        """Compile ``x + 1``: what fails on this is no finding but an unfit libtpu or option."""
        import jax
        import jax.numpy as jnp

        argument = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=on_one_device(self.devices))
        lowered = jax.jit(lambda x: x + 1).lower(argument)
        lowered.compile(compiler_options=self._options if with_options else None)

    def lower(self, job: Job) -> Lowering:
        """Lower `job`. Whatever the program raises comes out as it is."""
        if isinstance(job, ModuleJob):
            return ModuleLowering(job, self.devices, self._options)
        found = lower_script(job, self.devices) if isinstance(job, ScriptJob) else lower_program(job, self.devices)
        return JaxLowering(*found, self._options)


class Lowering:
    """A lowered job: the module's text (without locations), and how to compile it."""

    text: str

    @property
    def key(self) -> str:
        """The sha256 of the text, in hex."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def owed(self) -> Owed:
        """What the program owes to host memory, or why that is not known."""
        raise NotImplementedError

    def compile(self, *, want_buffers: bool = False) -> Compiled:
        """Compile; raises what the compiler raises. `want_buffers`: also say where the buffers lie."""
        raise NotImplementedError


class JaxLowering(Lowering):
    """Lowered through ``jax.jit``, and compiled the way a user would."""

    def __init__(self, lowered: Any, traced: Any, options: dict[str, Any]) -> None:
        self._lowered = lowered
        self._traced = traced
        self._options = options
        self.text = lowered.as_text()

    def owed(self) -> Owed:
        """Read it from the trace, which is at the placement tier."""
        partitions, _ = module_partitions(self.text)
        if not has_host_placement(self.text):
            return Owed(partitions=partitions, returns_host=False)
        if self._traced is None:
            return Owed(partitions=partitions, reason="what was lowered has no trace")
        owed = owed_of(self._traced.jaxpr, partitions)
        return msgspec.structs.replace(owed, returns_host=self._returns_host())

    def _returns_host(self) -> bool:
        """Whether a result is a host value for the program, or declared to lie there."""
        from reducer.lowering.capture import versions

        return returns_host(self.text) or any(map(versions.on_host, self._traced.jaxpr.out_avals))

    def compile(self, *, want_buffers: bool = False) -> Compiled:
        """Run ``Lowered.compile``."""
        compiled = self._lowered.compile(compiler_options=self._options or None)
        return _compiled(compiled.memory_analysis, compiled.as_text if want_buffers else None)


class ModuleLowering(Lowering):
    """A StableHLO module that was given, parsed."""

    def __init__(self, job: ModuleJob, devices: Sequence[Any], options: dict[str, Any]) -> None:
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir

        needed = job.partitions * job.replicas
        if needed > len(devices):
            raise JobError(
                f"the module wants {job.partitions} partitions x {job.replicas} replicas, "
                f"but the topology has {len(devices)} devices"
            )
        self._counts = (job.replicas, job.partitions)
        self._devices = list(devices)[:needed]
        self._options = options
        with mlir.make_ir_context():
            try:
                self._module = ir.Module.parse(job.module)
            except ir.MLIRError as error:
                raise JobError(f"the module does not parse: {error}") from error
            if "sym_name" not in self._module.operation.attributes:
                self._module.operation.attributes["sym_name"] = ir.StringAttr.get("module")  # JAX logs it
            self.text = str(self._module)

    def owed(self) -> Owed:
        """A module does not say which of its values leave a loop as a stack."""
        partitions = self._counts[1]
        if not has_host_placement(self.text):
            return Owed(partitions=partitions)
        return Owed(partitions=partitions, reason="a module's text does not say which values it offloads")

    def compile(self, *, want_buffers: bool = False) -> Compiled:
        """Hand the module to the topology's client with the options ``jax.jit`` would use."""
        import numpy as np
        from jax._src import compiler
        from jax._src.lib import xla_client

        replicas, partitions = self._counts
        client = self._devices[0].client
        options = compiler.get_compile_options(
            num_replicas=replicas,
            num_partitions=partitions,
            device_assignment=np.array(self._devices).reshape(replicas, partitions),
            env_options_overrides=self._options or None,
            backend=client,
        )
        build = options.executable_build_options
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = "sdy." in self.text
        devices = xla_client.DeviceList(tuple(self._devices))
        loaded = compiler.backend_compile_and_load(client, self._module, devices, options, [])

        def text() -> str:
            return str(loaded.hlo_modules()[0].to_string())

        return _compiled(loaded.get_compiled_memory_stats, text if want_buffers else None)


def owed_of(jaxpr: Any, partitions: int) -> Owed:
    """What a traced function owes to host memory. A trace that the IR cannot express is a reason, not an error."""
    from reducer.lowering.capture.entry import from_jaxpr

    try:
        program = from_jaxpr(jaxpr, [None] * len(jaxpr.in_avals), rules="inline", only_read=True).program
        return Owed(owed_stacks(program), partitions)
    except ProgramError as error:
        return Owed(partitions=partitions, reason=str(error))
    except Exception as error:
        # Derivative rules and expansions are the program's own code, which runs once more here.
        return Owed(partitions=partitions, reason=f"its trace cannot be read: {type(error).__name__}: {error}")


def _compiled(stats: Callable[[], Any], text: Callable[[], str | None] | None) -> Compiled:
    """What is kept of a compiled program; where its buffers lie is read from `text`, if given.

    It did compile, whatever an old libtpu cannot say about it.
    """
    try:
        memory = _memory(stats())
    except Exception:  # JAX raises several types where a libtpu lacks the function; null means that it is not known
        memory = Memory()
    if text is None:
        return Compiled(memory)
    try:
        hlo = text()
    except Exception as error:  # JAX raises several types where a libtpu lacks the function
        return Compiled(memory, unread=f"no text of the compiled program: {type(error).__name__}: {error}")
    if not hlo:
        return Compiled(memory, unread="no text of the compiled program")
    return Compiled(memory, buffers_of(hlo), carried=carried_of(hlo))


def _memory(stats: Any) -> Memory:
    def read(name: str) -> int | None:
        value = getattr(stats, f"{name}_size_in_bytes", None)
        return None if value is None else int(value)

    return Memory(**{name: read(name) for name in Memory.__struct_fields__})
