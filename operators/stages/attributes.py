"""Attributes: names, types and defaults as in MXNet, and values that may arrive as text.

MXNet's graph files hold every value as a string: `"(3, 3)"`, `"True"`, `"2e-05"`, `"relu"`. Text is read
as literals, never executed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import SupportsFloat, SupportsIndex

import numpy as np

from ...errors import OperatorError
from ...support.checked_argument import shown
from ...support.literals import literal
from ...support.wording import suggestion

MAX_COUNT = 100_000
MAX_BITS = 14_000
"""The largest integers. Python writes up to 4,300 digits, and graph files hold text."""

LONG_INTEGER = re.compile(r"\b(\d+)L\b")
"""Long integers of Python 2, such as `(3L, 3L)` in old graph files."""


FLAGS = {"true": True, "false": False}
"""Flags as text, in small letters; MXNet takes any."""


class SliceBounds(tuple[int | None, ...]):
    """Begins, ends or steps of a slice. None stands for the tensor's edge, or for a step of 1."""

    __slots__ = ()


Value = int | float | bool | str | tuple[int | float, ...] | SliceBounds | None


class AttributeType(StrEnum):
    """A type of attribute values."""

    INT = "an integer"
    FLOAT = "a number"
    BOOL = "True or False"
    SHAPE = "a tuple of integers"
    BOUNDS = "a tuple of integers or None"
    NUMBERS = "a number or a tuple of numbers"
    CHOICE = "one of"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """The name, type and default of one attribute."""

    name: str
    """The attribute's name."""

    kind: AttributeType
    """The type of its values."""

    default: Value = None
    """The value if the user gives none."""

    required: bool = False
    """Whether the user must give a value."""

    choices: tuple[str, ...] = ()
    """The words that `Kind.CHOICE` accepts."""

    optional: bool = False
    """Whether None is accepted."""

    ignored: bool = False
    """Whether the attribute is accepted but has no effect on results."""

    least: int | None = None
    """The smallest integer accepted."""

    most: int | None = None
    """The largest integer accepted."""

    @property
    def expected(self) -> str:
        text = f"one of {', '.join(self.choices)}" if self.kind is AttributeType.CHOICE else self.kind.value
        if self.most is not None:
            text += f" from {self.least} to {self.most}"
        elif self.least is not None:
            text += f" of at least {self.least}"
        return f"{text} or None" if self.optional else text


class Attributes(Mapping[str, Value]):
    """Checked attributes of one operator, defaults filled in: an immutable, hashable mapping."""

    __slots__ = ("_hash", "_key", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._key = tuple((name, type(value), value) for name, value in self._values.items())
        self._hash = hash(self._key)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self._key == other._key

    def __repr__(self) -> str:
        return f"Attributes({self._values!r})"

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int), (name, value)
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, int | float), (name, value)
        return value

    def flag(self, name: str) -> bool:
        return bool(self._values[name])

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), (name, value)
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        value = self._values[name]
        assert isinstance(value, tuple), (name, value)
        assert not isinstance(value, SliceBounds), (name, value)
        return tuple(int(part) for part in value)

    def bounds(self, name: str) -> SliceBounds:
        value = self._values[name]
        assert isinstance(value, SliceBounds), (name, value)
        return value


def check_attributes(owner: str, specs: Sequence[AttributeSpec], values: Mapping[str, object]) -> Attributes:
    """Return values by name, converted and completed with defaults.

    Names in double underscores, such as MXNet's `__shape__`, describe variables and are skipped. Raises
    OperatorError for an unknown name, a missing one, or a value of the wrong kind.
    """
    if isinstance(values, Attributes) and [*values._values] == [spec.name for spec in specs]:
        return values
    known = {spec.name: spec for spec in specs}
    checked: dict[str, Value] = {spec.name: spec.default for spec in specs}
    for name, value in values.items():
        if name.startswith("__") and name.endswith("__"):
            continue
        spec = known.get(name)
        if spec is None:
            hint = suggestion(name, known) or f"it has {', '.join(known) or 'no attributes'}"
            raise OperatorError(f"{owner} has no attribute {name!r}; {hint}")
        checked[name] = _convert(owner, spec, value)
    missing = [spec for spec in specs if spec.required and checked[spec.name] is None]
    if missing:
        listed = ", ".join(f"{spec.name} ({spec.expected})" for spec in missing)
        raise OperatorError(f"{owner} needs a value for {listed}")
    return Attributes(checked)


def _convert(owner: str, spec: AttributeSpec, given: object) -> Value:
    value = _literal(given) if isinstance(given, str) else given
    if value is None and spec.optional:
        return None
    converted = _of_kind(spec, value, given)
    if converted is None:
        raise OperatorError(f"{owner}: attribute {spec.name} is {shown(given)}, expected {spec.expected}")
    return converted


def _literal(text: str) -> object:
    """Return the value of a literal. Text that is not a literal, or too long for one, stands for itself."""
    try:
        return literal(LONG_INTEGER.sub(r"\1", text.strip()))
    except ValueError:
        return text


def _of_kind(spec: AttributeSpec, value: object, given: object) -> Value:
    """Return `value` converted to the attribute's kind, or None if it is not of that kind."""
    match spec.kind:
        case AttributeType.TEXT:
            return str(given)
        case AttributeType.CHOICE:
            return str(given) if str(given) in spec.choices else None
        case AttributeType.BOOL:
            if isinstance(value, str):
                return FLAGS.get(value.strip().lower())
            return bool(value) if isinstance(value, bool | np.bool_) or _integer(value) in (0, 1) else None
        case AttributeType.INT:
            integer = _integer(value)
            if integer is None or (spec.least is not None and integer < spec.least):
                return None
            return None if spec.most is not None and integer > spec.most else integer
        case AttributeType.FLOAT:
            return _number(value)
        case AttributeType.SHAPE:
            parts = value if isinstance(value, tuple | list) else (value,)
            integers = [_integer(part) for part in parts]
            return tuple(i for i in integers if i is not None) if None not in integers else None
        case AttributeType.BOUNDS:
            listed = value if isinstance(value, tuple | list) else (value,)
            ends = [_integer(part) for part in listed]
            fits = all(end is not None or part is None for end, part in zip(ends, listed, strict=True))
            return SliceBounds(ends) if fits else None
        case AttributeType.NUMBERS:
            if not isinstance(value, tuple | list):
                return value if isinstance(value, bool) else _number(value)
            numbers = [_number(part) for part in value]
            return tuple(n for n in numbers if n is not None) if None not in numbers else None


def _integer(value: object) -> int | None:
    """Return a value as an integer, or None. `int` comes first: a check for a method takes longer."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, bool) or not isinstance(value, int | SupportsIndex):
        return None
    try:
        found = operator.index(value)
    except TypeError:  # every array has the method, even if its elements have not
        return None
    return found if found.bit_length() <= MAX_BITS else None


def _number(value: object) -> int | float | None:
    """Return a value as a number, or None. `float` and `int` come first, as in `_integer`."""
    if isinstance(value, bool) or not isinstance(value, float | int | SupportsFloat):
        return None
    try:
        number = float(value)
    except (TypeError, OverflowError):
        return None
    integer = None if isinstance(value, float) else _integer(value)
    return number if integer is None else integer


def integer(
    name: str, default: int | None = None, *, optional: bool = False, least: int | None = None
) -> AttributeSpec:
    """Return an integer attribute; required if it has no default and may not be None."""
    return AttributeSpec(
        name, AttributeType.INT, default, default is None and not optional, optional=optional, least=least
    )


def count(name: str, default: int | None = None) -> AttributeSpec:
    """Return an attribute for the number of tensors or layers of an operator."""
    return AttributeSpec(name, AttributeType.INT, default, default is None, least=1, most=MAX_COUNT)


def number(name: str, default: float | None = None) -> AttributeSpec:
    return AttributeSpec(name, AttributeType.FLOAT, default, default is None)


def flag(name: str, default: bool) -> AttributeSpec:
    return AttributeSpec(name, AttributeType.BOOL, default)


def shape(name: str, default: tuple[int, ...] | None = None) -> AttributeSpec:
    return AttributeSpec(name, AttributeType.SHAPE, default, default is None)


def bounds(name: str, default: SliceBounds | None = None) -> AttributeSpec:
    return AttributeSpec(name, AttributeType.BOUNDS, default, default is None)


def choice(name: str, *choices: str, default: str | None = None) -> AttributeSpec:
    return AttributeSpec(name, AttributeType.CHOICE, default, default is None, choices)


def ignored(name: str, kind: AttributeType = AttributeType.TEXT, default: Value = None) -> AttributeSpec:
    """Return an attribute of MXNet that chooses an implementation, not a result."""
    return AttributeSpec(name, kind, default, optional=True, ignored=True)


def optional_number(name: str) -> AttributeSpec:
    """Return an attribute for a number that may be left out."""
    return AttributeSpec(name, AttributeType.FLOAT, None, optional=True)
