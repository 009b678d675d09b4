"""The terms of a reduction, cut into pieces in different ways, as cells within one piece of every term."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....analyzer.indices.region import Boxes, Region, intersect, volume
from ....errors import DataError
from ..launch.view import DeviceView
from .copy_boxes import check_alike

Pair = tuple[DeviceView, DeviceView]
"""A source and its target, of equal shapes and types."""


def cells(terms: Sequence[Sequence[Pair]]) -> list[tuple[DeviceView, ...]]:
    """Return the coarsest cells that no piece's edge runs through: the target's part, then each term's
    source.

    Raises DataError if a source is not like its target, the targets of a term are not parts of one array,
    or they do not together cover what those of the first term cover.
    """
    pieces = [[_turned(pair) for pair in term if pair[1].size] for term in terms]
    if not any(pieces):
        return []
    targets = [[target for _, target in term] for term in pieces]
    if len(targets[0]) == 1 and all(each == targets[0] for each in targets):
        return [(targets[0][0], *(source for ((source, _),) in pieces))]
    placed = _placed(pieces)
    _check_cover(placed)
    found: list[tuple[DeviceView, ...]] = [(target,) for _, target in pieces[0]]
    inside = placed[0]
    for term, boxes in zip(pieces, placed, strict=True):
        common = intersect(inside[:, None], boxes)
        kept, chosen = np.nonzero(volume(common))
        cut = common[kept, chosen]
        found = [
            (
                *(_part(view, inside[cell], now) for view in found[cell]),
                _part(term[piece][0], boxes[piece], now),
            )
            for cell, piece, now in zip(kept, chosen, cut, strict=True)
        ]
        inside = cut
    return found


def _part(view: DeviceView, whole: Boxes, box: Boxes) -> DeviceView:
    """Return the part of a view of `whole` that lies in `box`."""
    start, stop = (box - whole[:, :1]).T.tolist()
    return view[tuple(slice(*interval) for interval in zip(start, stop, strict=True))]


def _turned(pair: Pair) -> Pair:
    """Return the pair with axes turned so that the target's strides are not negative."""
    source, target = pair
    check_alike(source, target)
    turn = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in target.strides)
    return (source[turn], target[turn]) if any(stride < 0 for stride in target.strides) else pair


def _placed(terms: Sequence[Sequence[Pair]]) -> list[Boxes]:
    """Return for each term the boxes `[piece, axis, 2]` of its targets within what they cover together.

    An address says where a piece starts: the axes with the longest strides first, and of those with
    equal strides the longest, as the others have but one element.
    """
    targets = [[target for _, target in term] for term in terms]
    every = [target for term in targets for target in term]
    origin, strides = min(target.address for target in every), every[0].strides
    if any(target.strides != strides for target in every):
        other = next(target.strides for target in every if target.strides != strides)
        raise DataError(
            f"the targets of a reduction must be parts of one array; one has strides {strides}, another "
            f"{other}"
        )
    longest = [max(target.shape[axis] for target in every) for axis in range(len(strides))]
    order = sorted(range(len(strides)), key=lambda axis: (-strides[axis], -longest[axis]))
    boxes = ([_box(target, origin, order) for target in term] for term in targets)
    return [np.array(term, np.int64).reshape(len(term), len(strides), 2) for term in boxes]


def _box(target: DeviceView, origin: int, order: Sequence[int]) -> Region:
    """Return where a target lies in the array that starts at `origin`."""
    rest, box = target.address - origin, [(0, length) for length in target.shape]
    for axis in order:
        if target.strides[axis]:
            place, rest = divmod(rest, target.strides[axis])
            box[axis] = (place, place + target.shape[axis])
    if rest:
        raise DataError(
            f"the target at {target.address:#x} is not a part of the array with strides {target.strides} "
            f"at {origin:#x}; give targets that are parts of one array"
        )
    return tuple(box)


def _check_cover(placed: Sequence[Boxes]) -> None:
    """Raise DataError unless the boxes of every term fill one box, the same for all."""
    corners = [boxes.max(axis=0, initial=0)[:, 1].tolist() for boxes in placed]
    for number, (boxes, corner) in enumerate(zip(placed, corners, strict=True)):
        filled = int(volume(boxes).sum())
        if corner != corners[0] or filled != prod(corner):
            raise DataError(
                f"the pieces of term {number} hold {filled} elements within the shape {corner}; "
                f"those of every term have to fill the shape {corners[0]}"
            )
