"""Writes down modules that JAX cannot compile. Loaded by Python itself at start-up, in a user's own process.

It runs under whatever Python and JAX the user has, so it needs the standard library alone and loads little of it, and
it must change nothing: what it does beside the user's work may fail, and then costs a line on standard error, once.
It stays one file, however long: Python finds it by its name, in an environment that has nothing else of ours.

A module is written before it is compiled, because the compiler may take the process down, and deleted again if it
compiles. What a finished capture holds is said in `reducer.captures`, which reads them. Per process, a log in the
run's folder tells ``scanshrink capture`` what happened, one JSON object a line.
"""

from __future__ import annotations

import itertools
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType, ModuleType
    from typing import Any

_OUT = "SCANSHRINK_CAPTURE"
_RUN = "SCANSHRINK_CAPTURE_RUN"
_MATCH = "SCANSHRINK_CAPTURE_MATCH"
_ALL = "SCANSHRINK_CAPTURE_ALL"
#: What JAX's last step before the compiler was called over the years; it takes the module and the options.
_COMPILES = ("backend_compile_and_load", "backend_compile")
_LIMIT = 1 << 20
#: Variables that say how a module is compiled; what could be a secret or name a machine is left out.
_VARIABLES = ("JAX_", "XLA_", "TPU_", "LIBTPU_")
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH", "ADDRESS", "HOSTNAME", "COORDINATOR")
_FILES = ("capture.json", "module.mlirbc", "module.mlir", "portable.mlirbc", "jaxpr.txt")


def _log(event: str, **fields: Any) -> None:
    """Append to this process's log. The first line is written without json, which most processes never need."""
    try:
        line = f'{{"event": "{event}"}}'
        if fields:
            import json

            line = json.dumps({"event": event, **fields})
        path = os.path.join(os.environ[_RUN], f"{os.getpid()}.jsonl")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, (line + "\n").encode("utf-8", "backslashreplace"))
        finally:
            os.close(descriptor)
    except (OSError, KeyError):
        return  # the run is over, or the disk is full, which `_trouble` says


_said: list[str] = []


def _trouble(what: str, error: Exception) -> None:
    """Say once that something of ours did not work; the user's program goes on as without us."""
    described = f"{type(error).__name__}: {error}"
    if not _said:
        _said.append(what)
        print(f"scanshrink capture: cannot {what}: {described}", file=sys.stderr)
    _log("trouble", what=what, error=described)


class _Finder:
    """Changes a module of `_PATCHES` right after it is imported."""

    busy = False

    def find_spec(self, name: str, *_: object) -> Any:
        """As of `importlib.abc.MetaPathFinder`."""
        if name not in _PATCHES or self.busy:
            return None
        import importlib.util

        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        loader: Any = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module: ModuleType) -> None:
            execute(module)
            patch = _PATCHES.pop(module.__name__, None)
            if patch is not None:
                try:
                    patch(module)
                except Exception as error:
                    _trouble(f"hook {name}", error)

        loader.exec_module = exec_module
        return spec


def _patch_compiler(module: Any) -> None:
    """Come between JAX and the compiler."""
    import atexit
    import functools
    import inspect

    found = [name for name in _COMPILES if hasattr(module, name)]
    if not found:
        _log("unhooked", reason="its jax._src.compiler has none of " + ", ".join(_COMPILES))
        return
    for name in found:
        compile_module = getattr(module, name)
        around = _around(compile_module, inspect.signature(compile_module))
        setattr(module, name, functools.wraps(compile_module)(around))
    listen = getattr(getattr(module, "monitoring", None), "register_event_listener", None)
    if listen is not None:
        listen(_on_event)
    for name in ("traceback_util", "source_info_util"):  # keep this file out of tracebacks and source locations
        register = getattr(sys.modules.get("jax._src." + name), "register_exclusion", None)
        if register is not None:
            register(__file__)
    atexit.register(_note_lock)
    _log("hooked", executable=sys.executable)


def _note_lock() -> None:
    """What the process ended with, if that was libtpu's lock file: it is said before there is any module."""
    error: BaseException | None = getattr(sys, "last_value", None)  # of the traceback that Python has printed
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if "lockfile" in str(error):
            _log("locked")
            return
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _on_event(event: str, **_: object) -> None:
    """A module that comes out of the persistent cache never reaches the compiler."""
    if event == "/jax/compilation_cache/cache_hits":
        _log("cached")


def _patch_lowering(module: Any) -> None:
    """Remember which jaxpr a computation was lowered from.

    JAX's caches go by weak references to jaxprs, and a strong one in their values would keep both for ever. Only the
    latest are held: a function that is lowered and then compiled has often no other owner.
    """
    import collections
    import functools
    import weakref

    lower = getattr(module, "lower_sharding_computation", None)
    if lower is None:
        return
    latest: Any = collections.deque(maxlen=2)

    @functools.wraps(lower)
    def lower_sharding_computation(closed_jaxpr: Any, *args: Any, **kwargs: Any) -> Any:
        computation = lower(closed_jaxpr, *args, **kwargs)
        try:
            computation._scanshrink_jaxpr = weakref.ref(closed_jaxpr)
        except (TypeError, AttributeError):
            return computation  # this version has no place for it: no jaxpr, then
        latest.append(closed_jaxpr)
        return computation

    module.lower_sharding_computation = lower_sharding_computation


#: JAX's private modules that are changed when they are imported -> what changes them.
_PATCHES = {"jax._src.compiler": _patch_compiler, "jax._src.interpreters.pxla": _patch_lowering}


def _around(compile_module: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    def around(*args: Any, **kwargs: Any) -> Any:
        compiling = None
        try:
            compiling = _Compiling(signature.bind(*args, **kwargs).arguments)
        except Exception as error:
            _trouble("write a module before it is compiled", error)
        try:
            executable = compile_module(*args, **kwargs)
        except BaseException as error:
            _finish(compiling, "failed" if isinstance(error, Exception) else "interrupted", error)
            raise
        _finish(compiling, "compiled", None)
        return executable

    return around


def _finish(compiling: _Compiling | None, outcome: str, error: BaseException | None) -> None:
    if compiling is None:
        return
    try:
        compiling.finish(outcome, error)
    except Exception as trouble:
        compiling.drop()
        _trouble("write a capture", trouble)


_numbers = itertools.count(1)  # one step, so that two threads never get one number
_failures: set[str] = set()


class _Compiling:
    """One module on its way through the compiler."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        import re
        import time

        self.module = given["module"] if "module" in given else given["computation"]
        self.name = _name_of(self.module)
        self.matched = re.search(os.environ.get(_MATCH, ""), self.name) is not None
        self.folder = ""
        if self.matched:
            run = os.path.basename(os.environ[_RUN])
            self.folder = os.path.join(os.environ[_OUT], f".compiling-{run}-{os.getpid()}-{next(_numbers)}")
            os.mkdir(self.folder)
            try:
                self.record = _record(self.name, given)
                with open(self.path("module.mlirbc"), "wb") as file:
                    self.module.operation.write_bytecode(file=file)
                self.write_record()
            except BaseException:
                self.drop()
                raise
        self.started = time.perf_counter()

    def path(self, name: str) -> str:
        """A file of the capture."""
        return os.path.join(self.folder, name)

    def write_record(self) -> None:
        """Write `capture.json`."""
        import json

        with open(self.path("capture.json"), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(self.record, indent=1))

    def drop(self) -> None:
        """Delete what was written."""
        if self.folder:
            for name in _FILES:
                _quietly(os.unlink, self.path(name))
            _quietly(os.rmdir, self.folder)

    def finish(self, outcome: str, error: BaseException | None) -> None:
        """The compiler is done: keep the module, or delete it."""
        import time

        seconds = time.perf_counter() - self.started
        said: dict[str, Any] = {"name": self.name, "seconds": round(seconds, 6)}
        wanted = outcome == "failed" or (outcome == "compiled" and os.environ.get(_ALL) == "1")
        if not self.matched or not wanted:
            self.drop()
            _log(outcome, matched=self.matched, **said)
            return
        with open(self.path("module.mlirbc"), "rb") as file:
            bytecode = file.read()
        if outcome == "failed" and self._known(bytecode):
            self.drop()
            _log(outcome, again=True, **said)
            return
        self.record.update(outcome=outcome, seconds=seconds)
        if error is not None:
            self.record["error"] = {"type": type(error).__name__, "message": str(error)[:_LIMIT]}
        try:
            _write_text(bytecode, type(self.module), self.module.context, self.folder)
            self._write_jaxpr()
        except Exception as trouble:  # the bytecode is there
            _trouble("write a module's text and jaxpr", trouble)
        self.write_record()
        _log(outcome, folder=_publish(self.folder, self.name), **said)

    def _known(self, bytecode: bytes) -> bool:
        """Whether this failure was captured in this process before."""
        import hashlib

        key = hashlib.sha256(bytecode + repr(self.record["options"]).encode("utf-8", "replace")).hexdigest()
        if key in _failures:
            return True
        _failures.add(key)
        return False

    def _write_jaxpr(self) -> None:
        """The jaxpr that is being compiled, if a frame below this one still knows it."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            known = getattr(frame.f_locals.get("self"), "_scanshrink_jaxpr", None)
            if known is not None and known() is not None:
                with open(self.path("jaxpr.txt"), "w", encoding="utf-8") as file:
                    file.write(f"{known()}\n")
                return
            frame = frame.f_back


def _quietly(remove: Callable[[str], None], path: str) -> None:
    try:
        remove(path)
    except OSError:
        return


def _name_of(module: Any) -> str:
    try:
        return str(module.operation.attributes["sym_name"].value)
    except (KeyError, AttributeError):
        return "module"


def _write_text(bytecode: bytes, kind: Any, context: Any, folder: str) -> None:
    """The module's text, and its portable artifact where that can be had. Works on a copy: serializing changes it."""
    module = kind.parse(bytecode, context=context)
    with open(os.path.join(folder, "module.mlir"), "w", encoding="utf-8") as file:
        file.write(str(module))
    try:
        from jaxlib.mlir.dialects import stablehlo

        wanted = stablehlo.StablehloCompatibilityRequirement.WEEK_12
        version = stablehlo.get_version_from_compatibility_requirement(wanted)
        # Without a handler MLIR prints what it cannot serialize.
        handler = context.attach_diagnostic_handler(lambda _: True)
        try:
            artifact = stablehlo.serialize_portable_artifact(module, version, True)
        finally:
            handler.detach()
    except Exception:  # dialects without versions, or a jaxlib without the function: the text is enough
        return
    with open(os.path.join(folder, "portable.mlirbc"), "wb") as file:
        file.write(artifact)


def _publish(folder: str, name: str) -> str:
    """Give a finished capture its name; until then it is hidden."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)[:80] or "module"
    number = 0
    while True:
        to = os.path.join(os.environ[_OUT], f"{plain}-{os.getpid()}" + (f"-{number}" if number else ""))
        number += 1
        if os.path.lexists(to):
            continue
        try:
            os.rename(folder, to)
            return to
        except OSError:
            if not os.path.lexists(to):  # else another thread was quicker
                raise


def _record(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What `capture.json` holds of a module that is about to be compiled."""
    options = given["options"] if "options" in given else given["compile_options"]
    backend = given.get("backend")
    build = options.executable_build_options
    devices = list(given.get("executable_devices") or ())
    platform = str(getattr(backend, "platform", ""))
    return {
        "format": 1,
        "outcome": "compiling",
        "name": name,
        "partitions": max(int(build.num_partitions), 1),
        "replicas": max(int(build.num_replicas), 1),
        "platform": platform,
        "device_kind": str(devices[0].device_kind) if devices else "",
        "topology": _topology(backend, devices) if platform == "tpu" else "",
        "assignment": [int(device.id) for device in devices],
        "options": {str(k): _plain(v) for k, v in getattr(options, "env_option_overrides", None) or ()},
        "shardy": bool(getattr(build, "use_shardy_partitioner", False)),
        "propagate_to_parameters": _flags(build, "allow_spmd_sharding_propagation_to_parameters"),
        "propagate_to_results": _flags(build, "allow_spmd_sharding_propagation_to_output"),
        "error": {"type": "", "message": ""},
        "environment": _environment(backend),
        "pid": os.getpid(),
        "script": os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "",
    }


def _plain(value: Any) -> str | int | bool | float:
    return value if isinstance(value, (str, int, bool, float)) else str(value)


def _flags(build: Any, name: str) -> list[bool]:
    return [bool(flag) for flag in getattr(build, name, None) or ()]


#: What devices call themselves -> name of the topology, and of how many numbers it consists.
_KINDS = {
    "TPU v2": ("v2", 2),
    "TPU v3": ("v3", 2),
    "TPU v4": ("v4", 3),
    "TPU v5 lite": ("v5e", 2),
    "TPU v5e": ("v5e", 2),
    "TPU v5": ("v5p", 3),
    "TPU v5p": ("v5p", 3),
    "TPU v6 lite": ("v6e", 2),
    "TPU v6e": ("v6e", 2),
    "TPU7x": ("tpu7x", 3),
    "TPU 7x": ("tpu7x", 3),
}


def _topology(backend: Any, devices: Sequence[Any]) -> str:
    """What libtpu calls the devices: the box they all lie in. Empty for a kind that is not known here."""
    try:
        everything = list(backend.devices()) or devices
        name, rank = _KINDS[str(everything[0].device_kind)]
        spans = list(zip(*(device.coords for device in everything)))  # noqa: B905 (Python 3.9 has no strict)
        return name + ":" + "x".join(str(max(span) - min(span) + 1) for span in spans[:rank])
    except (KeyError, AttributeError, IndexError):
        return ""


_static: dict[str, str] = {}


def _environment(backend: Any) -> dict[str, Any]:
    if not _static:
        import importlib.metadata
        import platform

        for package in ("jax", "jaxlib", "libtpu"):
            try:
                _static[package] = str(importlib.metadata.version(package))
            except importlib.metadata.PackageNotFoundError:
                _static[package] = ""
        _static["python"] = platform.python_version()
    variables = {
        name: value[:_LIMIT]
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLES) and not any(word in name for word in _SECRETS)
    }
    found: dict[str, Any] = dict(_static)
    if getattr(backend, "platform", "") == "tpu":
        found["libtpu"] = _loaded_libtpu() or found["libtpu"]
    found["platform_version"] = str(getattr(backend, "platform_version", ""))[:2000]
    found["variables"] = variables
    return found


def _loaded_libtpu() -> str:
    """The path of the libtpu in this process, unless it is the installed package's."""
    if "loaded" not in _paths:
        import importlib.util

        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            paths = {line.split(None, 5)[-1].strip() for line in file if line.rstrip().endswith("/libtpu.so")}
        spec = importlib.util.find_spec("libtpu")
        installed = os.path.realpath(os.path.dirname(spec.origin)) if spec is not None and spec.origin else ""
        _paths["loaded"] = next((path for path in paths if os.path.dirname(path) != installed), "")
    return _paths["loaded"]


_paths: dict[str, str] = {}


def _chain() -> None:
    """Load the `sitecustomize` that Python would have loaded, if there is one."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _write_text_of(folder: str) -> None:
    """Add the text to a capture whose process died: run as a script by ``scanshrink capture``, afterwards."""
    from jaxlib.mlir import ir

    try:
        from jax.interpreters.mlir import make_ir_context

        context = make_ir_context()
    except ImportError:
        context = ir.Context()
    with open(os.path.join(folder, "module.mlirbc"), "rb") as file:
        _write_text(file.read(), ir.Module, context, folder)


if __name__ == "__main__":
    _write_text_of(sys.argv[1])
elif __name__ == "sitecustomize":
    if _OUT in os.environ and _RUN in os.environ:
        _log("loaded")
        sys.meta_path.insert(0, _Finder())
    _chain()
