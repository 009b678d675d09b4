"""Images read at places between their pixels, in TDL: the grid sampling of PyTorch and of ONNX.

A place is a vector of coordinates, one for each dimension of space, the last dimension first. The border of
the image is at -1 and 1. With `corners`, these are the middles of its outermost pixels.

Along each dimension, a place has neighbours: the nearest pixel, the two around it, or four. An element of the
result is the sum of all combinations of neighbours, each with the product of its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product

from ..analyzer.indices.region import Shape


class Interpolation(Enum):
    """Which pixels count at a place, as their distances from the pixel before it, in PyTorch's order."""

    LINEAR = (0, 1)
    NEAREST = (0,)
    CUBIC = (-1, 0, 1, 2)


class Outside(Enum):
    """Which values an image has beyond its borders, in PyTorch's order."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


NEAREST = "2 * floor({0} / 2 + 0.25) + where({0} - 2 * floor({0} / 2 + 0.25) > 0.5, 1, 0)"
"""The nearest whole number, from halves the even one."""

STEEPNESS = -0.75
"""The slope of the cubic weights at the distance of one pixel."""


@dataclass(frozen=True, slots=True)
class GridSampling:
    """The reading of an image `data` at the places of a `grid`: `stages`, and then `result`."""

    image: Shape
    """The shape of the image: batch, channels and the dimensions of space."""

    grid: Shape
    """The shape of the grid: batch, the dimensions of the result, and a coordinate for each of space."""

    interpolation: Interpolation
    """Which pixels count at a place."""

    outside: Outside
    """Its values beyond its borders."""

    corners: bool
    """Whether -1 and 1 are the middles of the outermost pixels."""

    def stages(self) -> Iterator[str]:
        """Yield the tensors that are computed first: for each dimension, places and pixels before them."""
        for axis in self._space:
            place = f"at{axis}{self._place}"
            before = NEAREST if self.interpolation is Interpolation.NEAREST else "floor({0})"
            stages = {f"at{axis}": self._line(axis), f"low{axis}": before.format(place)}
            if self.interpolation is Interpolation.CUBIC:
                low = f"low{axis}{self._place}"
                for number, step in enumerate(Interpolation.CUBIC.value):
                    stages[f"weight{axis}_{number}"] = _cubic(f"({place} - {low})", step)
                    if self.outside is Outside.REFLECTION:
                        stages[f"pixel{axis}_{number}"] = self._reflected(f"({low} + {step})", axis)
            for name, value in stages.items():
                yield f"{name} = lambda {self._binders('n')}: {value}"

    @property
    def result(self) -> str:
        """Return the sampled image."""
        partly = self.outside is Outside.ZEROS or self.interpolation is Interpolation.LINEAR
        terms = []
        for combination in product(*(list(self._neighbours(axis)) for axis in self._space)):
            pixels, inside, weights = zip(*combination, strict=True)
            value = f"data[{', '.join(['n', 'c', *pixels])}]"
            if partly:
                value = f"where({' and '.join(inside)}, {value}, 0)"
            terms.append(f"{value} * {' * '.join(weights)}")
        return f"lambda {self._binders('n', 'c')}: {' + '.join(terms)}"

    @property
    def _space(self) -> range:
        return range(len(self.image) - 2)

    @property
    def _variables(self) -> list[str]:
        return [f"i{axis}" for axis in self._space]

    @property
    def _place(self) -> str:
        return f"[{', '.join(['n', *self._variables])}]"

    def _binders(self, *names: str) -> str:
        extents = [*self.image[: len(names)], *self.grid[1:-1]]
        pairs = zip((*names, *self._variables), extents, strict=True)
        return ", ".join(f"{name}={extent}" for name, extent in pairs)

    def _line(self, axis: int) -> str:
        """Return the coordinate of a place, in pixels. Cubics move each pixel instead of the place."""
        extent, column = self.image[2 + axis], len(self._space) - 1 - axis
        unit = f"(grid[{', '.join(['n', *self._variables, str(column)])}] + 1)"
        line = f"{unit} * {(extent - 1) / 2}" if self.corners else f"{unit} * {extent / 2} - 0.5"
        if self.interpolation is Interpolation.CUBIC:
            return line
        match self.outside:
            case Outside.ZEROS:
                return line
            case Outside.BORDER:
                return self._clipped(line, axis)
            case Outside.REFLECTION:
                return self._reflected(line, axis)

    def _clipped(self, line: str, axis: int) -> str:
        """Move a coordinate into the image; at its border there is no gradient."""
        last = self.image[2 + axis] - 1
        return f"where({line} <= 0, 0, where({line} >= {last}, {last}, {line}))"

    def _reflected(self, line: str, axis: int) -> str:
        """Reflect a coordinate at the image's borders as often as it takes."""
        extent = self.image[2 + axis]
        first, span = (0.0, extent - 1) if self.corners else (-0.5, extent)
        if not span:
            return f"0 * {line}"
        distance = f"abs({line} - {first})" if first >= 0 else f"abs({line} + {-first})"
        turns = f"floor({distance} / {span})"
        rest = f"({distance} - {span} * {turns})"
        odd = f"{turns} - 2 * floor({turns} / 2) > 0.5"
        return self._clipped(f"(where({odd}, {span} - {rest}, {rest}) + ({first}))", axis)

    def _neighbours(self, axis: int) -> Iterator[tuple[str, str, str]]:
        """Yield the pixels around a place, whether each is in the image, and its weight."""
        place, low, last = f"at{axis}{self._place}", f"low{axis}{self._place}", self.image[2 + axis] - 1
        for number, step in enumerate(self.interpolation.value):
            pixel = low if not step else f"({low} + {step})"
            inside = f"{pixel} >= 0 and {pixel} < {last + 1}"
            match self.interpolation:
                case Interpolation.NEAREST:
                    weight = "1"
                case Interpolation.LINEAR:
                    weight = f"({place} - {low})" if step else f"({low} + 1 - {place})"
                case Interpolation.CUBIC:
                    weight = f"weight{axis}_{number}{self._place}"
                    if self.outside is Outside.REFLECTION:
                        pixel = f"pixel{axis}_{number}{self._place}"
            yield f"minimum(maximum({pixel}, 0), {last})", inside, weight


def _cubic(share: str, step: int) -> str:
    """Return the weight of a pixel that is `step` after the one before a place, at a share of the way."""
    a = STEEPNESS
    near = "((({0}) * {1} - {2}) * {1} * {1} + 1)"
    far = "((({0} * {1} - {2}) * {1} + {3}) * {1} - {4})"
    distance = f"({share} + {-step})" if step <= 0 else f"({step} - {share})"
    if step in (0, 1):
        return near.format(a + 2, distance, a + 3)
    return far.format(f"({a})", distance, f"({5 * a})", f"({8 * a})", f"({4 * a})")
