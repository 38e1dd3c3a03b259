"""The oracle: program x target -> outcome, by the real XLA:TPU compiler in isolated worker processes.

Public names are here; `reducer.oracle.base` and `reducer.oracle.fake` hold the seam that a reducer is written against.
Importing this imports neither JAX nor libtpu: only a worker process does.
"""

from __future__ import annotations

from reducer.oracle.base import Oracle
from reducer.oracle.cache import OutcomeCache
from reducer.oracle.confirm import Confirmation
from reducer.oracle.counters import PoolStats
from reducer.oracle.doctor import Diagnosis, Problem, diagnose
from reducer.oracle.jobs import Job, ModuleJob, ProgramJob, ScriptJob, has_host_placement, module_partitions
from reducer.oracle.outcome import (
    Answer,
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Memory,
    Outcome,
    Rejected,
    Result,
    Skipped,
    TimedOut,
    message_of,
    word,
)
from reducer.oracle.pool import Pool
from reducer.oracle.releases import cached_releases, fetch_release, list_releases
from reducer.oracle.signature import Signature, is_finding, is_out_of_memory, is_user_error, signature
from reducer.oracle.target import DEFAULT_TOPOLOGY, TOPOLOGIES, Target, parse_option, resolve_target
from reducer.oracle.verdict import KINDS, Kind, Verdict, failure, said_of, verdict, verdict_of

__all__ = [
    "DEFAULT_TOPOLOGY",
    "KINDS",
    "TOPOLOGIES",
    "Answer",
    "Compiled",
    "Confirmation",
    "Crashed",
    "Diagnosis",
    "Incompatible",
    "Invalid",
    "Job",
    "Kind",
    "Memory",
    "ModuleJob",
    "Oracle",
    "Outcome",
    "OutcomeCache",
    "Pool",
    "PoolStats",
    "Problem",
    "ProgramJob",
    "Rejected",
    "Result",
    "ScriptJob",
    "Signature",
    "Skipped",
    "Target",
    "TimedOut",
    "Verdict",
    "cached_releases",
    "diagnose",
    "failure",
    "fetch_release",
    "has_host_placement",
    "is_finding",
    "is_out_of_memory",
    "is_user_error",
    "list_releases",
    "message_of",
    "module_partitions",
    "parse_option",
    "resolve_target",
    "said_of",
    "signature",
    "verdict",
    "verdict_of",
    "word",
]
