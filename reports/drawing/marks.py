"""The elements of drawings, in any file format. Lengths are pixels; y grows downwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """`fill` is `#rrggbb`, or None for an outline in the colour of the text around."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of one colour, each `(x1, y1, x2, y2)`."""

    lines: tuple[tuple[float, float, float, float], ...]
    colour: str
    width: float


@dataclass(frozen=True, slots=True)
class Area:
    """Filled polygons."""

    polygons: tuple[tuple[Point, ...], ...]
    fill: str


@dataclass(frozen=True, slots=True)
class Label:
    """Text whose middle line is at `y`; a colour of None is that of the text around."""

    x: float
    y: float
    text: str
    size: float = 10
    anchor: Anchor = "middle"
    colour: str | None = None
    bold: bool = False

    @property
    def width(self) -> float:
        """About how wide the text is: fonts differ."""
        return len(self.text) * self.size * (0.62 if self.bold else 0.56)


Mark = Rectangle | Lines | Area | Label


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks from the back to the front, and a sentence that says what is seen."""

    width: float
    height: float
    title: str
    marks: tuple[Mark, ...]
