"""Copy pieces that a worker's kernels cannot read into its scratch first.

Even without access between two cards, the driver copies contiguous memory from one to the other. A part of a
tensor that is not contiguous is copied run by run. If that would take too many copies, everything between its
first and its last element is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...operators.cuda.launch.commands import Command, MemoryCopy
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import DeviceWorkspace

MOST_RUNS = 32
"""The largest number of runs of memory that are copied one by one."""


def stage(source: DeviceView, workspace: DeviceWorkspace) -> tuple[tuple[Command, ...], DeviceView]:
    """Return the copies that bring a view's elements into scratch, and the view of them there."""
    if not source.size:
        return (), source
    axes = sorted(range(source.ndim), key=lambda axis: -source.strides[axis])
    inner = source.itemsize
    outer = list(axes)
    while outer and (source.shape[outer[-1]] == 1 or source.strides[outer[-1]] == inner):
        inner *= source.shape[outer.pop()]
    starts = list(_offsets(source, outer)) if _count(source, outer) <= MOST_RUNS else []
    if starts:
        dense = DeviceView.dense(workspace.take(source.nbytes), source.shape, source.type, axes)
        targets = range(dense.address, dense.address + source.nbytes, inner)
        copies = tuple(
            MemoryCopy(target, source.address + start, inner)
            for target, start in zip(targets, starts, strict=True)
        )
        return copies, dense
    reach = source.itemsize + sum(
        stride * (length - 1) for length, stride in zip(source.shape, source.strides, strict=True)
    )
    address = workspace.take(reach)
    return (MemoryCopy(address, source.address, reach),), DeviceView(
        address, source.shape, source.strides, source.type
    )


def _count(source: DeviceView, axes: list[int]) -> int:
    count = 1
    for axis in axes:
        count *= source.shape[axis]
    return count


def _offsets(source: DeviceView, axes: list[int]) -> Iterator[int]:
    """Yield the bytes from the first element to the start of each run, in the order of memory."""
    for index in product(*(range(source.shape[axis]) for axis in axes)):
        yield sum(at * source.strides[axis] for at, axis in zip(index, axes, strict=True))
