"""Names that decorated functions use: they exist for readers and editors and are never called."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import DescriptionError


class Marker:
    """A word of the language as a Python object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tofu.{self.name}"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise DescriptionError(
            f"{self!r} only has a meaning inside a description; put it in a function under @tofu.op"
        )


Sum = Marker("Sum")
Max = Marker("Max")
Min = Marker("Min")
Prod = Marker("Prod")
Reducer = Marker("Reducer")
Opaque = Marker("Opaque")
pad = Marker("pad")
