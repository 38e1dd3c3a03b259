"""Signatures: one bug under other shapes, names and releases is one; another bug is another."""

import msgspec
import pytest

from reducer.oracle.families import FAMILIES
from reducer.oracle.invariant import normalise, opcode
from reducer.oracle.outcome import (
    MESSAGE_CAP,
    Compiled,
    Crashed,
    Incompatible,
    Invalid,
    Memory,
    Rejected,
    TimedOut,
    clip,
)
from reducer.oracle.signature import (
    SLUG_LIMIT,
    TEXT_LIMIT,
    is_finding,
    is_out_of_memory,
    is_user_error,
    signature,
)

POST = "INTERNAL: during context [post-optimization]: "
FRAMES = "\n\t\n\nSuspected Python Code Location:\n  x.py:28:26 [lower.<locals>.f.<locals>.loss]\n  x.py:13:11 [low]"
COMPILING = """\n\t\n
Error encountered while compiling %dynamic-update-slice-start = ((f32[4]{0:T(128)S(5)}, f32[1]{0:T(128)}, \
s32[]{:T(128)}), f32[4]{0:T(128)S(5)}, u32[]{:S(2)}) dynamic-update-slice-start(%get-tuple-element.87, %copy.6), \
metadata={op_name="jit(f)/jvp()/while/body" stack_frame_id=22}, backend_config={"flag_configs":[],"x":[{"y":"1"}]}.
"""


def bitcast(dims, dims2, *, dtype="f32", number=42, tile="T(8,128)", attributes="", spaces=("S(5)", ""), frames=FRAMES):
    out, operand = (int(space[2:-1]) if space else 0 for space in spaces)
    return Rejected(
        f"{POST}%bitcast.{number} = {dtype}[{dims}]{{3,2,1,0:{tile}{spaces[0]}}} bitcast(%closed_call.{number}), "
        f'{attributes}metadata={{op_name="jit(f)/jvp()/while: {{x}}/body" stack_frame_id={number}}}: Bitcast cannot '
        f"have different memory spaces of output ({out}) and operand ({operand}) "
        f"({dtype}[{dims}]{{3,2,1,0:{tile}{spaces[0]}}}) ({dtype}[{dims2}]{{2,1,0:{tile}{spaces[1]}}}){frames}"
    )


BARRIER = 'frontend_attributes={skip-simplify-while-loops_trip-count-one="true"}, '
TUPLES = (
    "(s32[]{:T(128)}, f32[2,16]{1,0:T(8,128)S(5)}, /*index=2*/f32[2,1]{1,0})",
    "(s32[]{:T(128)}, f32[2,16]{1,0:T(8,128)S(5)}, /*index=2*/f32[2,1]{1,0:S(5)})",
)


def sublane_check(file):
    return Crashed(
        "SIGABRT",
        f"{file}] Check failed: intermediate_calc.slice_size % intermediate_calc.update_detail.num_sublanes_per_chunk "
        "== 0 (1 vs. 0) Sublane slicing size not multiple of update chunk sublane size.",
    )


def reading(dtype, opcode="dynamic-slice-start"):
    shape = f"{dtype}[4,7]{{1,0:T(4,128)S(5)}}"
    return (
        f"\n\t\n\nError encountered while compiling %x.1 = (({shape}, s32[]{{:T(128)}}), {dtype}[1,7]{{1,0}}, "
        f"u32[]{{:S(2)}}) {opcode}(%get-tuple-element.43, %copy.2), dynamic_slice_sizes={{1,7}}.\n\t\n\n"
        f"Error encountered while compiling %while = ({shape}, s32[]) while(%tuple.9)"
    )


def copied(dims, layout, other, *, to_host):
    old, new = f"f32[{dims}]{{{layout}}}", f"f32[{dims}]{{{other}}}"
    old, new = (old, new.replace("}", "S(5)}")) if to_host else (old.replace("}", "S(5)}"), new)
    return Rejected(
        f"{POST}Expected instruction to have shape equal to ({old}, {old}, u32[]), actual shape is ({new}, {old}, "
        f'u32[]):\n%copy-start = ({new}, {old}, u32[]) copy-start(%while.19), metadata={{op_name="jit(f)"}}{FRAMES}'
    )


def overflowed(*frames):
    return Crashed("SIGSEGV", "*** SIGSEGV STACK OVERFLOW (see x)\nPC: " + "\n    ".join(f"@ {f}()" for f in frames))


def check_failed(file, text, signal="SIGABRT"):
    return Crashed(signal, f"{file}] Check failed: {text}")


# family -> signature text -> outcomes that are that bug
TABLE = {
    "bitcast-memory-space": {
        "INTERNAL [post-optimization] Bitcast cannot have different memory spaces of output (5) and operand (0) "
        "([S(5)]) ([])": [
            bitcast("1,1,8,128", "1,8,128"),
            bitcast("1,1", "1", number=7, tile="T(1,128)", attributes=BARRIER),
            bitcast("1,2,3,16,256", "2,3,16,256", dtype="bf16", tile="T(8,128)(2,1)", frames=""),
            bitcast("...", "...", dtype="f8e4m3fn", number=1),
            Rejected(
                "INTERNAL: during context [post-optimization]: %bitcast.42 = f32[1,1,8,128]{3,2,1,0:T(8,128)S(5)} "
                "bitcast(%closed_call.19), metadata={...}: Bitcast cannot have different memory spaces of output (5) "
                "and operand (0) (f32[...]{...S(5)}) (f32[...]{...})\n\nSuspected Python Code Location:\n  x.py:1"
            ),
        ],
        "INTERNAL [post-optimization] Bitcast cannot have different memory spaces of output (0) and operand (5) "
        "([]) ([S(5)])": [bitcast("1,8", "8", spaces=("", "S(5)"))],
    },
    "async-start-mismatch": {
        "INTERNAL [post-optimization] The async-start expects the shape of operand # to match the async shape at "
        "index {#} ([] vs [S(5)]).": [
            Rejected(
                f"{POST}The async-start expects the shape of operand 0 to match the async shape at index {{0}} "
                f"(f32[4,3,8,128]{{3,2,1,0:T(8,128)}} vs f32[4,3,8,128]{{3,2,1,0:T(8,128)S(5)}}).{FRAMES}"
            ),
            Rejected(
                f"{POST}The async-start expects the shape of operand 1 to match the async shape at index {{0}} "
                "(bf16[2,256]{1,0:T(2,128)(2,1)} vs bf16[2,256]{1,0:T(2,128)(2,1)S(5)})."
            ),
        ],
        "INTERNAL [post-optimization] % (opcode: async-start) expects the shape of operand # to match the async shape "
        "at index {#} ([] vs [S(5)]).": [
            Rejected(
                f"{POST}host-call.3.cloned.1.call-start.2 (opcode: async-start) expects the shape of operand 0 to "
                f"match the async shape at index {{0, 0}} (f32[3,2,128]{{2,1,0:T(2,128)}} vs "
                f"f32[3,2,128]{{2,1,0:T(2,128)S(5)}}).{FRAMES}"
            ),
            Rejected(
                f"{POST}call-start.17 (opcode: async-start) expects the shape of operand 2 to match the async shape "
                "at index {0, 2} (s8[3]{0} vs s8[3]{0:S(5)})."
            ),
        ],
    },
    "instruction-shape-mismatch": {
        "INTERNAL [post-optimization] Expected instruction to have shape equal to [], actual shape is [S(5)]": [
            Rejected(
                f"{POST}Expected instruction to have shape equal to f32[1]{{0:T(128)}}, actual shape is "
                "f32[1]{0:T(128)S(5)}:\n%get-tuple-element.226 = f32[1]{0:T(128)S(5)} get-tuple-element(%remat2.7), "
                f'index=0, metadata={{op_name="jit(f)/transpose(jvp(jvp()))/remat2" stack_frame_id=8}}{FRAMES}'
            ),
            Rejected(
                f"{POST}Expected instruction to have shape equal to {TUPLES[0]}, actual shape is {TUPLES[1]}:\n"
                f"%tuple.220 = {TUPLES[1]} tuple(%copy.94, %cosine_add_fusion, /*index=2*/%custom-call.22)"
            ),
        ],
        "INTERNAL [post-optimization] Expected instruction to have shape equal to [S(5)], actual shape is []": [
            Rejected(
                f"{POST}Expected instruction to have shape equal to {TUPLES[1]}, actual shape is {TUPLES[0]}:\n"
                f"ROOT %tuple.220 = {TUPLES[0]} tuple(%copy.94)"
            ),
        ],
    },
    "copy-layout-to-host": {
        "INTERNAL [post-optimization] Expected instruction to have shape equal to [], actual shape is [S(5)], of "
        "another layout": [
            copied("2,3,300", "2,1,0:T(4,128)", "2,0,1:T(2,128)", to_host=True),
            copied("8,8", "1,0:T(8,128)", "1,0:T(4,128)", to_host=True),
        ],
    },
    "copy-layout-from-host": {
        "INTERNAL [post-optimization] Expected instruction to have shape equal to [S(5)], actual shape is [], of "
        "another layout": [copied("1,8,8", "1,2,0:T(8,128)", "2,1,0:T(8,128)", to_host=False)],
    },
    "sublane-read-chunk": {
        "INTERNAL Sublane slicing size not multiple of chunk sublane size. (read)": [
            Rejected(f"INTERNAL: Sublane slicing size not multiple of chunk sublane size.{reading('s8')}"),
            Rejected(f"INTERNAL: Sublane slicing size not multiple of chunk sublane size.{reading('f8e4m3fn')}"),
        ],
    },
    "sublane-read-packing": {
        "INTERNAL Sublane slicing size must be multiple of element packing factor. (read)": [
            Rejected(f"INTERNAL: Sublane slicing size must be multiple of element packing factor.{reading('bf16')}"),
            Rejected(
                "INTERNAL: Sublane slicing size must be multiple of element packing factor."
                f"{reading('f16', 'dynamic-slice')}"
            ),
        ],
        "UNIMPLEMENTED Sublane slicing with mismatched tiling is only supported when the sublane slice size is a "
        "multiple of the element packing factor (read)": [
            Rejected(
                "UNIMPLEMENTED: Sublane slicing with mismatched tiling is only supported when the sublane slice size "
                "is a multiple of the element packing factor: %dynamic_slice.8 = bf16[1,7]{1,0:T(2,128)(2,1)} "
                f"dynamic-slice(%param_0.13, %param_1.13), dynamic_slice_sizes={{1,7}}{COMPILING}"
            )
        ],
    },
    "slice-read-tile": {
        "INTERNAL RET_CHECK failure (target.cc:2728) valid , shape: [], expected shape: [], context (read)": [
            Rejected(
                "INTERNAL: RET_CHECK failure (a/b/target.cc:2728) valid , shape: bf16[1,5,7]{2,0,1:T(4,128)}, expected "
                "shape: bf16[1,5,7]{2,0,1:T(2,128)}, context: %dynamic_slice.4 = bf16[1,5,7]{2,0,1:T(4,128)} "
                "dynamic-slice(%param_0.6, %param_1.5), dynamic_slice_sizes={1,5,7}"
            )
        ],
    },
    "slice-update-tile": {
        "INTERNAL RET_CHECK failure (target.cc:2644) status.ok() layout does not match any allowed tile kind, shape: "
        "[], expected shape: [], context": [
            Rejected(
                "INTERNAL: RET_CHECK failure (a/b/target.cc:2644) status.ok() layout does not match any allowed tile "
                "kind, shape: f32[1,5]{1,0:T(4,128)}, expected shape: f32[1,5]{1,0:T(1,128)}, context: "
                "%dynamic-update-slice-start = ((f32[4,5]{1,0:T(4,128)S(5)}, f32[1,5]{1,0:T(4,128)}, s32[]), "
                "f32[4,5]{1,0:T(4,128)S(5)}, u32[]) dynamic-update-slice-start(%get-tuple-element.111, %copy.2, %add)"
            )
        ],
    },
    "bitcast-majormost": {
        'INTERNAL Only handling bitcasts with majormost dimension of size #. This bitcast is "%"': [
            Rejected(
                "INTERNAL: Only handling bitcasts with majormost dimension of size 1. This bitcast is "
                '"%bitcast.3 = f32[2,8]{1,0:S(5)} bitcast(%a)"'
            ),
            Rejected(
                "INTERNAL: Only handling bitcasts with majormost dimension of size 1. This bitcast is "
                '"bitcast.11 = bf16[2,3,8]{2,1,0:S(5)} bitcast(b.1)"'
            ),
            Rejected(
                "INTERNAL: Only handling bitcasts with majormost dimension of size 1. This bitcast is "
                '"%bitcast.1 = f32[1,1,3,5,5]{4,0,3,2,1:T(1,128)} bitcast(%copy), metadata={op_name="jit(program)/'
                'while/body/jit(dynamic_update_index_in_dim)/broadcast_in_dim" stack_frame_id=23}"'
            ),
            Rejected(
                "INTERNAL: Only handling bitcasts with majormost dimension of size 1. This bitcast is "
                '"%bitcast.1 = f32[1,1,3,5,5]{4,0,3,2,1:T(1,128)} bitcast(%copy), metadata={op_name="-"}"'
            ),
        ],
    },
    "lane-slice": {
        "UNIMPLEMENTED Lane slice updating is not supported in async dynamic update slice yet.": [
            Rejected(
                f"UNIMPLEMENTED: Lane slice updating is not supported in async dynamic update slice yet.{COMPILING}"
            )
        ],
        "UNIMPLEMENTED Slicing lane dimension is only supported when the lane slice size is a multiple of LaneCount.": [
            Rejected(
                "UNIMPLEMENTED: Slicing lane dimension is only supported when the lane slice size is a multiple of "
                f"LaneCount.{COMPILING}"
            )
        ],
        "UNIMPLEMENTED Updating the lane dimension is only supported when the lane update size is a multiple of "
        "LaneCount": [
            Rejected(
                "UNIMPLEMENTED: Updating the lane dimension is only supported when the lane update size is a multiple "
                "of LaneCount: %dynamic_update_slice.8 = f32[4]{0:T(128)S(5)} dynamic-update-slice(%param_0, "
                f'%param_1), metadata={{op_name="jit(f)"}}, backend_config={{"a":[{{"b":"4294967292"}}]}}{COMPILING}'
            ),
            Rejected(
                "UNIMPLEMENTED: Updating the lane dimension is only supported when the lane update size is a multiple "
                "of LaneCount: %dus = f32[4,1]{0,1:T(1,128)S(5)} dynamic-update-slice(%p.3, %p)"
            ),
        ],
    },
    "sublane-slice": {
        "SIGABRT async_dynamic_index_emitter.cc:584 Check failed: intermediate_calc.slice_size % "
        "intermediate_calc.update_detail.num_sublanes_per_chunk == # (# vs. #) Sublane slicing size not multiple of "
        "update chunk sublane size.": [sublane_check("async_dynamic_index_emitter.cc:584")],
        "SIGABRT async_slice_util.cc:605 Check failed: intermediate_calc.slice_size % "
        "intermediate_calc.update_detail.num_sublanes_per_chunk == # (# vs. #) Sublane slicing size not multiple of "
        "update chunk sublane size.": [
            sublane_check("async_slice_util.cc:605"),
            sublane_check("platforms/xla/async_slice_util.cc:605"),
        ],
        "INTERNAL Sublane slicing size must be multiple of element packing factor.": [
            Rejected(f"INTERNAL: Sublane slicing size must be multiple of element packing factor.{COMPILING}")
        ],
        "UNIMPLEMENTED Sublane slicing with mismatched tiling is only supported when the sublane slice size is a "
        "multiple of the element packing factor": [
            Rejected(
                "UNIMPLEMENTED: Sublane slicing with mismatched tiling is only supported when the sublane slice size "
                "is a multiple of the element packing factor: %dynamic_update_slice.8 = bf16[4,7]{1,0:S(5)} "
                f"dynamic-update-slice(%param_0.13, %param_1.13){COMPILING}"
            )
        ],
        "UNIMPLEMENTED Updating the sublane dimension across multiple lane chunks is only supported when the sublane "
        "update size is a multiple of the chunk sublane size": [
            Rejected(
                "UNIMPLEMENTED: Updating the sublane dimension across multiple lane chunks is only supported when the "
                "sublane update size is a multiple of the chunk sublane size: %d.8 = bf16[4,256]{1,0} d(%p)"
            )
        ],
    },
    "host-index": {
        "SIGABRT host_offload_utils.cc:225 Check failed: instruction->operand_count() == # Expecting instruction % to "
        "have # operand, but it has #.": [
            check_failed(
                "host_offload_utils.cc:225",
                f"instruction->operand_count() == 1 Expecting instruction {name} to have 1 operand, but it has {n}.",
            )
            for name, n in (("lt.2", 2), ("select_n.0", 3), ("lt", 2), ("compare.12.clone.1", 2))
        ],
    },
    "dma-between-same-memory": {
        "FAILED_PRECONDITION Unimplemented DMA from hbm to hbm.": [
            Rejected("FAILED_PRECONDITION: Unimplemented DMA from hbm to hbm.")
        ],
    },
    "host-value-in-while-condition": {
        'INVALID_ARGUMENT Tensor which is moved to host is used by an invalid instruction ("%") during while '
        "condition body.": [
            Rejected(
                "INVALID_ARGUMENT: Tensor which is moved to host is used by an invalid instruction "
                '("%add.3 = f32[] add(%a, %b)") during while condition body.'
            )
        ],
    },
    "sigabrt-hlo-instruction-cc-check-failed-vs": {
        "SIGABRT hlo_instruction.cc:3847 Check failed: b >= # (# vs. #)": [
            check_failed("hlo_instruction.cc:3847", "b >= 0 (-1 vs. 0)"),
            check_failed("hlo_instruction.cc:3847", "b >= 0 (-12 vs. 0)"),
        ],
        "SIGABRT hlo_instruction.cc:3957 Check failed: b >= # (# vs. #)": [
            check_failed("hlo_instruction.cc:3957", "b >= 0 (-1 vs. 0)")
        ],
    },
    "sigabrt-shape-cc-check-failed-index-size": {
        "SIGABRT shape.cc:99 Check failed: index < size()": [check_failed("xla/shape.cc:99", "index < size()")]
    },
    "sigsegv": {
        "SIGSEGV in libtpu+0x1234abc < libtpu+0xff": [
            Crashed("SIGSEGV", "*** SIGSEGV, si_code=1\nPC: @ (unknown)\n    @ libtpu+0x1234abc\n    @ libtpu+0xff\n"),
        ],
        "SIGSEGV in libtpu+0x99": [Crashed("SIGSEGV", "*** SIGSEGV, si_code=1\nPC: @ libtpu+0x99\n    @ (unknown)")],
        "SIGSEGV": [Crashed("SIGSEGV", ""), Crashed("SIGSEGV", "I1130 some log line about nothing")],
    },
    # Where a stack runs out is chance, and so is the function that its report begins with.
    "sigsegv-stack-overflow-in-lower": {
        "SIGSEGV stack overflow in Lower()": [
            overflowed("Mul", "Export", *("Lower", "LowerBlock", "Run") * 8),
            overflowed("LowerBlock", "Run", *("Lower", "LowerBlock", "Run") * 8),
            overflowed(*("Lower", "LowerBlock", "Run") * 8, "Lower"),
            overflowed(*("LowerBlock", "Region", "Export", "Lower", "LowerBlock", "Run", "Lower") * 5),
        ],
    },
    "sigsegv-stack-overflow": {"SIGSEGV stack overflow": [overflowed("A", "B", "C")]},
    "sigill": {"SIGILL": [Crashed("SIGILL", "")]},
    "memory-cap": {
        "memory-cap": [Crashed("memory-cap", "used more than 64 MiB of memory"), Crashed("memory-cap", "more")]
    },
    "timed-out": {"timed-out": [TimedOut(60), TimedOut(5)]},
    "error-no-message": {"ERROR (no message)": [Rejected(""), Rejected("\n \n")]},
    "internal-no-message": {"INTERNAL (no message)": [Rejected("INTERNAL: ")]},
    "unimplemented-async-dynamic-slice-of-is-not-supported-yet": {
        "UNIMPLEMENTED Async dynamic slice of T is not supported yet": [
            Rejected("UNIMPLEMENTED: Async dynamic slice of s8 is not supported yet"),
            Rejected("UNIMPLEMENTED: Async dynamic slice of bf16 is not supported yet"),
        ]
    },
    "internal-ret-check-failure-shape-util-cc-layout-is-set-for": {
        "INTERNAL RET_CHECK failure (shape_util.cc:17) layout is set for % [S(5)]": [
            Rejected(
                "INTERNAL: RET_CHECK failure (third_party/xla/shape_util.cc:17) layout is set for %a.1 f32[2]{0:S(5)}"
            ),
            Rejected("INTERNAL: RET_CHECK failure (xla/shape_util.cc:17) layout is set for %while.33 pred[]{:S(5)}"),
        ]
    },
}
ROWS = [
    pytest.param(outcome, text, family, id=f"{family}-{n}-{i}")
    for family, texts in TABLE.items()
    for n, (text, outcomes) in enumerate(texts.items())
    for i, outcome in enumerate(outcomes)
]


@pytest.mark.parametrize(("outcome", "text", "family"), ROWS)
def test_table(outcome, text, family):
    found = signature(outcome)
    assert found is not None
    assert found.text == text
    assert found.family == family
    assert is_finding(outcome)


def test_no_two_families_or_texts_meet():
    families = [family for family, texts in TABLE.items() for _ in texts]
    texts = [text for texts in TABLE.values() for text in texts]
    assert len(texts) == len(set(texts)) == len(families)


def test_every_family_of_the_data_table_has_a_message():
    untested = {name for name, _ in FAMILIES} - set(TABLE)
    assert untested == {"async-output-mismatch", "result-on-host"}
    outcome = Rejected("INTERNAL: The async-start expects the shape of operand and output to match (f32[1] vs f32[2]).")
    found = signature(outcome)
    assert found is not None
    assert found.family == "async-output-mismatch"


@pytest.mark.parametrize("outcome", [Compiled(Memory()), Invalid("INTERNAL: x"), Incompatible("INTERNAL: x")])
def test_no_failure_no_signature(outcome):
    assert signature(outcome) is None
    assert not is_finding(outcome)


NOT_HOST = (
    "Tensor which is moved to host (starting from dynamic_update_slice.0) is returned from the entry computation but "
    "the layout for this output is not set to host memory."
)


@pytest.mark.parametrize(
    "outcome",
    [
        Rejected(f"INVALID_ARGUMENT: {NOT_HOST}"),
        Rejected(
            f"INVALID_ARGUMENT: E1200: CompileTimeHostOffloadOutputLocationMismatch:\n{NOT_HOST}\nSee https://x/error_1200"
        ),
        Crashed("SIGABRT", "", "lower"),
        TimedOut(3, "lower"),
    ],
)
def test_user_errors_are_no_findings(outcome):
    assert is_user_error(outcome)
    assert signature(outcome) is not None
    assert not is_finding(outcome)


def test_the_text_of_a_user_error_keeps_its_code():
    found = signature(Rejected(f"INVALID_ARGUMENT: E1200: Mismatch:\n{NOT_HOST}"))
    assert found is not None
    assert found.text == (
        "INVALID_ARGUMENT E1200: Mismatch: Tensor which is moved to host (starting from %) is returned from the entry "
        "computation but the layout for this output is not set to host memory."
    )


@pytest.mark.parametrize(
    "message",
    [
        "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
        "temporaries (74.58G) exceeds available HBM (15.75G). HLO module: jit__lambda.",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 37.29G of "
        "15.75G hbm. Exceeded hbm capacity by 21.54G.\n\nTotal hbm usage >= 37.54G:",
        "INTERNAL: Ran out of memory in memory space vmem.",
    ],
)
def test_out_of_memory_is_no_finding(message):
    assert is_out_of_memory(Rejected(message))
    assert not is_finding(Rejected(message))
    assert not is_out_of_memory(Crashed("SIGABRT", message))


def test_a_crash_while_lowering_is_another_signature():
    texts = {signature(Crashed("SIGABRT", "", phase)).text for phase in ("lower", "compile")}
    assert texts == {"SIGABRT", "SIGABRT [lowering]"}


HOSTILE = {
    "long word": "x" * 1_000_000,
    "brackets": "(" * 1_000_000,
    "closing": ")}]" * 300_000,
    "instructions": "%a = " * 200_000,
    "shapes": "INTERNAL: " + "f32[1,2]{1,0:S(5)}, " * 50_000,
    "tuple": "INTERNAL: (" + "f32[1,2]{1,0:S(5)}, " * 50_000 + "f32[])",
    "quotes": '"' * 999_999,
    "attributes": "metadata={" * 100_000,
    "values": 'a="' * 300_000,
    "quoted attributes": '"metadata={"' * 80_000,
    "blank": "\n \t" * 300_000,
    "dotted": "a.b" * 300_000,
    "numbered": "a.1" * 300_000,
    "slashes": "/a" * 500_000,
    "digits": "1" * 1_000_000,
    "commas": "1," * 500_000,
    "codes": "E1200 " * 200_000,
    "percent": "%" * 1_000_000,
    "starting": "starting from " * 80_000,
    "instruction": "instruction " * 90_000,
    "nul": "\0" * 100_000,
    "surrogates": "\ud800" * 1000,
    "private": "\ue000\ue101\uf8ff" * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_messages(name):
    message = HOSTILE[name]
    for outcome in (Rejected(message), Crashed("SIGABRT", message), Crashed("SIGABRT", f"a.cc:1] {message}")):
        found = signature(outcome)
        assert found is not None
        assert "\n" not in found.text
        assert len(found.text) <= TEXT_LIMIT
        assert 0 < len(found.slug) <= SLUG_LIMIT
        assert set(found.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert found.family


def test_non_ascii_text_is_kept():
    found = signature(Rejected("INTERNAL: größe 3 ≠ größe 4 für %été.1"))
    assert found is not None
    assert found.invariant == "größe # ≠ größe # für %"
    assert found.slug == "internal-gr-gr"


def test_a_clipped_message_has_its_signature():
    whole = f"INTERNAL: Something is wrong with f32[2]{{0}}.\n\n{'details ' * 50_000}"
    assert signature(Rejected(clip(whole))) == signature(Rejected(whole))
    assert len(clip(whole)) <= MESSAGE_CAP
    assert clip("short") == "short"


def test_a_longer_tail_does_not_change_a_text_that_is_cut():
    head = "INTERNAL: " + "word " * 100
    assert signature(Rejected(head + "a")) == signature(Rejected(head + "b c d"))


def test_signatures_are_values():
    found = signature(bitcast("1,8", "8"))
    assert found is not None
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
    assert len({found, signature(bitcast("2,9", "9"))}) == 1
    assert str(found) == found.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a (f32[2], f32[3]) b (f32[2], f32[3])", "a ([]) b ([])"),
        ("a (f32[2], f32[3]{0:S(5)}) only", "a ([], [S(5)]) only"),
        ("nested ((f32[2], s32[]), pred[]{:S(5)})", "nested ([], [S(5)])"),
        ("a (f32[2]) b", "a ([]) b"),
        ("space (5) of operand (0)", "space (5) of operand (0)"),
        ("error_1200 and E1200", "error_1200 and E1200"),
        ("index {0, 1, 2} of 3, 4", "index {#} of #"),
        ("0x7fff12 -3.5e+10 7", "# # #"),
        ("f32, bf16 and float8_e4m3fn, int8", "T, T and T, T"),
        ("xla::Foo::bar2", "xla::Foo::bar2"),
        ("a (f32[2]{0} vs f32[2]{0:S(5)})", "a ([] vs [S(5)])"),
        ("a (f32[2]{0} vs f32[2])", "a ([] vs [])"),
        ("a (f32[2]{0} vs f32[3]{0:S(5)})", "a ([] vs [S(5)]), of other dimensions"),
        ("a (f32[2]{0} vs bf16[3]{0})", "a ([] vs []), of another dtype"),
        ("a (f32[2,3]{0,1} vs f32[2,3]{1,0})", "a ([] vs []), of another layout"),
        ("a (f32[2]{0:T(128)} vs f32[2]{0:T(256)S(5)})", "a ([] vs [S(5)]), of another layout"),
        ("a (f32[2]{0} vs f32[3]{0}) in f32[4]{0}", "a ([] vs []) in []"),
        ('is "%a.1 = f32[2]{0} add(%b), metadata={op_name="jit(f)/{x"}, sharding={replicated}" now', 'is "%" now'),
        ('is "%c = f32[2]{0} custom-call(%a), custom_call_target="X", api_version=API" now', 'is "%" now'),
        ('is "f32[2]" and "a=1"', 'is "%" and "%"'),
        ('is "open', 'is "open'),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("said: %a.1 = f32[2]{0:S(5)} dynamic-slice(%b), x={1}", "dynamic-slice"),
        ("ROOT %a = ((f32[2], s32[]), u32[]) copy-start(%b)\n%c = f32[] add(%d)", "copy-start"),
        ("%a = pred[] add", ""),
        ("%a = something(%b)", ""),
        ("%a = (f32[2]", ""),
        ("no instruction", ""),
    ],
)
def test_opcode(text, expected):
    assert opcode(text) == expected


def test_sizes_in_parentheses_are_numbers_and_memory_spaces_are_not():
    def said(a: int, b: int) -> Rejected:
        return Rejected(
            f"{POST}Bitcast cannot have different shape sizes of output ({a}) and operand ({b}) (f32[{a}]) (f32[{b}])"
        )

    assert signature(said(512, 2048)) == signature(said(1536, 6144))
    assert "output (#) and operand (#)" in signature(said(512, 2048)).text
    assert "output (5) and operand (0)" in signature(bitcast("1,8,128", "8,128")).text
