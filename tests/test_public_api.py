"""Everything on the page of the reference says what it is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


def _resolve(path: str) -> object:
    """Return the object at a dotted path, through modules and then attributes."""
    parts = path.split(".")
    found: object = importlib.import_module(parts[0])
    for count, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(parts[:count]))
    return found


def _members(value: object) -> Iterator[tuple[str, object]]:
    """Public methods and properties of a class, of its bases in Tofu, and of the classes of a module."""
    if inspect.ismodule(value):
        for name, member in vars(value).items():
            if getattr(member, "__module__", "") == value.__name__ and not name.startswith("_"):
                yield name, member
                yield from _members(member)
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if base.__module__.startswith("tofu"):
            for name, member in vars(base).items():
                kinds = (property, cached_property, classmethod, staticmethod)
                if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, kinds)):
                    yield f"{base.__qualname__}.{name}", member


@pytest.mark.parametrize("name", NAMES)
def test_it_has_docstrings(name: str) -> None:
    value = _resolve(name)
    silent = [] if inspect.getdoc(value) else [name]
    silent += [member for member, found in _members(value) if not inspect.getdoc(found)]
    assert silent == []


@pytest.mark.parametrize("name", NAMES)
def test_it_is_annotated(name: str) -> None:
    value = _resolve(name)
    functions = [("", value), *_members(value)] if callable(value) else []
    for member, found in functions:
        if inspect.isfunction(found):
            signature = inspect.signature(found)
            open_ = [
                p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"
            ]
            assert open_ == [], f"{name} {member}"
            assert signature.return_annotation is not signature.empty, f"{name} {member}"
