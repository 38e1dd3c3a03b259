"""A worker without JAX: speaks the protocol, and misbehaves as the topology's name or the job's text tells it to.

Run as a program by `test_pool.py`; starts in a few hundredths of a second.
"""

import contextlib
import json
import os
import signal
import sys
import time

SET_UP = json.loads(sys.argv[-1])
INPUT = os.fdopen(SET_UP["read_fd"], "rb")
OUTPUT = SET_UP["write_fd"]


def say(kind, **fields):
    data = json.dumps({"type": kind, **fields}).encode() + b"\n"
    while data:
        data = data[os.write(OUTPUT, data) :]


def start(mode):
    for stage in ("import", "load", "topology", "probe", "options"):
        say("stage", name=stage)
        if mode == f"unfit-{stage}":
            say("unfit", stage=stage, message=f"cannot {stage}")
            sys.exit(0)
        if mode == f"die-{stage}":
            print("F1130 13:07:47.123456    3663 start.cc:7] Check failed: never", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        if mode == f"hang-{stage}":
            time.sleep(600)
        if mode == f"garbage-{stage}":
            os.write(OUTPUT, b"hello\n")
    if mode == "locked":
        say("unfit", stage="topology", message="The TPU is already in use by process; see /tmp/libtpu_lockfile")
        sys.exit(0)
    if mode.startswith("once:"):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(mode[5:], os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    library = "/other/libtpu.so" if mode == "wrong-library" else SET_UP["library"]
    say("ready", version=99 if mode == "wrong-version" else 1, pid=os.getpid(), library=library, jax="0", jaxlib="0")


def misbehave(what, argument):
    if what == "abort":
        print("noise before", file=sys.stderr)
        print("F1130 13:07:47.123456    3663 some_file.cc:12] Check failed: a == b (1 vs. 2) Bad.", file=sys.stderr)
        print("*** Check failure stack trace: ***\n    @     0x7f  (unknown)", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGABRT)
    if what == "kill":
        os.kill(os.getpid(), argument)
    if what in ("kill-once", "abort-once"):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(argument, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL if what == "kill-once" else signal.SIGABRT)
    if what == "exit":
        os._exit(argument)
    if what == "hang":
        time.sleep(600)
    if what == "garbage":
        os.write(OUTPUT, b"\xff not json\n")
        time.sleep(600)
    if what == "close":
        os.close(OUTPUT)
        time.sleep(600)
    if what == "print":
        with contextlib.suppress(OSError):
            for _ in range(argument):
                os.write(1, b"x" * 99 + b"\n")
    if what == "grow":
        kept = bytearray(argument)
        kept[::4096] = b"x" * len(kept[::4096])
        time.sleep(600)
    if what == "child":
        if os.fork() == 0:
            os.close(OUTPUT)
            time.sleep(600)
        os.kill(os.getpid(), signal.SIGABRT)


def serve(message):
    job = message["job"]
    number = message["id"]
    order = json.loads(job.get("source") or json.dumps({"path": job.get("path")}))
    if order.get("before") == "die-unread":
        with contextlib.suppress(FileExistsError):
            os.close(os.open(order["flag"], os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    say("started", id=number)
    if "lower" in order:
        misbehave(*order["lower"])
    if "invalid" in order:
        say("answered", id=number, outcome={"outcome": "invalid", "message": order["invalid"]}, seconds=0.01)
        return
    say(
        "lowered",
        id=order.get("wrong_id", number),
        module_key=order.get("module_key", "m"),
        host_placement=order.get("host", True),
        seconds=0.01,
        module="text" if message.get("want_module") else "",
    )
    if json.loads(INPUT.readline())["type"] == "drop":
        return
    if "compile" in order:
        misbehave(*order["compile"])
    outcome = {"outcome": "rejected", "message": f"INTERNAL: pid {order.get('say', 'x')}"}
    say("answered", id=number, outcome=order.get("outcome", outcome), seconds=0.02)
    if order.get("after") == "die":
        os.kill(os.getpid(), signal.SIGKILL)


start(SET_UP["topology"])
for line in INPUT:
    message = json.loads(line)
    if message["type"] == "stop":
        break
    serve(message)
