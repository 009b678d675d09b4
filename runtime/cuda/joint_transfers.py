"""Transfers of one worker that are issued together, so that few launches move what many instructions name.

    tick       the same, so none needs what another one makes
    memory     no bytes that one of them writes are read or written by another one
    order      next to each other, so all that they wait for was issued before the first of them

Groups of all-reduces have such transfers after `programs.gathering`, and so have operations with several
inputs that are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...operators.cuda.launch.view import DeviceView
from ...programs.clock import transferred
from ...programs.program import Compute, Piece
from ..buffer_views import BufferViews
from ..thread_tasks import Place

Bytes = tuple[int, int]
"""The first address of some memory, and the one behind it."""


def joint_transfers(places: Iterable[Place], placed: BufferViews[DeviceView]) -> Iterator[tuple[Place, ...]]:
    """Yield the transfers that are issued together, of transfers of one worker and tick in their order."""
    group: list[Place] = []
    read: list[Bytes] = []
    written: list[Bytes] = []
    for worker, index in places:
        instruction = placed.partitioned.programs[worker].instructions[index]
        assert not isinstance(instruction, Compute), "only transfers are issued together"
        sources = [_source(placed, piece) for piece in transferred(instruction)]
        target = _touched(placed.views[worker][instruction.target])
        if _overlap([target], read + written) or _overlap(sources, written):
            yield tuple(group)
            group, read, written = [], [], []
        group.append((worker, index))
        read += sources
        written.append(target)
    if group:
        yield tuple(group)


def _source(placed: BufferViews[DeviceView], piece: Piece) -> Bytes:
    return _touched(placed.part(piece.worker, piece.buffer, piece.region))


def _touched(view: DeviceView) -> Bytes:
    """Return the memory from the first to the last byte of a view, whose strides are not negative."""
    if not view.size:
        return view.address, view.address
    last = sum(stride * (length - 1) for stride, length in zip(view.strides, view.shape, strict=True))
    return view.address, view.address + last + view.itemsize


def _overlap(first: Iterable[Bytes], second: Iterable[Bytes]) -> bool:
    others = list(second)
    return any(begin < stop and start < end for begin, end in first for start, stop in others)
