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
    """The left edge."""

    y: float
    """The upper edge."""

    width: float
    """The extent to the right."""

    height: float
    """The extent downwards."""

    fill: str | None = None
    """A colour, `#rrggbb`; None for an outline in the colour of the text around the drawing."""


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
    """A line of text."""

    x: float
    """The place of the anchor."""

    y: float
    """The middle of the line."""

    text: str
    """The text."""

    size: float = 10
    """The size of the font."""

    anchor: Anchor = "middle"
    """Which point of the line stands at `x`."""

    colour: str | None = None
    """A colour, `#rrggbb`; None for that of the text around the drawing."""

    bold: bool = False
    """Whether the font is bold."""

    @property
    def width(self) -> float:
        """About how wide the text is: fonts differ."""
        return len(self.text) * self.size * (0.62 if self.bold else 0.56)


Mark = Rectangle | Lines | Area | Label


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks on a surface."""

    width: float
    """The width of the surface."""

    height: float
    """The height of the surface."""

    title: str
    """A sentence that says what is seen."""

    marks: tuple[Mark, ...]
    """The marks, from the back to the front."""
