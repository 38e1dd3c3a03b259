"""`repro.py`: what it says of an outcome, which pieces of a message it looks for, and that nothing breaks out of it.

The real compiler runs it in ``tests/libtpu``; here its judging is fed with outcomes.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reducer.ir.build import Builder
from reducer.ir.codec import decode
from reducer.ir.equations import Program
from reducer.ir.types import Type
from reducer.lowering.script import Recorded, fragments_of, module_script, repro_script
from reducer.oracle.environment import FIXED

SEED = Path(__file__).parents[1] / "seed"
MESSAGE = (
    "INTERNAL: during context [post-optimization]: %bitcast.42 = f32[1,1,8]{2,1,0:T(8,128)S(5)} bitcast(%call.19), "
    'metadata={op_name="x"}: Bitcast cannot have different memory spaces of output (5) and operand (0) '
    "(f32[1,1,8]{2,1,0:T(8,128)S(5)})\n(f32[1,8]{1,0:T(8,128)})\n\nSuspected Python Code Location:"
)
INVARIANT = "Bitcast cannot have different memory spaces of output (5) and operand (0) ([S(5)]) ([])"
BITCAST = Recorded(
    "rejected", "INTERNAL", "post-optimization", fragments_of(INVARIANT, MESSAGE), libtpu="0.0.52", sha256="aa"
)
LOST = Recorded("compiled", libtpu="0.0.36", sha256="bb", host_temp=4096)
CRASH = Recorded("crashed", "SIGABRT", fragments=("host_offload_utils.cc:225]", "Check failed:"), sha256="cc")
HANGS = Recorded("timed-out", sha256="dd")
CARRIES = Recorded("compiled", sha256="99", carried=("f32[6,8]",))
STAYS = Recorded("compiled", sha256="ee", lost=("f32[4,3,8]", "f32[2,8]"))


def program() -> Program:
    return decode((SEED / "trip_count_one.json").read_bytes())


def script(*others: Recorded, **keywords: Any) -> str:
    return repro_script(program(), BITCAST, topology="v5e:2x2", others=others, **keywords)


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the script's `main` on what its children are said to have reported; gives the exit code and the output."""
    path = tmp_path / "repro.py"
    path.write_text(script(LOST, CRASH, HANGS, STAYS, CARRIES))
    spec = importlib.util.spec_from_file_location("repro", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(steps: dict[str, Any], probe: str = "compiled", asked_for: str = "") -> int:
        monkeypatch.setitem(module.ENVIRONMENT, "TPU_LIBRARY_PATH", asked_for)
        common = {"path": "/lib/libtpu.so", "sha256": "ff", "libtpu": "", "log": "the log", "host_temp": None}
        monkeypatch.setattr(module, "run", lambda *extra: {"outcome": probe} if extra else {**common, **steps})
        return int(module.main())

    return run


REJECTED = {"outcome": "rejected", "message": MESSAGE}
COMPILED = {"outcome": "compiled", "host_temp": 49152}
ABORT = "F1130 13:07:47.1 3663 host_offload_utils.cc:225] Check failed: a == b"
CRASHED = {"outcome": "crashed", "status": "SIGABRT", "message": ABORT}


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (REJECTED, 0),
        ({**REJECTED, "sha256": "aa", "libtpu": "0.0.52"}, 0),
        ({**REJECTED, "message": MESSAGE.replace("post-optimization", "pre-optimization")}, 2),
        ({**REJECTED, "message": MESSAGE.replace("INTERNAL", "UNIMPLEMENTED")}, 2),
        ({**REJECTED, "message": MESSAGE.replace("operand (0)", "operand (1)")}, 2),
        ({**REJECTED, "message": MESSAGE.replace("cannot have different", "cannot\n  have different")}, 0),
        ({**REJECTED, "message": ""}, 2),
        (COMPILED, 1),
        (CRASHED, 2),
        ({"outcome": "timed-out"}, 2),
        ({**COMPILED, "sha256": "bb", "host_temp": 4096}, 0),
        ({**COMPILED, "sha256": "bb"}, 1),
        ({**REJECTED, "sha256": "bb"}, 2),
        ({**CRASHED, "sha256": "cc"}, 0),
        ({**CRASHED, "sha256": "cc", "status": "SIGSEGV"}, 2),
        ({**CRASHED, "sha256": "cc", "message": "other.cc:1] Check failed"}, 2),
        ({"outcome": "timed-out", "sha256": "dd"}, 0),
        ({**COMPILED, "sha256": "ee", "places": {"f32[4,3,8]": "device", "f32[2,8]": "device"}}, 0),
        ({**COMPILED, "sha256": "ee", "places": {"f32[4,3,8]": "device", "f32[2,8]": "host"}}, 1),
        ({**COMPILED, "sha256": "ee", "places": {"f32[4,3,8]": "device", "f32[2,8]": ""}}, 1),
        ({**REJECTED, "sha256": "ee"}, 2),
        ({**COMPILED, "sha256": "99", "loops": {"f32[6,8]": True}}, 0),
        ({**COMPILED, "sha256": "99", "loops": {"f32[6,8]": False}}, 1),
        ({**COMPILED, "sha256": "99"}, 1),
        ({**REJECTED, "libtpu": "0.0.36"}, 2),
        ({}, 3),
    ],
)
def test_exit_codes(judge: Any, steps: dict[str, Any], code: int) -> None:
    assert judge(steps) == code


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("%a = f32[4,3,8]{2,1,0:T(8,128)} copy(%b)", "device"),
        ("%a = f32[4,3,8]{2,1,0:T(8,128)} copy(f32[4,3,8]{2,1,0:T(8,128)S(5)} %b)", "host"),
        ("%a = f32[4,3,8] copy(f32[12,8]{1,0:T(8,128)S(5)} %b)", "host"),
        ("%a = f32[4,3,8] copy(bf16[4,3,8]{2,1,0:S(5)} %b)", "device"),
        ("%a = f32[4,3,9]{2,1,0:S(5)} copy(bf32[4,3,8] %b)", ""),
    ],
)
def test_where_a_shape_lies(tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "repro.py"
    path.write_text(script(STAYS))
    namespace: dict[str, Any] = {"__name__": "repro"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert namespace["memory_of"]("f32[4,3,8]", text) == place


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%w = (s32[], f32[6,8]{1,0:T(8,128)S(5)}, f32[6,8]{1,0:T(8,128)S(1)}) while(%t), body=%b", True),
        ("%w = (s32[], f32[6,8]{1,0:T(8,128)S(5)}) while(%t), body=%b", False),
        ("%w = (s32[], f32[16,8]{1,0}, f32[6,8,1]{2,1,0}) while(%t)\n%v = (f32[6,8]{1,0}, s32[]) tuple(%w)", False),
    ],
)
def test_what_a_loop_carries(tmp_path: Path, text: str, found: bool) -> None:
    path = tmp_path / "repro.py"
    path.write_text(script(STAYS))
    namespace: dict[str, Any] = {"__name__": "repro"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert namespace["carried"]("f32[6,8]", text) is found


def test_a_libtpu_that_does_not_compile_anything_is_not_judged(judge: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge({**REJECTED, "message": "UNKNOWN: dialect"}, probe="rejected") == 3
    assert "x + 1" in capsys.readouterr().out


def test_it_says_what_was_loaded_expected_and_seen(judge: Any, capsys: pytest.CaptureFixture[str]) -> None:
    judge({**REJECTED, "sha256": "aa"})
    out = capsys.readouterr().out
    assert "0.0.52, /lib/libtpu.so (TPU_LIBRARY_PATH is not set)\n" in out
    assert "expected: rejected INTERNAL (recorded for this libtpu)" in out
    assert "happened: rejected\n          INTERNAL: during context" in out
    assert out.endswith("AS RECORDED\n")
    judge(CRASHED)
    out = capsys.readouterr().out
    assert "of unknown release" in out
    assert "on libtpu 0.0.52; nothing is recorded for this one" in out
    assert "happened: crashed SIGABRT\n          F1130" in out


def test_another_library_than_asked_for_is_not_judged(
    judge: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = tmp_path / "libtpu.so"
    assert judge(REJECTED, asked_for=str(wish)) == 3
    assert capsys.readouterr().out == f"CANNOT JUDGE: TPU_LIBRARY_PATH={wish}: there is no such file\n"
    wish.touch()
    assert judge(REJECTED, asked_for=str(wish)) == 3
    out = capsys.readouterr().out
    assert "/lib/libtpu.so (TPU_LIBRARY_PATH: another one)\n" in out
    assert out.endswith(f"CANNOT JUDGE: TPU_LIBRARY_PATH={wish} was not loaded\n")
    assert judge({**REJECTED, "path": str(wish)}, asked_for=str(wish)) == 0
    assert f"{wish} (TPU_LIBRARY_PATH)\n" in capsys.readouterr().out


# -- fragments ----------------------------------------------------------------------------------------------------


def test_fragments_are_the_literal_pieces_that_stand_in_the_message() -> None:
    assert BITCAST.fragments == ("Bitcast cannot have different memory spaces of output (5) and operand (0)",)


def test_fragments_skip_what_normalising_removed_in_between() -> None:
    message = (
        "Expected instruction to have %x.1 = f32[2] add(a): shape equal to f32[2]{0}, actual shape is f32[2]{0:S(5)}:"
    )
    invariant = "Expected instruction to have shape equal to [], actual shape is [S(5)]"
    assert fragments_of(invariant, message) == ("Expected instruction to have", "shape equal to", "actual shape is")


def test_fragments_of_nothing_telling() -> None:
    assert fragments_of("% # [] T", "anything") == ()
    assert fragments_of("", "") == ()
    assert fragments_of("not in the message at all", "something else") == ()


# -- the file -----------------------------------------------------------------------------------------------------


def test_it_has_the_program_as_emitted_and_imports_only_jax_and_the_standard_library() -> None:
    text = script()
    assert "    def block(c, w):\n        def layer(c, w):\n" in text
    modules = {
        name.name.split(".")[0] if isinstance(node, ast.Import) else str(node.module).split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert modules <= {"jax", "numpy", *sys.stdlib_module_names}
    assert max(map(len, text.splitlines())) <= 130


def test_it_asks_of_its_environment_what_a_worker_asks() -> None:
    (settings,) = (
        ast.literal_eval(node)
        for node in ast.walk(ast.parse(script()))
        if isinstance(node, ast.Dict)
        and any(isinstance(k, ast.Constant) and k.value == "JAX_PLATFORMS" for k in node.keys)
    )
    # The other variables are about what Python prints, which the script leaves as it is.
    assert settings == {name: value for name, value in FIXED.items() if not name.startswith("PYTHON")}


def test_without_jax_nothing_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(script())
    (tmp_path / "jax.py").write_text("raise ImportError('no jax here')")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "CANNOT JUDGE" in done.stdout


EVIL = ('"""', '"; raise SystemExit(1) #', "\\", 'ends with "', "\x00\ud800\u2028", 'a\\"""b', "{x}", "DESCRIPTION")


def skeleton(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "s"
    return ast.dump(tree)


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_strings_stay_strings(text: str) -> None:
    b = Builder()
    small = Program(b.block(b.op("sin", b.param(Type("float32")))))

    def of(value: str) -> tuple[str, str]:
        found = Recorded("rejected", value, value, (value,), value, value)
        common: Any = {"topology": value, "options": {value: value}, "signature": value, "description": value}
        return repro_script(small, found, **common), module_script(value, found, **common)

    for hostile, benign in zip(of(text), of("plain"), strict=True):
        hostile.encode()
        assert skeleton(hostile) == skeleton(benign)
        constants = [n.value for n in ast.walk(ast.parse(hostile)) if isinstance(n, ast.Constant)]
        assert constants.count(text) >= 6


def test_a_module_stands_in_its_script_unchanged() -> None:
    module = 'module @jit_f {\n  func.func @main() {\n    "x\\22y"\n  }\n}\n'
    tree = ast.parse(module_script(module, BITCAST, topology="v5e:2x2", partitions=4))
    values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert f"\n{module.strip()}\n" in values
