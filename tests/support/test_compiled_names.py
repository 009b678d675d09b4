"""Names in compiled loops have one type, also where comprehensions share the scope of their function.

They do from Python 3.12 on. Numba then refuses a name that a comprehension binds to numbers, and the rest of
the loop to something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..test_imports import modules

MARKS = {"compiled", "machine_code"}
"""The decorators of loops that are compiled."""

LOOP = """
@compiled
def last(pairs):
    firsts = [{inner}[0] for {inner} in pairs]
    for {outer} in firsts:
        found = {outer}
    return found
"""


def names_bound_twice(text: str) -> Iterator[str]:
    """Yield the names that comprehensions bind in compiled loops, and something else binds as well."""
    for loop in ast.walk(ast.parse(text)):
        if isinstance(loop, ast.FunctionDef) and MARKS & {ast.unparse(each) for each in loop.decorator_list}:
            inner = {name for each in ast.walk(loop) for name in _targets(each)}
            others = {name.id for name in inner} & {
                each.id if isinstance(each, ast.Name) else each.arg
                for each in ast.walk(loop)
                if (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in inner)
                or isinstance(each, ast.arg)
            }
            yield from sorted(others)


def _targets(node: ast.AST) -> set[ast.Name]:
    """Return the names that a comprehension binds; none if the node is something else."""
    if not isinstance(node, ast.comprehension):
        return set()
    return {each for each in ast.walk(node.target) if isinstance(each, ast.Name)}


def test_comprehensions_bind_names_of_their_own() -> None:
    texts = {module: path.read_text(encoding="utf-8") for module, path in modules().items()}
    found = {module: list(names_bound_twice(text)) for module, text in texts.items()}
    assert sum("@compiled" in text for text in texts.values()) > 10
    assert {module: names for module, names in found.items() if names} == {}


def test_a_name_that_is_bound_twice_is_found() -> None:
    assert list(names_bound_twice(LOOP.format(inner="each", outer="each"))) == ["each"]
    assert not list(names_bound_twice(LOOP.format(inner="pair", outer="each")))
