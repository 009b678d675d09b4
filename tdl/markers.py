"""Names that decorated functions use: they exist for readers and editors and are never called."""

from __future__ import annotations

from typing import Any

from ..errors import DescriptionError


class Marker:
    """A word of the language as a Python object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tofu.{self.name}"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise DescriptionError(
            f"{self!r} has a meaning only inside a description; put it in a function under @tofu.op"
        )


Sum = Marker("Sum")
"""`Sum(lambda k: ...)` adds up over all values of its variables; over none it is 0."""

Max = Marker("Max")
"""`Max(lambda k: ...)` is the largest value; over no values it is an error."""

Min = Marker("Min")
"""`Min(lambda k: ...)` is the smallest value; over no values it is an error."""

Prod = Marker("Prod")
"""`Prod(lambda k: ...)` multiplies; over no values it is 1."""

Reducer = Marker("Reducer")
"""`name = Reducer(lambda a, b: ..., identity)`, before the `return`, declares a custom reducer."""

Opaque = Marker("Opaque")
"""`name = Opaque()`, before the `return`, declares a function. Only the slices that it takes are known."""

pad = Marker("pad")
"""`pad(data[i - 1], 0)` is the element if its indices are inside the tensor, else the number."""
