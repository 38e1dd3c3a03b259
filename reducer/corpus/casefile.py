"""Reading and writing `case.json`. A case from elsewhere is hostile until read: nothing in it is executed, every
value is validated, every program checked, every file name confined to the case's folder.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, Final

import msgspec

from reducer.corpus.case import FORMAT, SLUG, TIERS, Case, Start, Tier, TierMinimum, key_digest
from reducer.corpus.layout import lay_out
from reducer.errors import InputError, ProgramError
from reducer.ir import codec
from reducer.ir.check import check
from reducer.ir.equations import Program
from reducer.ir.order import size
from reducer.oracle.target import options_with_files
from reducer.words import counted

CASE_FILE: Final = "case.json"
REPORT_FILE: Final = "report.md"

#: Largest `case.json` read, in bytes; a find of some thousand equations takes about one million.
SIZE_CAP: Final = 32 << 20

_SHA256 = re.compile(r"[0-9a-f]{64}")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_TOPOLOGY = re.compile(r"[a-z0-9]{1,16}:\d{1,4}(x\d{1,4}){1,3}")
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ][0-9:.+Z-]{1,32})?")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RESERVED: Final = frozenset({CASE_FILE, REPORT_FILE})
_HINT: Final = "expected the case.json that scanshrink writes"


class _Header(msgspec.Struct):
    """What is read first: whether this scanshrink may read the rest."""

    format: int
    ir_format: int = 1


_header = msgspec.json.Decoder(_Header)
_case = msgspec.json.Decoder(Case, dec_hook=codec.dec_hook)


def encode_case(case: Case) -> bytes:
    """The bytes of `case.json`. Equal cases, equal bytes.

    Raises:
        InputError: the case breaks a rule of the format, and could not be read back.
    """
    body = msgspec.to_builtins(case, enc_hook=codec.enc_hook, order=None)
    body["tiers"] = {tier: body["tiers"][tier] for tier in TIERS if tier in body["tiers"]}
    try:
        data = lay_out({"format": FORMAT, "ir_format": codec.FORMAT, **body})
    except (ValueError, RecursionError) as error:
        raise InputError(f"case {case.slug!r} has no JSON form: {error}") from None
    decode_case(data, name=f"case {case.slug!r}")
    return data


def decode_case(data: bytes, *, name: str = CASE_FILE) -> Case:
    """Read a case back; `name` says in messages what is being read.

    Raises:
        InputError: not a case, of a newer format, or a program in it is ill-typed; names file and place.
    """
    try:
        header = _header.decode(data)
        for what, got, known in (("case", header.format, FORMAT), ("program", header.ir_format, codec.FORMAT)):
            if got > known:
                raise InputError(
                    f"{name}: written by a newer scanshrink ({what} format {got}, this one reads up to {known})",
                    hint="upgrade scanshrink",
                )
            if got < 1:
                raise InputError(f"{name}: there is no {what} format {got}", hint=_HINT)
        case = _normal(_case.decode(_without_header(data)), name)
        _validate(case, name)
        return case
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = _HINT
        if "unknown field" in str(error):
            hint = "perhaps written by a newer scanshrink; this one would lose that field"
        raise InputError(f"{name}: {error}", hint=hint) from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply", hint=_HINT) from None


def _without_header(data: bytes) -> bytes:
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({k: v for k, v in fields.items() if k not in ("format", "ir_format")})


def load_case(path: Path) -> Case:
    """Read a case folder or a `case.json`; never follows a symbolic link out of the folder.

    Raises:
        InputError: missing, unreadable, too large, a link, or not a case.
    """
    file = path / CASE_FILE if path.is_dir() else path
    return decode_case(read_regular(file), name=str(file))


def read_regular(file: Path, *, cap: int = SIZE_CAP) -> bytes:
    """Bytes of a regular file of at most `cap` bytes.

    Raises:
        InputError: it is missing, unreadable, too large, or a link, device or pipe.
    """
    try:
        # A named pipe would block for ever without O_NONBLOCK.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise InputError(f"no such file: {file}", hint="a case is a folder with a case.json in it") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise InputError(f"{file}: is a symbolic link", hint="a case holds regular files only") from None
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read {file}: {reason}") from None
    try:
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise InputError(f"{file}: is not a regular file", hint="a case holds regular files only")
            data = opened.read(cap + 1)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    if len(data) > cap:
        raise InputError(f"{file}: larger than {cap >> 20} MiB", hint=_HINT)
    return data


def check_file_name(name: str) -> str:
    """Return `name` if it can name a file in a case's folder.

    Raises:
        InputError: it has a folder in it, is hidden, or is not a plain name.
    """
    if not _FILE_NAME.fullmatch(name) or name.endswith("."):
        raise InputError(f"{name!r} cannot name a file of a case", hint="a plain name, such as repro.py")
    return name


def _normal(case: Case, name: str) -> Case:
    # The codec knows what JSON cannot say: lists inside attributes are tuples.
    replace = msgspec.structs.replace
    tiers: dict[Tier, TierMinimum] = {}
    for tier in TIERS:
        minimum = case.tiers.get(tier)
        if minimum is not None:
            place = f"{name}: $.tiers.{tier}.program"
            tiers[tier] = replace(minimum, program=_checked(minimum.program, place))
    start = case.start
    if start is not None:
        start = replace(start, program=_checked(start.program, f"{name}: $.start.program"))
    return replace(case, tiers=tiers, start=start)


def _checked(program: Program | None, place: str) -> Program | None:
    if program is None:
        return None
    try:
        program = codec.decode_program(codec.encode_program(program))
        check(program)
    except ProgramError as error:
        raise InputError(f"{place}: {error.message}", hint=error.hint) from None
    except InputError as error:
        raise InputError(f"{place}: {error.message}", hint=error.hint) from None
    return program


class _Rules:
    """Says which rule of the format a case breaks, and where."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self, holds: object, place: str, message: str) -> None:
        if not holds:
            raise InputError(f"{self.name}: $.{place}: {message}", hint=_HINT)

    def matches(self, pattern: re.Pattern[str], text: str, place: str, what: str) -> None:
        self.require(pattern.fullmatch(text), place, f"{_short(text)} is not {what}")

    def numbers(self, value: msgspec.Struct, place: str, *fields: str) -> None:
        for field in fields:
            number: Any = getattr(value, field)
            ok = number is None or (math.isfinite(number) and number >= 0)
            self.require(ok, f"{place}.{field}", "must be a number of at least 0")

    def file(self, text: str, place: str) -> None:
        if text:
            self.require(_FILE_NAME.fullmatch(text), place, f"{_short(text)} cannot name a file of a case")
            self.require(text not in _RESERVED, place, f"{text} is the case's own")


def _validate(case: Case, name: str) -> None:
    rules = _Rules(name)
    rules.matches(SLUG, case.slug, "slug", "a slug (a-z, 0-9 and -, at most 100)")
    rules.require(case.signature, "signature", "is empty")
    rules.require(case.finds >= 1, "finds", "must be at least 1")
    rules.require(case.tiers, "tiers", "there is none")
    # The store finds a known failure by this; a name without it would let one failure become two cases.
    digest = key_digest(*case.key)
    rules.require(digest in case.slug, "slug", f"must hold {digest}, which stands for kind, signature and tier")
    files: set[str] = set()
    for tier, minimum in case.tiers.items():
        _validate_minimum(rules, tier, minimum, files)
    if case.start is not None:
        _validate_start(rules, case.start, files)
    target = case.target
    _validate_target(rules, target.libtpu, target.sha256, target.topology, "target")
    for option in target.options:
        rules.matches(_OPTION, option, "target.options", "the name of a compiler option")
    for option in options_with_files(target.options):
        rules.require(False, "target.options", f"{option} names a file, which no case may have written")
    for i, record in enumerate(case.outcomes):
        place = f"outcomes[{i}]"
        _validate_target(rules, record.libtpu, record.sha256, record.topology, place)
        rules.numbers(record, place, "slow_limit")
        shares = all(math.isfinite(share) and 0 <= share <= 1 for share in record.rates.values())
        rules.require(shares, f"{place}.rates", "must be shares between 0 and 1")
    places = [record.where for record in case.outcomes]
    rules.require(len(set(places)) == len(places), "outcomes", "two records for one libtpu and topology")
    if case.found is not None:
        rules.numbers(case.found, "found", "seed", "seconds", "started_size", "compiles_to_minimum")
        if case.found.date:
            rules.matches(_DATE, case.found.date, "found.date", "a date (YYYY-MM-DD)")
    if case.equivalence is not None:
        rules.numbers(case.equivalence, "equivalence", "largest_difference")


def _validate_target(rules: _Rules, libtpu: str, sha256: str, topology: str, place: str) -> None:
    rules.matches(_RELEASE, libtpu, f"{place}.libtpu", "a libtpu release")
    rules.matches(_SHA256, sha256, f"{place}.sha256", "a sha256 in hex")
    rules.matches(_TOPOLOGY, topology, f"{place}.topology", "a topology")


def _validate_minimum(rules: _Rules, tier: Tier, minimum: TierMinimum, files: set[str]) -> None:
    place = f"tiers.{tier}"
    program = minimum.program
    if tier == "stablehlo":
        rules.require(program is None, place, "the StableHLO tier has a module, not a program")
        rules.require(minimum.module, f"{place}.module", "names no file")
    else:
        rules.require(program is not None, f"{place}.program", "is missing")
    if program is not None:
        rules.require(
            minimum.size == size(program), f"{place}.size", f"the program has {counted(size(program), 'equations')}"
        )
    rules.require(minimum.size >= 0, f"{place}.size", "must be at least 0")
    rules.require(minimum.partitions >= 1, f"{place}.partitions", "must be at least 1")
    for field in ("script", "module"):
        file = getattr(minimum, field)
        rules.file(file, f"{place}.{field}")
        rules.require(not file or file not in files, f"{place}.{field}", f"{file} belongs to something else too")
        files.add(file)


def _validate_start(rules: _Rules, start: Start, files: set[str]) -> None:
    rules.require((start.program is None) != (not start.file), "start", "either a program or a file")
    rules.require(start.size >= 0, "start.size", "must be at least 0")
    rules.file(start.file, "start.file")
    rules.require(not start.file or start.file not in files, "start.file", f"{start.file} belongs to a tier")
    if start.program is not None:
        rules.require(
            start.size == size(start.program), "start.size", f"it has {counted(size(start.program), 'equations')}"
        )


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
