"""The XLA:TPU compiler rejects this program (found on libtpu 0.0.42.1, v5e:2x2).

Signature: INTERNAL [post-optimization] Expected instruction to have shape equal to [], actual shape is [S(5)]

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

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import SingleDeviceSharding

TOPOLOGY = "v5e:2x2"
OPTIONS = {}
TIMEOUT = 600  # seconds
# What happened where it was tried. The first is expected of any other libtpu.
RECORDED = [
    {
        "libtpu": "0.0.42.1",
        "sha256": "ff7fdcc8ea756da03d407ea01ff5690cfd7cf067b87f06b13006e8e4206506b4",
        "outcome": "rejected",
        "status": "INTERNAL",
        "phase": "post-optimization",
        "fragments": ["Expected instruction to have shape equal to", "actual shape is"],
    },
    {
        "libtpu": "0.0.50.1",
        "sha256": "e0a1eca41601969ba976898cac06fdab3cf81ec1faa828d674984dee579deac2",
        "outcome": "rejected",
        "status": "INTERNAL",
        "phase": "post-optimization",
        "fragments": ["Expected instruction to have shape equal to", "actual shape is"],
    },
    {
        "libtpu": "0.0.52",
        "sha256": "f86de4d04a058e6b5101f73e0824b95f27e2cec996d2b9191d9cffda75c03077",
        "outcome": "rejected",
        "status": "INTERNAL",
        "phase": "post-optimization",
        "fragments": ["Expected instruction to have shape equal to", "actual shape is"],
    },
]


# ---- the program ------------------------------------------------------------------------------------------------

policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["h"],
    offload_src="device",
    offload_dst="pinned_host",
)


def loss(x):
    def block(x):
        def step(c, _):
            return checkpoint_name(c, "h"), None

        with set_xla_metadata(**{"skip-simplify-while-loops_trip-count-one": "true"}):
            c, _ = lax.scan(step, x, None, length=1)
        return jnp.sin(c)

    y = jax.checkpoint(block, policy=policy)(x)
    return y


fn = jax.grad(loss, argnums=0)


def lower(devices):
    """Lower `fn` for these devices; nothing is computed."""
    device = SingleDeviceSharding(devices[0])
    x = jax.ShapeDtypeStruct((), jnp.float32, sharding=device)
    return jax.jit(fn).lower(x)


BESIDE = []


# ---- compile it in a process of its own, and judge -----------------------------------------------------------------


def loaded_libtpu():
    """Path, sha256 and release of the libtpu this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/") and ".so" in line}
    wanted = os.path.realpath(os.environ.get("TPU_LIBRARY_PATH", ""))
    found = [path for path in sorted(paths) if path == wanted or "libtpu" in os.path.basename(path)]
    if not found:
        return {"path": "", "sha256": "", "libtpu": ""}
    digest = hashlib.sha256()
    with open(found[0], "rb") as library:
        while block := library.read(1 << 22):
            digest.update(block)
    spec = importlib.util.find_spec("libtpu")
    installed = os.path.join(os.path.dirname(spec.origin), "libtpu.so") if spec and spec.origin else ""
    same = os.path.realpath(installed) == os.path.realpath(found[0])
    version = importlib.metadata.version("libtpu") if same else ""
    return {"path": found[0], "sha256": digest.hexdigest(), "libtpu": version}


def memory_of(shape, text):
    """Where a compiled program's buffers of a shape lie: "device", "host" (also in another shape of as many
    elements), or "" if there are none.
    """
    dtype, _, dims = shape.rstrip("]").partition("[")
    size = math.prod(map(int, dims.split(",")))
    found = ""
    for other, layout in re.findall(rf"\b{dtype}\[([0-9,]+)\](?:\{{([^{{}}]*)\}})?", text):
        if "S(5)" in layout and math.prod(map(int, other.split(","))) == size:
            return "host"
        if other == dims:
            found = "device"
    return found


def carried(shape, text):
    """Whether a loop of a compiled program carries an array of a shape in device memory."""
    states = re.findall(r"= \((.*?)\) while\(", text)
    layouts = (layout for state in states for layout in re.findall(re.escape(shape) + r"\{([^{}]*)\}", state))
    return any("S(5)" not in layout for layout in layouts)


def child(out, probe, number):
    """Compile, and write down each step: this process may not live to see the next one."""

    def say(**record):
        with open(out, "a") as file:
            file.write(json.dumps(record) + "\n")

    from jax.experimental import topologies

    if ON_TPU:
        devices = jax.devices("tpu")
    else:
        devices = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGY).devices
    say(**loaded_libtpu(), device=devices[0].device_kind)
    if probe:
        place = jax.sharding.SingleDeviceSharding(devices[0])
        lowered = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8, 128), "float32", sharding=place))
    else:
        lowered = (BESIDE[number - 1]() if number else lower)(devices)
    say(lowered=True)
    began = time.perf_counter()
    try:
        compiled = lowered.compile(compiler_options=OPTIONS or None)
    except Exception as error:
        say(outcome="rejected", message=str(error))
        return
    seconds = time.perf_counter() - began
    stats = getattr(compiled, "memory_analysis", getattr(compiled, "get_compiled_memory_stats", lambda: None))()
    host_temp = getattr(stats, "host_temp_size_in_bytes", None)
    temp = getattr(stats, "temp_size_in_bytes", None)
    known = [one for record in RECORDED for one in (record, record.get("beside", {}))]
    text = compiled.as_text() if any(one.get("lost") or one.get("carried") for one in known) else ""
    places = {shape: memory_of(shape, text) for one in known for shape in one.get("lost", ())}
    loops = {shape: carried(shape, text) for one in known for shape in one.get("carried", ())}
    say(outcome="compiled", host_temp=host_temp, temp=temp, seconds=seconds, places=places, loops=loops)


def run(*extra):
    """What happened in a process of its own, and what that process logged."""
    with tempfile.TemporaryDirectory() as folder:
        out, log = os.path.join(folder, "steps"), os.path.join(folder, "log")
        arguments = [a for a in sys.argv[1:] if a in ("--tpu", "--no-tpu")]
        command = [sys.executable, os.path.abspath(__file__), *arguments, "--child", out, *extra]
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=ENVIRONMENT)
            try:
                code = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                process.kill()
                process.wait()
        steps = {}
        if os.path.exists(out):
            with open(out) as file:
                for line in file:
                    steps.update(json.loads(line))
        with open(log, errors="replace") as file:
            steps["log"] = file.read()
    if "outcome" not in steps and steps.get("lowered"):
        if code is None:
            steps["outcome"] = "timed-out"
        elif code < 0:
            steps.update(outcome="crashed", status=signal.Signals(-code).name, message=steps["log"])
    return steps


def is_as(record, steps):
    """Whether what happened is this recorded outcome."""
    if steps["outcome"] != record["outcome"]:
        return False
    if record["outcome"] == "compiled" and (record.get("lost") or record.get("carried")):
        alone = all(steps.get("places", {}).get(shape) == "device" for shape in record.get("lost", ()))
        return alone and all(steps.get("loops", {}).get(shape) for shape in record.get("carried", ()))
    if record["outcome"] == "compiled":
        return "host_temp" not in record or record["host_temp"] == steps["host_temp"]
    message = " ".join(steps.get("message", "").split())
    status = steps.get("status") or (re.match(r"([A-Z_]+): ", message) or ("", "ERROR"))[1]
    phase = record.get("phase", "")
    return (
        (record["outcome"] == "timed-out" or status == record.get("status", status))
        and (not phase or f"during context [{phase}]" in message)
        and all(fragment in message for fragment in record.get("fragments", ()))
    )


def matches(record, steps):
    """Whether what happened is this recorded outcome, also compared with other programs."""
    if not is_as(record, steps):
        return False
    if "slower_than" in record:
        print(f"          in {steps['seconds']:.1f} s, more than {record['slower_than']:.1f} s are slow")
        return steps["seconds"] > record["slower_than"]
    if "beside" in record:
        other = run("--beside", "1")
        print(f"beside:   {said(other) if 'outcome' in other else other['log'][-2000:]}")
        return "outcome" in other and is_as(record["beside"], other)
    if "costs" in record:
        offloaded, saved = (run("--beside", number).get("temp") for number in "12")
        print(f"scaled:   device temp {offloaded} bytes with the offload, {saved} without")
        return None not in (offloaded, saved) and offloaded > saved
    return True


def said(steps):
    """What happened, in a few lines."""
    lines = [line for line in steps.get("message", "").splitlines() if line.strip()]
    fatal = [line for line in lines if re.match(r"F\d{4} |\*\*\* SIG|Fatal", line)] or lines
    shown = fatal[-1:] if steps["outcome"] == "crashed" else lines[:1]
    head = f"{steps['outcome']} {steps.get('status', '')}".strip()
    if steps["outcome"] == "compiled":
        head += f", with {steps['host_temp']} bytes of temporary host memory"
        shown = [
            f"{shape} lies {f'in {place} memory' if place else 'nowhere'}"
            for shape, place in steps.get("places", {}).items()
        ]
        loops = {True: "a loop carries", False: "no loop carries"}
        shown += [f"{loops[found]} {shape} in device memory" for shape, found in steps.get("loops", {}).items()]
    return "\n          ".join([head, *(line[:600] for line in shown)])


def main():
    """Compile, compare, and return the exit code."""
    wish = ENVIRONMENT.get("TPU_LIBRARY_PATH")
    if wish and not os.path.isfile(wish):  # JAX would take the installed one
        print(f"CANNOT JUDGE: TPU_LIBRARY_PATH={wish}: there is no such file")
        return 3
    steps = run()
    # The file says more than the release it calls itself.
    known = [r for key in ("sha256", "libtpu") for r in RECORDED if steps.get(key) and r.get(key) == steps[key]]
    if "path" in steps:
        name = steps["libtpu"] or (known and known[0].get("libtpu")) or "of unknown release"
        there = bool(wish) and os.path.realpath(wish) == os.path.realpath(steps["path"])
        origin = "TPU_LIBRARY_PATH" + ("" if there else ": another one" if wish else " is not set")
        print(f"libtpu:   {name}, {steps['path']} ({origin})\n          sha256 {steps['sha256']}")
    versions = f"{jax.__version__}, jaxlib {importlib.metadata.version('jaxlib')}"
    print(f"jax:      {versions}, for {steps.get('device', TOPOLOGY)}")
    if wish and steps.get("path") and not there:
        print(f"CANNOT JUDGE: TPU_LIBRARY_PATH={wish} was not loaded")
        return 3
    if "outcome" not in steps:
        print(steps["log"][-4000:])
        what = "this JAX does not lower the program" if "path" in steps else "libtpu does not load"
        print(f"CANNOT JUDGE: {what}; see above")
        return 3
    record = known[0] if known else RECORDED[0]
    where = f"on libtpu {record.get('libtpu', '?')}; nothing is recorded for this one"
    place = "recorded for this libtpu" if known else where
    wanted = " ".join(record.get(key, "") for key in ("outcome", "status")).strip()
    lost = [f"{shape} lies in device memory alone" for shape in record.get("lost", ())]
    lost += [f"a loop carries {shape} in device memory" for shape in record.get("carried", ())]
    print(f"expected: {wanted} ({place})", *record.get("fragments", ()), *lost, sep="\n          ")
    for _ in range(record.get("runs", 1) - 1):
        if is_as(record, steps):
            break
        steps = {**steps, "message": "", **run()}  # it comes and goes
    print(f"happened: {said(steps)}")
    if matches(record, steps):
        print("AS RECORDED")
        return 0
    if steps["outcome"] == "compiled":
        print("COMPILES")
        return 1
    if run("--probe").get("outcome") != "compiled":
        print("CANNOT JUDGE: this libtpu and this jaxlib do not even compile x + 1")
        return 3
    print("FAILS IN ANOTHER WAY")
    return 2


if __name__ == "__main__":
    if "--child" in sys.argv:
        beside = int(sys.argv[sys.argv.index("--beside") + 1]) if "--beside" in sys.argv else 0
        child(sys.argv[sys.argv.index("--child") + 1], probe="--probe" in sys.argv, number=beside)
    else:
        sys.exit(main())
