"""No two files import each other or around a circle, imports for types and inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OTHERS = {"tests", "benchmarks", "examples", "docs", "build"}

CIRCLES = {
    # an analysis makes what it is bound to, which is computed from the whole of it
    frozenset(f"analyzer.bind.{name}" for name in ("analysis", "bound", "concrete_extents")),
}
"""Circles that still stand, with their reasons. Files may be taken out of them; nothing may be added."""


def modules() -> dict[str, Path]:
    """Every module of the package by its name, without the package's own."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in OTHERS or any(part.startswith(".") for part in parts):
            continue
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, wherever the statement stands."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    if name == "":
        package = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            inner = ".".join([*base, alias.name])
            yield inner if inner in known else ".".join(base)


def circles(arrows: dict[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan, 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in sorted(arrows[module]):
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            part = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(part) > 1:
                found.add(frozenset(part))

    for module in arrows:
        if module not in order:
            visit(module)
    return found


@pytest.fixture(scope="module")
def arrows() -> dict[str, set[str]]:
    """Return the imports of each file, except those of the packages' own files, which are faces."""
    known = modules()
    faces = {name for name, path in known.items() if path.name == "__init__.py"}
    return {
        name: {to for to in imported(name, path, known) if to not in faces and to != name}
        for name, path in known.items()
        if name not in faces
    }


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()


def test_no_two_files_import_each_other(arrows: dict[str, set[str]]) -> None:
    assert len(arrows) > 300
    new = [sorted(circle) for circle in circles(arrows) if not any(circle <= known for known in CIRCLES)]
    assert new == []


def test_no_circle_is_listed_that_has_ended(arrows: dict[str, set[str]]) -> None:
    found = circles(arrows)
    ended = [sorted(known) for known in CIRCLES if not any(circle & known for circle in found)]
    assert ended == [], "take them out of the list"
