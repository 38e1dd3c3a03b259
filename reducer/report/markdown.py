"""`report.md`: a case as a draft of a bug report, for a person to check, complete and submit.

It follows what the maintainers of JAX and XLA ask for: the claim first, a script, expected against actual, the
environment with the compiler that was really loaded, releases, and near misses.
"""

from __future__ import annotations

from typing import Final

from reducer.corpus.case import Case, OutcomeRecord, TierMinimum
from reducer.ir.text import to_text
from reducer.report.nearest import certificate_text, nearest, shown_first
from reducer.report.render import environment, summary

#: Most compiling neighbours listed; the certificate in case.json has them all.
NEIGHBOURS: Final = 12

_FAILURES: Final = {
    "rejected": "is rejected by the compiler",
    "crashed": "takes the compiler's process down",
    "timed-out": "keeps the compiler busy until its time is up",
    "invalid": "fails",
    "incompatible": "fails",
    "compiled": "fails",
}
_KINDS: Final = {
    "lost-offload": "compiles, but what it should move to host memory stays on the device",
    "offload-costs": "compiles, but needs more device memory with the offload than without it",
    "nothing-to-offload": "offloads nothing, because what its policy names is never kept",
    "pair-differs": "behaves otherwise than a program that means the same",
    "slow-compile": "takes the compiler far longer than its size explains",
    "flaky": "compiles or fails from run to run",
}
_EXPECTED: Final = {
    "error": "The program compiles.",
    "lost-offload": "The values that the policy offloads lie in host memory.",
    "offload-costs": "The offload lowers the need for device memory.",
    "nothing-to-offload": "The values that the policy names are offloaded, or the policy is refused.",
    "pair-differs": "Both programs behave alike.",
    "slow-compile": "Compile time grows with the program.",
    "flaky": "Every run ends the same.",
}


def markdown(case: Case) -> str:
    """The report on a case. Equal cases, equal text; nothing is compiled."""
    template = environment(html=False).get_template("report.md.jinja")
    actual = case.expected()
    certificate = case.minimum.certificate
    compiling = nearest(case.minimum, case.signature)
    shown = shown_first(compiling)
    return template.render(
        case=case,
        minimum=case.minimum,
        claim=claim(case),
        summary=summary,
        program=to_text(case.minimum.program) if case.minimum.program is not None else "",
        lower=[(tier, m, _program_text(m)) for tier, m in case.tiers.items() if tier != case.tier],
        expected=_EXPECTED[case.kind],
        actual=actual,
        outcomes=case.outcomes,
        shown=shown,
        compiling=[one for one in compiling if one not in shown][: NEIGHBOURS - len(shown)],
        compiling_count=len(compiling),
        certificate=certificate,
        counts=certificate_text(certificate, case.signature) if certificate is not None else "",
        environment=_environment(case, actual),
        start_size=_start_size(case),
    )


def claim(case: Case) -> str:
    """The finding in one sentence."""
    record = case.expected()
    outcome = record.outcome if record is not None else "rejected"
    what = _FAILURES[outcome] if case.kind == "error" else _KINDS[case.kind]
    kind = {"program": "program", "placement": "program with explicit memory placements", "stablehlo": "module"}
    return (
        f"A {kind[case.tier]} of {summary(case.minimum)} {what} on libtpu {case.target.libtpu}, {case.target.topology}."
    )


def _program_text(minimum: TierMinimum) -> str:
    return to_text(minimum.program) if minimum.program is not None else ""


def _environment(case: Case, actual: OutcomeRecord | None) -> dict[str, str]:
    known = dict(case.environment)
    known.setdefault("libtpu", f"{case.target.libtpu} (sha256 {case.target.sha256})")
    if actual is not None and actual.jaxlib:
        known.setdefault("jaxlib", actual.jaxlib)
    known["topology"] = case.target.topology
    for name in ("LIBTPU_INIT_ARGS", "XLA_FLAGS"):
        known.setdefault(name, "not set")
    return known


def _start_size(case: Case) -> int | None:
    if case.found is not None and case.found.started_size is not None:
        return case.found.started_size
    return case.start.size if case.start is not None else None
