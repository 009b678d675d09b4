"""Pack the pieces of a message, from the memory of several workers, into contiguous memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...operators.cuda.launch.commands import Command
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import DeviceWorkspace
from ...operators.cuda.transfers import transfers
from ...operators.cuda.transfers.reduction_cells import Pair
from .peer_copies import stage


def pack(
    pieces: Iterable[tuple[int, DeviceView]],
    address: int,
    reaches: Callable[[int], bool],
    workspace: DeviceWorkspace,
) -> tuple[Command, ...]:
    """Return the commands that put pieces, given with their workers, one behind the other from an address on.

    The wider elements come first, so each piece is aligned. One launch moves several pieces. Memory that is
    not reached is copied into the workspace first.
    """
    copies: list[Command] = []
    pairs: list[Pair] = []
    for worker, source in pieces:
        target = DeviceView.dense(address, source.shape, source.type)
        address += source.nbytes
        if not reaches(worker):
            staged, source = stage(source, workspace)
            copies += staged
        pairs.append((source, target))
    return (*copies, *transfers.fetch(pairs))


def is_dense(view: DeviceView) -> bool:
    """Tell whether a view's elements lie without gaps, in row-major order."""
    return view == DeviceView.dense(view.address, view.shape, view.type)
