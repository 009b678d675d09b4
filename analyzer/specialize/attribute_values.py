"""Attributes of a description: check the values that a user gives, and substitute them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...errors import OperatorError
from ...support.wording import counted, suggestion
from ...tdl import ast
from ...tdl.choices import choices_of, chosen
from ...tdl.syntax.header import MAX_INTEGER
from ...tdl.traverse import Node, transform, walk

AttributeValue = int | float | bool | str | tuple[int | float, ...]

Keyed = tuple[str, AttributeValue, str]
"""A name, its value and the value's text."""


def attribute_values(description: ast.Description, given: Mapping[str, object]) -> dict[str, AttributeValue]:
    """Return a value for every attribute, in the order of the description, completed with defaults.

    Raises OperatorError for an unknown or missing attribute and for a value of another kind than needed.
    """
    names = [attribute.name for attribute in description.attributes]
    for name in given:
        if name not in names:
            hint = suggestion(name, names) or f"it has {', '.join(names) or 'none'}"
            raise OperatorError(f"{description.name}: it has no attribute '{name}'; {hint}")
    lengths = dict(_lengths(description))
    words = choices_of(description)
    values: dict[str, AttributeValue] = {}
    for attribute in description.attributes:
        value = given.get(attribute.name, attribute.default)
        if value is None:
            raise OperatorError(f"{description.name}: attribute '{attribute.name}' needs a value")
        place = f"{description.name}: attribute '{attribute.name}'"
        if attribute.name in words:
            if value not in words[attribute.name]:
                raise OperatorError(f"{place} is {value!r}; it is one of {', '.join(words[attribute.name])}")
            values[attribute.name] = str(value)
            continue
        values[attribute.name] = _checked(place, value, lengths.get(attribute.name), attribute.default)
    return values


def keyed(values: Mapping[str, AttributeValue]) -> tuple[Keyed, ...]:
    """Return values for the key of a cache: 0, 0.0 and -0.0 are equal, and their texts are not."""
    return tuple((name, value, repr(value)) for name, value in values.items())


def substitute(description: ast.Description, values: Mapping[str, AttributeValue]) -> ast.Description:
    """Return the description without attributes, their values in place."""
    words = {name: str(values[name]) for name in choices_of(description)}
    description = chosen(description, words)

    def number(node: Node) -> Node:
        if not isinstance(node, ast.Attribute):
            return node
        value = values[node.name]
        if node.index is not None:
            assert isinstance(value, tuple), "checked by attribute_values"
            value = value[node.index]
        assert not isinstance(value, tuple | str), "checked by attribute_values"
        return ast.Number(int(value) if isinstance(value, bool) else value, node.span)

    return replace(transform(description, number), attributes=())


def _lengths(description: ast.Description) -> Iterator[tuple[str, int | None]]:
    """Yield every attribute that is used, with the number of values its indices need; None for one number."""
    longest: dict[str, int] = {}
    for node in walk(description):
        if isinstance(node, ast.Attribute):
            if node.index is None:
                yield node.name, None
                continue
            longest[node.name] = max(longest.get(node.name, 0), node.index + 1)
    yield from longest.items()


def _checked(place: str, value: object, length: int | None, default: object) -> AttributeValue:
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    for part in parts:
        if isinstance(part, int) and abs(part) > MAX_INTEGER:
            raise OperatorError(f"{place} does not fit 64 bits; the largest integer is {MAX_INTEGER}")
        if not isinstance(part, int | float) or not math.isfinite(part):
            raise OperatorError(f"{place} is {value!r}; give a finite number or a tuple of numbers")
    if not isinstance(value, tuple | list):
        if length is not None:
            needed = f"a tuple of {counted(length, 'value')}, such as {(value,) * length}"
            raise OperatorError(f"{place} is {value!r}; the description needs {needed}")
        assert isinstance(value, int | float)
        return value
    count = len(default) if isinstance(default, tuple) else length
    if count is None:
        raise OperatorError(f"{place} is {value!r}; the description needs one number")
    if len(parts) != count:
        raise OperatorError(f"{place} has {len(parts)} values in {value!r}; the description needs {count}")
    return tuple(parts)
