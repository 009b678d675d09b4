"""Convolutions in the form that libraries take: without rows and places that meet nothing.

Libraries pad by zeros, never by less than none, and some refuse windows that lie in the padding alone. So
arrays are cut to the rows that some window reads and to the places whose window reads some row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ....analyzer.indices.region import Interval
from ..kernel import Array
from .group_shares import GroupShare


class Pass(StrEnum):
    """Which of a convolution's three tensors is computed from the other two."""

    FORWARD = "forward"
    DATA_GRADIENT = "data gradient"
    WEIGHT_GRADIENT = "weight gradient"


@dataclass(frozen=True, slots=True)
class WindowGeometry:
    """Where windows lie, per spatial dimension: row = place * stride + tap * dilate - before. Rows outside of
    the data are zeros."""

    stride: tuple[int, ...]
    """The distance between the windows of neighbouring places, in rows."""

    dilate: tuple[int, ...]
    """The distance between neighbouring taps of a window, in rows."""

    before: tuple[int, ...]
    """The rows of zeros before the data."""

    after: tuple[int, ...]
    """The rows of zeros that the last window reads after the data; negative if it ends before the data do."""


@dataclass(frozen=True, slots=True)
class LibraryForm:
    """A convolution whose rows and places all meet. Elements of a result that the cut leaves out are zero."""

    data: Array
    """The images, `[image, channel, *row]`."""

    weight: Array
    """The filters, `[filter, channel, *tap]`."""

    output: Array
    """The results, `[image, filter, *place]`."""

    geometry: WindowGeometry
    """Where windows lie."""

    def target(self, computes: Pass) -> Array:
        """Return the array that a pass writes."""
        match computes:
            case Pass.FORWARD:
                return self.output
            case Pass.DATA_GRADIENT:
                return self.data
            case Pass.WEIGHT_GRADIENT:
                return self.weight


def library_form(part: GroupShare) -> LibraryForm | None:
    """Return a group's share in the form that libraries take; None if every sum is empty.

    Arrays are cut by slices alone, so they may be views of a device's memory.
    """
    data, weight, output, windows = part.data, part.weight, part.output, part.windows
    if not (data.size and weight.size and output.size):
        return None
    sizes = zip(
        *(data.shape[2:], windows.places, windows.taps, windows.stride, windows.dilate, windows.before),
        strict=True,
    )
    met = [_met(*each) for each in sizes]
    if any(first >= stop for first, stop in (axis.places for axis in met)):
        return None
    whole = (slice(None), slice(None))
    before, after = (tuple(sizes) for sizes in zip(*((axis.before, axis.after) for axis in met), strict=True))
    return LibraryForm(
        data[(*whole, *(slice(*axis.rows) for axis in met))],
        weight,
        output[(*whole, *(slice(*axis.places) for axis in met))],
        WindowGeometry(windows.stride, windows.dilate, before, after),
    )


@dataclass(frozen=True, slots=True)
class _Met:
    """One spatial dimension of a convolution without rows and places that meet nothing."""

    rows: Interval
    """The rows of the data that some window reads."""

    places: Interval
    """The places whose windows read some row."""

    before: int
    """The rows of zeros before the rows that are left."""

    after: int
    """The rows of zeros after them; negative if the last window ends before they do."""


def _met(rows: int, places: int, taps: int, stride: int, dilate: int, before: int) -> _Met:
    """Return one dimension's.

    Up to `stride - 1` rows may follow the last window: libraries expect them.
    """
    reach = (taps - 1) * dilate
    first = max(0, -((reach - before) // stride))
    stop = min(places, (rows - 1 + before) // stride + 1)
    before -= first * stride
    end = (stop - 1 - first) * stride + reach + 1 - before
    kept = max(0, -before), min(rows, end + stride - 1)
    return _Met(kept, (first, stop), max(0, before), end - kept[1])
