"""Jobs: identities, what a module's text says, and the line protocol they travel by."""

import msgspec
import pytest

from reducer.oracle import protocol
from reducer.oracle.jobs import (
    ModuleJob,
    ProgramJob,
    ScriptJob,
    compiled_as,
    has_host_placement,
    job_key,
    module_partitions,
    returns_host,
)
from reducer.oracle.outcome import Compiled, Invalid, Memory, Rejected

MODULE = (
    "module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {\n"
    "  func.func public @main(%arg0: tensor<4xf32> {mhlo.num_partitions = 9 : i32}) { return }\n}"
)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (MODULE, (4, 2)),
        ("module { func.func @main() { return } }", (1, 1)),
        ("func.func @main() { return }", (1, 1)),
        ("#loc = loc(unknown)\nmodule attributes {mhlo.num_partitions=8:i32} {\n}", (8, 1)),
        ("module attributes {mhlo.num_partitions = 0 : i32} {}", (1, 1)),
        ("", (1, 1)),
        ("module " + "x" * 10**6 + "mhlo.num_partitions = 4 : i32", (1, 1)),
    ],
)
def test_module_partitions(text, counts):
    assert module_partitions(text) == counts


def test_module_job_reads_what_it_is_not_told():
    assert ModuleJob.of(MODULE) == ModuleJob(MODULE.encode(), 4, 2)
    assert ModuleJob.of(MODULE.encode(), partitions=1) == ModuleJob(MODULE.encode(), 1, 2)
    assert ModuleJob.of(b"ML\xefR\x00bytecode\xff").partitions == 1


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ('mhlo.memory_kind = "pinned_host"', True),
        ('_xla_buffer_placement = "unpinned_host"', True),
        ('mhlo.memory_kind = "device"', False),
        ("func.func @pinned_host()", False),
    ],
)
def test_has_host_placement(text, host):
    assert has_host_placement(text) is host


def test_keys():
    keys = [
        job_key(ProgramJob("x", "a")),
        job_key(ProgramJob("x", "b")),
        job_key(ModuleJob(b"a")),
        job_key(ModuleJob(b"a", 2)),
        job_key(ModuleJob(b"a", 1, 2)),
    ]
    assert len(set(keys)) == len(keys)
    assert job_key(ProgramJob("x")) == job_key(ScriptJob("x.py", "f")) == ""
    assert job_key(ProgramJob("x", "a", True)) == job_key(ProgramJob("y", "a", False))
    assert compiled_as(ProgramJob("x"), "k") == "k"
    assert compiled_as(ModuleJob(b"a", 2, 3), "k") == "k:2:3"


MESSAGES_DOWN = [
    protocol.Lower(
        1, ProgramJob("line\nbreak é\u2028\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "k")
    ),
    protocol.Lower(2, ModuleJob(b"ML\xefR\n\x00\xff"), want_module=True),
    protocol.Lower(3, ScriptJob("/a b/c.py", "f", True)),
    protocol.Compile(3),
    protocol.Drop(3),
    protocol.Stop(),
]
MESSAGES_UP = [
    protocol.Stage("probe"),
    protocol.Ready(1, 7, "/x", "0.10.2", "0.10.2", (1, 2)),
    protocol.Unfit("load", "why\nnot"),
    protocol.Started(1),
    protocol.Lowered(1, "k", True, 0.5, "module {\n}"),
    protocol.Answered(1, Compiled(Memory()), 0.1),
    protocol.Answered(1, Rejected("a\nb"), 0.1),
    protocol.Answered(1, Invalid("a"), 0.1),
]


@pytest.mark.parametrize("message", MESSAGES_DOWN)
def test_protocol_down(message):
    line = protocol.encode(message)
    assert line.count(b"\n") == 1
    assert protocol.decode_to_worker(line) == message


@pytest.mark.parametrize("message", MESSAGES_UP)
def test_protocol_up(message):
    line = protocol.encode(message)
    assert line.count(b"\n") == 1
    assert protocol.decode_from_worker(line) == message


@pytest.mark.parametrize("line", [b"", b"hello", b"{}", b'{"type":"stop"}', b'{"type":"started","id":"x"}', b"\xff"])
def test_what_is_not_the_protocol(line):
    with pytest.raises(msgspec.MsgspecError):
        protocol.decode_from_worker(line)


MAIN = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32> {mhlo.memory_kind = "ARG"}) -> (tensor<8xf32> {jax.info = "a"}, R) {
    %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {k = "pinned_host"} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
"""


@pytest.mark.parametrize(
    ("argument", "kind", "expected"),
    [("device", "pinned_host", True), ("pinned_host", "device", False), ("device", "unpinned_host", True)],
)
def test_a_result_that_is_declared_to_lie_on_the_host(argument: str, kind: str, expected: bool) -> None:
    result = f'tensor<8xf32> {{jax.result_info = "b", mhlo.memory_kind = "{kind}"}}'
    assert returns_host(MAIN.replace("ARG", argument).replace("R)", f"{result})")) is expected


def test_a_module_without_an_entry_declares_nothing() -> None:
    assert not returns_host('func.func private @f() -> (tensor<8xf32> {mhlo.memory_kind = "pinned_host"}) {')
