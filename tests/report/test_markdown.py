"""The draft report: what it says, and that nothing in a case can break out of its place."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

from reducer.corpus import Case, Certificate, Equivalence, Explanation, Neighbour, OutcomeRecord, TierMinimum
from reducer.report.markdown import claim, markdown
from reducer.report.render import cell, code, equation_kinds, fence, line, plain, summary, visible

Make = Callable[..., Case]


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0].strip()


def test_a_report_has_what_maintainers_ask_for(make: Make) -> None:
    text = markdown(make())
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Program",
        "How to run it",
        "Expected",
        "Actual",
        "Compiler that was loaded",
        "Releases",
        "Environment",
        "How it was found",
    ]
    assert "Nothing was posted" in text
    assert (
        "**Claim.** A program of 2 equations (tanh, transfer) is rejected by the compiler on libtpu 0.0.52, v5e:2x2."
        in text
    )
    assert "    b:f32[8,128] = tanh a\n" in section(text, "Program")
    assert section(text, "How to run it").startswith("```sh\npython repro.py\n```")
    assert "`program.mlir`" in section(text, "How to run it")
    assert section(text, "Expected") == "The program compiles."
    assert section(text, "Actual") == (
        "rejected:\n\n```\nINTERNAL: Bitcast cannot have\n\nSuspected Python Code Location:\n```"
    )
    loaded = section(text, "Compiler that was loaded")
    assert "| libtpu | `0.0.52` |" in loaded
    assert f"| sha256 of the loaded file | `{'a' * 64}` |" in loaded
    assert "| compiler options | none |" in loaded
    environment = section(text, "Environment")
    assert "| LIBTPU\\_INIT\\_ARGS | `--xla_flag=1` |" in environment
    assert "| XLA\\_FLAGS | `not set` |" in environment
    assert "| jaxlib | `0.10.2` |" in environment
    assert section(text, "How it was found") == (
        "scanshrink's strategy `layer_stacks`, seed 7, 2.5 s into a hunt. Reduced from 41 to 2 in 63 compiles."
    )
    assert "\n\n\n" not in text


def test_neighbours_explanations_and_equivalence(make: Make) -> None:
    neighbours = [Neighbour(edit=f"delete eqns[{i}]", outcome="compiled") for i in range(15)]
    neighbours.append(Neighbour(edit="length 1 -> 2", outcome="rejected", signature="other"))
    minimum = msgspec.structs.replace(
        make().minimum,
        certificate=Certificate(neighbourhood="1", neighbours=tuple(neighbours)),
        explanations=(Explanation(parameter="dtype", still_fails="any"),),
    )
    text = markdown(make(tiers={"program": minimum}, equivalence=Equivalence(same_as="unwrap", largest_difference=0.0)))
    near = section(text, "Nearest programs that compile")
    assert near.count("\n- `delete eqns[") == 12
    assert "The first 12 of 15; all are in `case.json`." in near
    assert "length 1" not in near
    assert "15 of its nearest neighbours do (below)." in section(text, "Expected")
    assert "largest difference was 0.0" in section(text, "Expected")
    assert "| dtype | any |" in section(text, "What the failure depends on, and what not")


def test_releases_in_order_and_lower_tiers(make: Make) -> None:
    module = TierMinimum(size=9, module="stablehlo.mlir", script="repro_stablehlo.py")
    case = make(tiers={**make().tiers, "stablehlo": module}).with_outcomes(
        OutcomeRecord(libtpu="0.0.9", sha256="c" * 64, topology="v5e:2x2", outcome="compiled"),
        OutcomeRecord(libtpu="0.0.42.1", sha256="b" * 64, topology="v5e:2x2", outcome="crashed", signature="a|b`c"),
    )
    text = markdown(case)
    rows = section(text, "Releases").splitlines()[2:]
    assert rows == [
        "| `0.0.9` | `v5e:2x2` | compiled |  | `cccccccccccc` |",
        "| `0.0.42.1` | `v5e:2x2` | crashed | ``a\\|b`c`` | `bbbbbbbbbbbb` |",
        "| `0.0.52` | `v5e:2x2` | rejected | the same | `aaaaaaaaaaaa` |",
    ]
    assert "At the stablehlo tier, 9 operations; the module is in `stablehlo.mlir`." in text
    assert "At the stablehlo tier: `python repro_stablehlo.py`." in text


def test_a_case_that_knows_little(make: Make) -> None:
    module = TierMinimum(size=1, module="program.mlir")
    case = make(tiers={"stablehlo": module}, outcomes=(), found=None, environment={})
    text = markdown(case)
    assert "A module of 1 operation is rejected" in text
    assert "scanshrink check ." in section(text, "How to run it")
    assert section(text, "Actual") == "Not recorded."
    assert section(text, "Releases") == "No other release was tried."
    assert section(text, "How it was found") == "Not recorded."


def test_an_empty_message(make: Make) -> None:
    silent = msgspec.structs.replace(make().outcomes[0], message="")
    assert section(markdown(make(outcomes=(silent,))), "Actual") == "rejected (the compiler gave no text)."


@pytest.mark.parametrize(
    ("kind", "outcome", "words"),
    [
        ("error", "crashed", "takes the compiler's process down"),
        ("error", "timed-out", "keeps the compiler busy"),
        ("lost-offload", "compiled", "compiles, but what it should move to host memory stays on the device"),
        ("flaky", "rejected", "compiles or fails from run to run"),
    ],
)
def test_claims(make: Make, kind: str, outcome: str, words: str) -> None:
    record = msgspec.structs.replace(make().outcomes[0], outcome=outcome)
    assert words in claim(make(kind=kind, outcomes=(record,)))


NASTY = "```\n# owned <script>alert(1)</script> | `` [x](javascript:y) \x1b[31m \u202e \r\n**b**"


def test_nothing_breaks_out_of_its_place(make: Make) -> None:
    record = msgspec.structs.replace(make().outcomes[0], message=NASTY, signature=NASTY)
    minimum = msgspec.structs.replace(
        make().minimum,
        certificate=Certificate(neighbourhood=NASTY, neighbours=(Neighbour(edit=NASTY, outcome="compiled"),)),
        explanations=(Explanation(parameter=NASTY, still_fails=NASTY),),
    )
    found = msgspec.structs.replace(make().found, strategy=NASTY, date="")
    text = markdown(
        make(
            signature=NASTY + "!", family=NASTY, notes=(NASTY,), environment={NASTY: NASTY}, found=found,
            outcomes=(record,), tiers={"program": minimum},
        )
    )  # fmt: skip
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    # Outside code blocks and spans, no tag and no heading of its own.
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<script>" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert not re.search(r"^# owned", outside, re.MULTILINE)
    assert (
        len(re.findall(r"^#+ ", outside, re.MULTILINE)) == len(re.findall(r"^#+ ", markdown(make()), re.MULTILINE)) + 2
    )
    for row in re.findall(r"^\| .*", text, re.MULTILINE):
        assert len(re.findall(r"(?<!\\)\|", row)) in (3, 6), row


def test_text_made_safe() -> None:
    assert visible("a\tb\n\x00\x9b\ud800") == "a\tb\n\\x00\\x9b\\ud800"
    assert line("a\r\nb\t c", 4) == "a b…"
    assert line("") == ""
    assert code("") == "` `"
    assert code("`a`") == "`` `a` ``"
    assert code("a``b`c") == "```a``b`c```"
    assert cell("") == ""
    assert cell("a|b") == "`a\\|b`"
    assert fence("x\n````\ny\n") == "`````\nx\n````\ny\n`````"
    assert plain("a_b <i> | `c`\n# d") == "a\\_b \\<i\\> \\| \\`c\\` \\# d"


def test_summaries(make: Make) -> None:
    program = make().minimum.program
    assert program is not None
    assert equation_kinds(program) == ("tanh", "transfer")
    assert summary(make().minimum) == "2 equations (tanh, transfer)"
    assert summary(TierMinimum(size=1, module="m.mlir")) == "1 operation"
