"""``script.py:function`` -> programs: the user's code runs in a process of its own, and is traced there."""

from __future__ import annotations

import msgspec

from reducer.aside import run_aside
from reducer.errors import InputError
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.oracle.environment import worker_environment
from reducer.oracle.jobs import ScriptJob
from reducer.oracle.target import Target


class ScriptError(InputError):
    """The user's script raised; `traceback` is theirs, without frames of ours."""

    def __init__(self, message: str, *, traceback: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.traceback = traceback


class ScriptPrograms(msgspec.Struct, frozen=True):
    """What the IR can hold of a function.

    `program` is the differentiated function at the program tier, or None; `exact` says that it is all of the function,
    else it is a part (the loss of a training step). `placement` is the whole function with derivatives taken, or None.
    `reason` says what is missing and why, with the equation: empty if nothing is.
    """

    program: Program | None = None
    placement: Program | None = None
    exact: bool = False
    reason: str = ""


class Question(msgspec.Struct, frozen=True):
    """What the process is told."""

    path: str
    function: str
    topology: str


class Reply(msgspec.Struct, frozen=True):
    """What it answers: programs as JSON, or what is wrong with the script."""

    program: bytes = b""
    placement: bytes = b""
    exact: bool = False
    reason: str = ""
    error: str = ""
    traceback: str = ""


def capture_script(job: ScriptJob, target: Target) -> ScriptPrograms:
    """Run a script's function as `check` does, and write down what it returns as programs of both tiers.

    `target` says which devices the function gets, if it wants some; nothing is compiled.

    Raises:
        ScriptError: the script raised.
        InputError: it has no such function, returns something else, or ends the process.
    """
    question = Question(job.path, job.function, target.topology)
    done = run_aside(
        "reducer.oracle.script_process",
        msgspec.json.encode(question),
        environment=worker_environment(target.path),
    )
    name = f"{job.path}:{job.function}"
    if not done.answer:
        raise InputError(f"{name}: its process {done.ended()}", hint="the script ended it, or libtpu did")
    reply = msgspec.json.decode(done.answer, type=Reply)
    if reply.traceback:
        raise ScriptError(f"{name}: {reply.error}", traceback=reply.traceback, hint="an error of the script's own")
    if reply.error:
        raise InputError(f"{name}: {reply.error}", hint="a function that returns (fn, abstract arguments)")
    program, placement = (decode(data) if data else None for data in (reply.program, reply.placement))
    return ScriptPrograms(program, placement, reply.exact, reply.reason)
