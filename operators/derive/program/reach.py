"""Which of the partial results along one variable are read for the values of another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....analyzer.indices.region import Interval
from ...kernels.kernel import Array
from ..nodes.affine import Ranges
from ..nodes.blocks import length
from ..reductions.order import Order


@dataclass(frozen=True, slots=True)
class Reach:
    """Which values of `along` read which partial results, in the order of the scan.

    Intervals count from the box's first value of `along`.
    """

    terms: int
    """The number of terms."""

    places: int
    """The number of partial results. If steps have their own bases, they go on after the last term."""

    start: int
    """The partial result that the first value in `inside` reads."""

    step: int
    """The distance from a value's partial result to that of the next value."""

    none: Interval
    """The values that come before all terms, and read nothing."""

    inside: Interval
    """The values that read a partial result each."""

    past: Interval
    """The values that come after the last place, and read the last partial result."""

    first: int
    """How far the first value in `past` lies after the last term. The distance grows by `step` with each
    value."""

    @property
    def everything(self) -> bool:
        """Whether every partial result is read once, in order or in the opposite order."""
        return abs(self.step) == 1 and length(self.inside) == self.places


def reach_of(order: Order, box: Ranges, beyond: bool = False) -> Reach:
    """Return the reach of an order in a box; with places `beyond` the last term where any are read."""
    first, stop = box[order.variable]
    begin, end = box[order.along]
    step = dict(order.bound.coefficients)[order.along]
    start = order.bound.constant + step * begin - first
    if order.suffix:
        start, step = (stop - first - 1) - start, -step
    places = start + step * np.arange(end - begin)

    def interval(held: Array) -> Interval:
        (found,) = np.nonzero(held)
        return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)

    terms = held = stop - first
    if terms and beyond:
        held = max(terms, int(places.max(initial=0)) + 1)
    inside = interval((places >= 0) & (places < held))
    past = interval((places >= held) & (terms > 0))
    none = interval((places < 0) | (terms == 0))
    return Reach(
        terms, held, start + step * inside[0], step, none, inside, past, start + step * past[0] - terms + 1
    )
