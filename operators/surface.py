"""How users describe operators of their own: `@tofu.op`, `tofu.parse`, `tofu.load`, the language's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from .. import tdl
from ..errors import DescriptionError
from ..tdl import Max, Min, Opaque, Prod, Reducer, Sum, ast
from ..tdl.layout import MAX_BYTES
from .attributes import Attributes, AttributeSpec, Kind
from .definition import Constant, Fixed, Variant
from .operator import Operator

T = TypeVar("T")

__all__ = ["Max", "Min", "Opaque", "Prod", "Reducer", "Sum", "load", "op", "parse"]


def op(function: Callable[..., Any]) -> Operator:
    """The operator that a decorated function describes. The function is read, never called.

        @tofu.op
        def conv1d(data, filters):
            return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])

    Raises DescriptionError with file, line and a caret for everything that is wrong.
    """
    text, origin, first_line = tdl.op_location(function)
    return operator_of(tdl.parse(text, origin, first_line))


def parse(text: str, origin: str = "<string>") -> Operator:
    """The operator that a text describes. Raises DescriptionError."""
    return operator_of(tdl.parse(text, origin))


def load(path: str | Path) -> Operator:
    """The operator that a `.tdl` file describes; a file holds one description, in UTF-8.

    Raises DescriptionError for a file that cannot be read, and for everything that is wrong with its text.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DescriptionError(f"the description file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DescriptionError(f"the description file {path!r} cannot be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise DescriptionError(f"{path} is no description: it is larger than {MAX_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DescriptionError(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
    return parse(text, str(path))


def operator_of(description: ast.Description) -> Operator:
    """A description as an operator: its keyword-only parameters are the attributes."""
    names = description.tensor_names
    count = len(description.outputs)
    return Operator(
        name=description.name,
        definition=Fixed(_Described(description)),
        argument_names=_Always(names),
        specs=tuple(_spec(parameter) for parameter in description.attributes),
        output_count=_Always(count),
        written=description,
    )


@dataclass(frozen=True, slots=True)
class _Always(Generic[T]):
    """A function of the attributes that does not depend on them; equal where its value is."""

    value: T

    def __call__(self, attributes: Attributes) -> T:
        return self.value


@dataclass(frozen=True, slots=True)
class _Described:
    """The one description of a user's operator, for any attributes."""

    description: ast.Description

    def __call__(self, attributes: Attributes) -> Variant:
        return Variant(self.description, _constants(attributes))


def _constants(attributes: Attributes) -> Mapping[str, Constant]:
    return {
        name: value for name, value in attributes.items() if value is not None and not isinstance(value, str)
    }


def _spec(parameter: ast.AttributeParameter) -> AttributeSpec:
    return AttributeSpec(parameter.name, Kind.NUMBERS, parameter.default, parameter.default is None)
