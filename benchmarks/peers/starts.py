"""The starts: hunts' finds, captured models and the seed, stored in `starts.json`; and finds embedded in larger models.

What is stored is the program as it was found, before any reduction. A find embedded in a model is stored as a recipe:
the model is built again from its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from peers.contest import Start
from peers.recording import Recorder
from reducer.corpus.casefile import decode_case
from reducer.errors import InputError
from reducer.ir.codec import decode, decode_program, encode_program
from reducer.ir.equations import Program
from reducer.ir.normal import normalise
from reducer.ir.order import size
from strategies import embedded

STORE = Path(__file__).with_name("starts.json")
LEVELS = ("tens", "hundreds", "thousands")


class Stored(msgspec.Struct, frozen=True):
    """One start as stored; `kind` is "hunt", "captured" or "seed"."""

    name: str
    kind: str
    libtpu: str
    program: msgspec.Raw


class Recipe(msgspec.Struct, frozen=True):
    """A stored start embedded in a model of about so many equations."""

    find: str
    equations: int
    seed: int


class Store(msgspec.Struct, frozen=True):
    """The file."""

    starts: list[Stored]
    recipes: list[Recipe]


def load() -> Store:
    """Read the file."""
    if not STORE.exists():
        return Store([], [])
    return msgspec.json.decode(STORE.read_bytes(), type=Store)


def save(store: Store) -> None:
    """Write the file, one start a line."""
    encode = msgspec.json.encode
    lists = {name: ",\n".join(encode(one).decode() for one in getattr(store, name)) for name in ("starts", "recipes")}
    body = ",\n".join(f'"{name}": [\n{text}\n]' for name, text in lists.items())
    STORE.write_text("{\n" + body + "\n}\n")


def level_of(equations: int) -> str:
    """The size class."""
    return LEVELS[0] if equations < 60 else LEVELS[1] if equations < 1500 else LEVELS[2]


def all_starts(most: int | None = None) -> Iterator[tuple[str, str, str, Program]]:
    """Name, kind, release and program of every start; with `most`, models of more equations are not built."""
    store = load()
    programs: dict[str, tuple[str, Program]] = {}
    for one in store.starts:
        program = normalise(decode_program(bytes(one.program)))
        programs[one.name] = (one.libtpu, program)
        yield one.name, one.kind, one.libtpu, program
    for recipe in store.recipes:
        if most is not None and recipe.equations > most:
            continue
        libtpu, find = programs[recipe.find]
        name = f"{recipe.find} in {recipe.equations}"
        yield name, "embedded", libtpu, normalise(embedded(find, equations=recipe.equations, seed=recipe.seed))


def start_of(name: str, kind: str, libtpu: str, program: Program, recorder: Recorder) -> Start:
    """A start with its signature.

    Raises:
        InputError: it does not fail.
    """
    recorded = recorder.outcome(program)
    if not recorded.label:
        raise InputError(f"{name} does not fail on {libtpu}: {recorded.word}")
    return Start(name, level_of(size(program)), kind, libtpu, program, recorded.label)


def read(file: Path) -> Program:
    """The start of a case, or a program.

    Raises:
        InputError: it is neither.
    """
    data = file.read_bytes()
    if file.name != "case.json":
        return decode(data)
    case = decode_case(data)
    if case.start is None or case.start.program is None:
        raise InputError(f"{file} says nothing of its start")
    return case.start.program


def add(name: str, kind: str, libtpu: str, file: Path) -> None:
    """Store the start of a case, or a program.

    Raises:
        InputError: the file is neither.
    """
    store = load()
    one = Stored(name, kind, libtpu, msgspec.Raw(encode_program(normalise(read(file)))))
    save(Store([*(old for old in store.starts if old.name != name), one], store.recipes))


def embed(find: str, equations: int, seeds: int, recorder_of: Callable[[str], Recorder]) -> Recipe | None:
    """Store the first model, by its seed, in which a stored start fails as it does alone; None if there is none."""
    store = load()
    one = next(one for one in store.starts if one.name == find)
    program = normalise(decode_program(bytes(one.program)))
    recorder = recorder_of(one.libtpu)
    label = recorder.outcome(program).label
    for seed in range(seeds):
        model = normalise(embedded(program, equations=equations, seed=seed))
        if label and recorder.outcome(model).label == label:
            recipe = Recipe(find, equations, seed)
            others = [old for old in store.recipes if (old.find, old.equations) != (find, equations)]
            save(Store(store.starts, [*others, recipe]))
            return recipe
    return None
