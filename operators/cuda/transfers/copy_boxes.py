"""Boxes of memory as kernels that move data see them: words in a few axes, the same for all views.

The bytes of an element are the innermost axis. Axes that are adjacent in every view become one, so the
last one is the longest run of bytes that all views share. The width of a word divides this run and all its
starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ....analyzer.indices.region import Shape
from ....errors import DataError
from ...emit.indices import INT32
from ...kernels.axes import Axis, merged
from ..launch.view import DeviceView

AXES = 5
"""The most axes of a box; one with more is cut along its shortest axis."""

WIDEST = 16
"""Bytes that a thread reads or writes at once, at most."""


@dataclass(frozen=True, slots=True)
class Box:
    """Words in several views. The first view is written, the others are read."""

    width: int
    """The bytes of a word."""

    shape: Shape
    """The number of words along each axis, the same for all views."""

    starts: tuple[int, ...]
    """For each view, the address of its first word."""

    strides: tuple[tuple[int, ...], ...]
    """For each axis, the distance of neighbours in each view, in bytes. Those of the first view fall from
    axis to axis."""

    @property
    def count(self) -> int:
        """How many words there are."""
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether it is one run of bytes in every view."""
        return all(strides == (self.width,) for strides in self.strides)

    def narrow(self, spare: int) -> bool:
        """Return whether 32 bits hold every offset, and a position `spare` words behind the last one."""
        reach = (
            sum(abs(stride) * (length - 1) for length, stride in zip(self.shape, strides, strict=True))
            for strides in self.strides
        )
        return max(self.count + spare, *reach) < INT32


def boxes(views: Sequence[DeviceView]) -> Iterator[Box]:
    """Yield the views of one shape and type, the one that is written first; one box if the axes suffice.

    None if they are empty. Raises DataError if shapes or types differ, or two elements of the
    first view are in one place.
    """
    target = views[0]
    for view in views[1:]:
        check_alike(view, target)
    if not target.size:
        return
    starts, axes = _oriented(views)
    if any(not strides[0] for _, strides in axes):
        raise DataError(
            f"elements of shape {target.shape} are written with strides {target.strides}, so that several "
            "lie in one place; write to an array in which they lie apart"
        )
    axes.sort(key=lambda axis: -axis[1][0])
    axes = merged([*axes, (target.itemsize, (1,) * len(views))])
    run, _ = axes.pop()
    width = gcd(WIDEST, run, *starts, *(stride for _, strides in axes for stride in strides))
    if run > width or not axes:
        axes.append((run // width, (width,) * len(views)))
    yield from _cut(width, starts, axes)


def check_alike(source: DeviceView, target: DeviceView) -> None:
    """Raise DataError unless both have one shape and type."""
    if (source.shape, source.type) != (target.shape, target.type):
        raise DataError(
            f"{source.type} elements of shape {source.shape} cannot move to "
            f"{target.type} elements of shape {target.shape}; give both one type and shape"
        )


def _oriented(views: Sequence[DeviceView]) -> tuple[list[int], list[Axis]]:
    """Return addresses and axes, without those of one element, turned so that the first view's
    strides rise.
    """
    starts, axes = [view.address for view in views], []
    for length, *strides in zip(views[0].shape, *(view.strides for view in views), strict=True):
        if length == 1:
            continue
        if strides[0] < 0:
            starts = [start + (length - 1) * stride for start, stride in zip(starts, strides, strict=True)]
            strides = [-stride for stride in strides]
        axes.append((length, tuple(strides)))
    return starts, axes


def _cut(width: int, starts: Sequence[int], axes: Sequence[Axis]) -> Iterator[Box]:
    if len(axes) <= AXES:
        shape = tuple(length for length, _ in axes)
        yield Box(width, shape, tuple(starts), tuple(zip(*(strides for _, strides in axes), strict=True)))
        return
    shortest = min(range(len(axes) - 1), key=lambda number: axes[number][0])
    length, strides = axes[shortest]
    rest = [*axes[:shortest], *axes[shortest + 1 :]]
    for place in range(length):
        moved = [start + place * stride for start, stride in zip(starts, strides, strict=True)]
        yield from _cut(width, moved, rest)
