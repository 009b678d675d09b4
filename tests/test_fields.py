"""Every field of a large value has its own docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
APART = ("tests", "build", "dist")

LARGE = 4
"""The number of fields from which on each of them is documented."""


def _name(node: ast.expr) -> str:
    """Return the last name of a decorator or base, called or not."""
    match node:
        case ast.Call(func=inner):
            return _name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_value(node: ast.ClassDef) -> bool:
    return "dataclass" in map(_name, node.decorator_list) or "NamedTuple" in map(_name, node.bases)


def _fields(node: ast.ClassDef) -> dict[str, bool]:
    """Return for every field, by name, whether a docstring follows it."""
    found = {}
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if "ClassVar" not in ast.unparse(annotation):
                    found[name] = _is_docstring(after)
    return found


def _is_docstring(node: ast.stmt | None) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def _undocumented(text: str) -> Iterator[str]:
    """Yield the fields without a docstring of all large values in a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and _is_value(node):
            fields = _fields(node)
            if len(fields) >= LARGE:
                yield from (f"{node.name}.{name}" for name, documented in fields.items() if not documented)


def _files() -> list[Path]:
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."]
    found = [path for folder in folders if folder.name not in APART for path in folder.rglob("*.py")]
    return sorted([*ROOT.glob("*.py"), *found])


def test_fields_are_documented() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {field}"
        for path in _files()
        for field in _undocumented(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_missing_docstring_is_found() -> None:
    bare = "    count: ClassVar[int]\n    a: int\n    b: int\n    c: int = 1\n    d: str = ''\n"
    for head in ("@dataclass(frozen=True)\nclass A:", "@dataclass\nclass A:", "class A(NamedTuple):"):
        assert list(_undocumented(f"{head}\n{bare}")) == ["A.a", "A.b", "A.c", "A.d"]
        assert list(_undocumented(f"{head}\n{bare}    '''Text.'''\n")) == ["A.a", "A.b", "A.c"]
    assert list(_undocumented(f"class A:\n{bare}")) == []
    assert list(_undocumented("@dataclass\nclass A:\n    a: int\n    b: int\n    c: int\n")) == []
