"""The JAX side of a worker: topology, lowering, compiling. Imported by worker processes only.

JAX is imported inside the functions: the environment that chooses libtpu must be complete before that.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from reducer.errors import ProgramError
from reducer.ledger.buffers import buffers_of
from reducer.ledger.owed import Owed, owed_stacks
from reducer.oracle.jobs import Job, ModuleJob, ProgramJob, ScriptJob, has_host_placement, module_partitions
from reducer.oracle.outcome import Compiled, Memory
from reducer.oracle.target import Options

PROGRAM_FILE = "<program>"


class JobError(Exception):
    """The job itself is wrong (it does not define what it should); the text is the whole message."""


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

        argument = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=_on_one_device(self.devices))
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
            return Owed(partitions=partitions)
        if self._traced is None:
            return Owed(partitions=partitions, reason="what was lowered has no trace")
        return owed_of(self._traced.jaxpr, partitions)

    def compile(self, *, want_buffers: bool = False) -> Compiled:
        """Run ``Lowered.compile``."""
        compiled = self._lowered.compile(compiler_options=self._options or None)
        return _compiled(compiled.memory_analysis(), compiled.as_text if want_buffers else None)


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

        return _compiled(loaded.get_compiled_memory_stats(), text if want_buffers else None)


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


def _compiled(stats: Any, text: Callable[[], str | None] | None) -> Compiled:
    """What is kept of a compiled program; where its buffers lie is read from `text`, if given."""
    memory = _memory(stats)
    if text is None:
        return Compiled(memory)
    try:
        hlo = text()
    except Exception as error:  # JAX raises several types where a libtpu lacks the function
        return Compiled(memory, unread=f"no text of the compiled program: {type(error).__name__}: {error}")
    return Compiled(memory, buffers_of(hlo)) if hlo else Compiled(memory, unread="no text of the compiled program")


def _memory(stats: Any) -> Memory:
    def read(name: str) -> int | None:
        value = getattr(stats, f"{name}_size_in_bytes", None)
        return None if value is None else int(value)

    return Memory(**{name: read(name) for name in Memory.__struct_fields__})


def _on_one_device(devices: Sequence[Any]) -> Any:
    from jax.sharding import SingleDeviceSharding

    return SingleDeviceSharding(devices[0])


def lower_program(job: ProgramJob, devices: Sequence[Any]) -> tuple[Any, Any]:
    """Execute the text in an empty namespace and call its ``lower(devices)``, remembering what its ``trace`` gives.

    Returns:
        The `jax.stages.Lowered`, and the `jax.stages.Traced` behind it or None.
    """
    # JAX and tracebacks read source lines through linecache; without this they would find none.
    linecache.cache[PROGRAM_FILE] = (len(job.source), None, job.source.splitlines(True), PROGRAM_FILE)
    namespace: dict[str, Any] = {"__name__": "program", "__file__": PROGRAM_FILE}
    exec(compile(job.source, PROGRAM_FILE, "exec"), namespace)
    lower = namespace.get("lower")
    if not callable(lower):
        raise JobError("the program's text defines no function lower(devices)")
    traced: list[Any] = []
    if callable(trace := namespace.get("trace")):

        def remembered(given: Sequence[Any]) -> Any:
            traced.append(trace(given))
            return traced[-1]

        namespace["trace"] = remembered
    lowered = _checked_lowered(lower(devices), "lower(devices)")
    return lowered, traced[-1] if traced else None


def _checked_lowered(lowered: Any, what: str) -> Any:
    if not (hasattr(lowered, "as_text") and hasattr(lowered, "compile")):
        raise JobError(f"{what} returned {_type_name(lowered)}, not a jax.stages.Lowered")
    return lowered


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def lower_script(job: ScriptJob, devices: Sequence[Any]) -> tuple[Any, Any]:
    """Import the script by its path, call its function, and lower what it returns; as `lower_program`."""
    import jax

    make = _load_function(job)
    made = make(devices) if _required_parameters(make) == 1 else make()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        raise JobError(f"{job.function}() returned {_type_name(made)}, not a pair (fn, abstract_args)")
    function, arguments = made
    if not isinstance(arguments, tuple | list):
        raise JobError(f"{job.function}() returned {_type_name(arguments)} as abstract_args, not a tuple")
    if not hasattr(function, "lower"):
        function = jax.jit(function)
    placed = _placed(arguments, devices)
    if not hasattr(function, "trace"):
        return _checked_lowered(function.lower(*placed), "fn.lower(...)"), None
    traced = function.trace(*placed)
    return _checked_lowered(traced.lower(), "fn.trace(...).lower()"), traced


def _load_function(job: ScriptJob) -> Callable[..., Any]:
    if not os.path.isfile(job.path):
        raise JobError(f"there is no file {job.path}")
    spec = importlib.util.spec_from_file_location("scanshrink_script", job.path)
    if spec is None or spec.loader is None:
        raise JobError(f"{job.path} is not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    # As `python script.py` would: neighbours can be imported, and dataclasses find their module.
    sys.path.insert(0, os.path.dirname(os.path.abspath(job.path)))
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, job.function, None)
    if not callable(function):
        found = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise JobError(f"{job.path} has no function {job.function!r}; it has {', '.join(found) or 'none'}")
    return function  # type: ignore[no-any-return]


def _required_parameters(function: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


def _placed(arguments: Sequence[Any], devices: Sequence[Any]) -> list[Any]:
    """Give each array argument without a TPU sharding one: one device, or its neighbours' mesh, replicated."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    leaves, tree = jax.tree.flatten(list(arguments))
    known = set(devices)

    def own(leaf: Any) -> Any:
        sharding = getattr(leaf, "sharding", None)
        return sharding if sharding is not None and set(sharding.device_set) <= known else None

    meshes = [s.mesh for s in map(own, leaves) if isinstance(s, NamedSharding)]
    default = NamedSharding(meshes[0], PartitionSpec()) if meshes else _on_one_device(devices)

    def place(leaf: Any) -> Any:
        if own(leaf) is not None:
            return leaf
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            return leaf  # a Python scalar or a static argument
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=default, weak_type=getattr(leaf, "weak_type", False)
        )

    placed: list[Any] = jax.tree.unflatten(tree, [place(leaf) for leaf in leaves])
    return placed


def describe_error(error: BaseException, *, files: Sequence[str]) -> str:
    """Return type and text of an error raised while lowering, and the last line of `files` it came through."""
    if isinstance(error, JobError):
        return str(error)
    text = "".join(traceback.format_exception_only(error)).strip()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in files]
    return f"{text}\n  at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else text
