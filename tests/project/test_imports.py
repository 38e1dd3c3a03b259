"""The import direction: the table in docs/design.md is what the code does, functions' own imports included."""

from __future__ import annotations

import ast
import copy
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("reducer", "strategies")
HEAVY = frozenset({"jax", "jaxlib", "libtpu"})


def modules() -> dict[str, Path]:
    """Every module of the two packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def table() -> dict[str, tuple[frozenset[str], str]]:
    """The rows of design.md's table: unit -> (units it may import, where it may import JAX)."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \| (no|late|yes) \|", text, flags=re.MULTILINE)
    return {unit: (frozenset(re.findall(r"`([\w.]+)`", allowed)), jax) for unit, allowed, jax in rows}


TABLE = table()


def under(name: str, unit: str) -> bool:
    return name == unit or name.startswith(unit + ".")


def unit_of(module: str) -> str | None:
    """The most specific row of the table that `module` belongs to."""
    return max((unit for unit in TABLE if under(module, unit)), key=len, default=None)


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported anywhere in `tree`, ``from a import b`` being ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


@functools.cache
def parse(module: str) -> tuple[ast.Module, bool]:
    path = MODULES[module]
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path)), path.name == "__init__.py"


def at_import_time(tree: ast.Module) -> ast.Module:
    """`tree` without what runs later or never: the bodies of functions, and of ``if TYPE_CHECKING``."""

    class Strip(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST | None:  # type: ignore[override]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                return None
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                return None
            return super().generic_visit(node)

    return Strip().visit(copy.deepcopy(tree))


def test_every_module_has_a_row_and_every_row_a_module() -> None:
    without_row = [name for name in MODULES if name != "reducer" and unit_of(name) in (None, "reducer")]
    assert not without_row, "add these to the table in docs/design.md"
    missing = [unit for unit in TABLE if not any(under(name, unit) for name in MODULES)]
    assert not missing, "docs/design.md lists what does not exist"


def test_every_folder_of_modules_is_a_package() -> None:
    # Without an __init__.py it is a namespace package: it works here, and another distribution could add to it.
    folders = {path.parent for path in MODULES.values()}
    assert not [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()]


def test_the_table_has_no_cycle() -> None:
    # A row may allow a part of a unit only (`reducer.oracle.outcome`): the edge is to the whole of it all the same.
    remaining = {unit: {unit_of(name) for name in allowed} for unit, (allowed, _) in TABLE.items()}
    while free := [unit for unit, needs in remaining.items() if not needs & (remaining.keys() - {unit})]:
        for unit in free:
            del remaining[unit]
    assert not remaining, "each of these imports another one"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_upwards(module: str) -> None:
    unit = unit_of(module)
    allowed = TABLE[unit][0] | {unit} if unit else frozenset()
    wrong = []
    tree, is_package = parse(module)
    for line, name in imports(tree, module, is_package):
        if not any(under(name, package) for package in PACKAGES) or name in PACKAGES:
            continue
        # `from reducer.ir.types import Type` names an attribute: the module is its longest prefix that exists.
        target = name
        while target not in MODULES and "." in target:
            target = target.rpartition(".")[0]
        if target in PACKAGES:  # a name of the package's own __init__, such as a version
            continue
        if not any(under(target, permitted) for permitted in allowed):
            wrong.append(f"{MODULES[module].relative_to(ROOT)}:{line} imports {target}")
    assert not wrong, f"{unit} may import only {sorted(allowed)}"


@pytest.mark.parametrize("module", MODULES)
def test_jax_is_imported_only_where_it_may_be(module: str) -> None:
    unit = unit_of(module)
    rule = TABLE[unit][1] if unit else "no"
    tree, is_package = parse(module)
    if rule == "yes":
        return
    if rule == "late":
        tree = at_import_time(tree)
    found = [(line, name) for line, name in imports(tree, module, is_package) if name.split(".")[0] in HEAVY]
    assert not found, "import JAX inside the function that needs it" if rule == "late" else f"{unit} does without JAX"


LIGHT = ("reducer.ir", "reducer.shrink", "reducer.corpus", "reducer.oracle.pool", "reducer.cli", "strategies")


@pytest.mark.parametrize("module", LIGHT)
def test_importing_it_does_not_load_jax(module: str) -> None:
    code = f"import sys, {module}; print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_jax_private_modules_are_used_only_where_its_versions_are_told_apart() -> None:
    users = set()
    for module in MODULES:
        tree, is_package = parse(module)
        if any(name.startswith(("jax._src", "jaxlib.")) for _, name in imports(tree, module, is_package)):
            users.add(module)
    assert users == {
        "reducer.hook.sitecustomize",
        "reducer.lowering.capture.versions",
        "reducer.oracle.backend",
        "reducer.oracle.hlo_process",
        "reducer.oracle.worker",
    }
