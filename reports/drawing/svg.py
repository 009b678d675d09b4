"""Drawings as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import assert_never

from .marks import Area, Drawing, Label, Lines, Mark, Rectangle

FONT = "system-ui,sans-serif"


def standalone(drawing: Drawing) -> str:
    """Return a whole SVG file: black on white, whatever shows it."""
    background = f'<rect width="{_n(drawing.width)}" height="{_n(drawing.height)}" fill="#fff"/>'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" {_size(drawing)} '
        f'color="#000" font-family="{FONT}">\n{_title(drawing)}\n{background}\n{contents(drawing)}\n</svg>\n'
    )


def inline(drawing: Drawing) -> str:
    """Return an element for an HTML page, in the colour of the text around it."""
    return f'<svg {_size(drawing)} role="img" font-family="{FONT}">{_title(drawing)}{contents(drawing)}</svg>'


def contents(drawing: Drawing) -> str:
    """Return what is inside the `svg` element."""
    return "".join(element for mark in drawing.marks for element in _elements(mark))


def _elements(mark: Mark) -> Iterator[str]:
    match mark:
        case Rectangle(x, y, width, height, fill):
            paint = f'fill="{fill}"' if fill else 'fill="none" stroke="currentColor" stroke-width=".7"'
            yield f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" {paint}/>'
        case Lines(lines, colour, width):
            path = "".join(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" for x1, y1, x2, y2 in lines)
            yield f'<path d="{path}" stroke="{colour}" stroke-width="{_n(width)}"/>'
        case Area(polygons, fill):
            path = "".join(f"M{'L'.join(f'{_n(x)} {_n(y)}' for x, y in points)}Z" for points in polygons)
            yield f'<path d="{path}" fill="{fill}"/>'
        case Label(x, y, text, size, anchor, colour, bold):
            align = "" if anchor == "start" else f' text-anchor="{anchor}"'
            weight = ' font-weight="600"' if bold else ""
            yield (
                f'<text x="{_n(x)}" y="{_n(y + 0.35 * size)}" font-size="{_n(size)}" '
                f'fill="{colour or "currentColor"}"{align}{weight}>{escape(text)}</text>'
            )
        case _:
            assert_never(mark)


def _size(drawing: Drawing) -> str:
    width, height = _n(drawing.width), _n(drawing.height)
    return f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'


def _title(drawing: Drawing) -> str:
    return f"<title>{escape(drawing.title)}</title>"


def _n(value: float) -> str:
    """Return a length without a tail of zeros: `3.0 -> 3`, `0.25 -> .25`."""
    return f"{value:.2f}".rstrip("0").rstrip(".").removeprefix("0") or "0"
