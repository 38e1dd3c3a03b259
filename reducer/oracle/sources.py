"""From a job's Python (a program's text, a user's script) to what ``jax.jit`` lowers it to. Worker processes only.

JAX is imported inside the functions: the environment that chooses libtpu must be complete before that.
"""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from reducer.oracle.jobs import ProgramJob, ScriptJob

PROGRAM_FILE = "<program>"


class JobError(Exception):
    """The job itself is wrong (it does not define what it should); the text is the whole message."""


def on_one_device(devices: Sequence[Any]) -> Any:
    """The sharding of a value that lies on the first device."""
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

    function, arguments = call_script(job, devices)
    if not hasattr(function, "lower"):
        function = jax.jit(function)
    placed = _placed(arguments, devices)
    if not hasattr(function, "trace"):
        return _checked_lowered(function.lower(*placed), "fn.lower(...)"), None
    traced = function.trace(*placed)
    return _checked_lowered(traced.lower(), "fn.trace(...).lower()"), traced


def call_script(job: ScriptJob, devices: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Import the script by its path and call its function: what it returns, the pair of a function and its arguments.

    Raises:
        JobError: it returns something else.
        Exception: whatever the script raises.
    """
    make = _load_function(job)
    made = make(devices) if _required_parameters(make) == 1 else make()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        raise JobError(f"{job.function}() returned {_type_name(made)}, not a pair (fn, abstract_args)")
    function, arguments = made
    if not isinstance(arguments, tuple | list):
        raise JobError(f"{job.function}() returned {_type_name(arguments)} as abstract_args, not a tuple")
    return function, arguments


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
        # What it imports is no more its own than what it lacks.
        functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
        found = [name for name, value in functions.items() if value.__module__ == module.__name__]
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
    default = NamedSharding(meshes[0], PartitionSpec()) if meshes else on_one_device(devices)

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
