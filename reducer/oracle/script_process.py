"""The process in which a user's script is run and traced. Started by `reducer.oracle.scripts`."""

from __future__ import annotations

import traceback

import msgspec

from reducer.errors import ProgramError
from reducer.oracle.scripts import Question, Reply


def main(argument: bytes) -> bytes:
    """Answer one `Question`."""
    return msgspec.json.encode(_reply(msgspec.json.decode(argument, type=Question)))


def _reply(question: Question) -> Reply:
    import jax
    from jax.experimental import topologies

    from reducer.ir.codec import encode
    from reducer.lowering.capture import watch_grad
    from reducer.oracle.jobs import ScriptJob
    from reducer.oracle.sources import JobError, call_script

    jax.config.update("jax_enable_compilation_cache", False)
    jax.config.update("jax_traceback_filtering", "off")
    devices = topologies.get_topology_desc(platform="tpu", topology_name=question.topology).devices
    try:
        function, arguments = call_script(ScriptJob(path=question.path, function=question.function), devices)
        watched = watch_grad(function, *arguments)
    except JobError as error:
        return Reply(error=str(error))
    except ProgramError as error:
        return Reply(reason=error.message)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return _theirs(error, question.path)
    return Reply(
        program=encode(watched.program) if watched.program is not None else b"",
        placement=encode(watched.placement.program),
        exact=watched.exact,
        reason=watched.reason,
    )


def _theirs(error: BaseException, path: str) -> Reply:
    """The traceback from the first line of the user's script on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    where = f" at {path}:{trace.tb_lineno}" if trace is not None else ""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    return Reply(error=f"{text}{where}", traceback="".join(lines))
