"""Values of a case: what is recorded of a target and of an outcome."""

from __future__ import annotations

import pytest

from reducer.corpus import CaseTarget, OutcomeRecord
from reducer.corpus.case import MESSAGE_CAP, without_paths
from reducer.oracle.outcome import Compiled, Crashed, Memory, Rejected, Skipped
from reducer.oracle.target import Target, release_order
from reducer.record import environment_of

TARGET = Target(libtpu="/home/me/build/libtpu.so", path="/home/me/build/libtpu.so", sha256="a" * 64)

MESSAGE = """INTERNAL: during context [post-optimization]: %bitcast.42 = f32[1,8]{1,0} bitcast(%call.19), \
metadata={op_name="jit(loss)/jvp()/while/body" source_file="/home/me/work/train.py" source_line=3}: Bitcast cannot
\t

Suspected Python Code Location:
  /home/me/work/train.py:41:11 [loss]
  <string>:1:83 [<module>]
"""


def test_paths_are_private() -> None:
    assert without_paths(MESSAGE) == (
        "INTERNAL: during context [post-optimization]: %bitcast.42 = f32[1,8]{1,0} bitcast(%call.19), "
        'metadata={op_name="jit(loss)/jvp()/while/body" source_file="train.py" source_line=3}: Bitcast cannot'
    )
    record = OutcomeRecord.of(TARGET, Rejected(MESSAGE), signature="s", family="f")
    assert record.libtpu == CaseTarget.of(TARGET).libtpu == "libtpu.so"
    assert "/home" not in record.message


@pytest.mark.parametrize(
    "text",
    [
        "third_party/xla/host_offload_utils.cc:225] Check failed: a / b == 0 (1 vs. 0)",
        "1/2 and a/b/c",
        "x /* y */ z",
        "",
    ],
)
def test_what_is_no_path_stays(text: str) -> None:
    assert without_paths(text) == text


def test_records_of_outcomes() -> None:
    memory = Memory(host_temp=4096)
    compiled = OutcomeRecord.of(TARGET, Compiled(memory))
    assert (compiled.outcome, compiled.memory, compiled.message) == ("compiled", memory, "")
    crashed = OutcomeRecord.of(TARGET, Crashed("SIGABRT", "x" * 100_000), jaxlib="0.10.2")
    assert (crashed.outcome, len(crashed.message), crashed.jaxlib) == ("crashed", MESSAGE_CAP, "0.10.2")
    with pytest.raises(AssertionError):
        OutcomeRecord.of(TARGET, Skipped("no host placement"))


def test_releases_in_order() -> None:
    names = ["libtpu.so", "0.0.52", "0.0.9", "0.0.42.1", "0.0.42", "0.0.100", "0.0.53.dev20261101"]
    ordered = ["0.0.9", "0.0.42", "0.0.42.1", "0.0.52", "0.0.53.dev20261101", "0.0.100", "libtpu.so"]
    assert sorted(names, key=release_order) == ordered


def test_an_environment_names_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/me/dumps --xla_dump_hlo_as_text")
    known = environment_of(TARGET)
    assert known["libtpu"] == f"libtpu.so (sha256 {TARGET.sha256})"
    assert known["XLA_FLAGS"] == "--xla_dump_to=dumps --xla_dump_hlo_as_text"
    assert "/home/" not in str(known)
