"""The forms of what a variable's pieces need: homes, updates, sums in two levels, copies.

Two levels, with `g` groups of replicas and `m` in the smallest of them, for a piece that all replicas hold:

    on the way    the piece in m shares in every group, each the sum of the group's terms
    home          every share in g smaller ones, each the sum of one term of every group, dealt to the groups
    copy          the piece in m shares in every group again, which all readers read

So 1 - 1/g of the piece enters a group on either way. A server with `via` has one worker of each group instead
of the shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Interval, Region, to_region
from ....analyzer.strategies.discover import Kind
from ....errors import PlanError
from ...layouts.forms import Cut, Form, Parts, Spread
from ...layouts.uses import Use
from ..meshes.indexing import indexing
from .pieces import SyncPiece, joined
from .strategy import Server, has_two_levels

Boxes = Sequence[tuple[tuple[int, ...], Region]]
"""Workers, each of which has the box next to them."""


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """The forms in which a gradient is summed in two levels."""

    via: Form
    """Where groups sum their terms."""

    home: Form
    """Where the sums of groups are summed."""

    copy: Form
    """The version that is read."""


def home_form(pieces: Sequence[SyncPiece], shape: Region, workers: int, factors: Sequence[int]) -> Form:
    """Return who holds a variable, its states and its gradient."""
    return _form([(piece.holders, piece.region) for piece in pieces], shape, workers, factors)


def stacked_form(pieces: Sequence[SyncPiece], whole: Region, workers: int, factors: Sequence[int]) -> Form:
    """Return the form in which a tensor is held that has a value of the variable for each replica."""
    first = whole[0]
    return _form([(piece.holders, (first, *piece.region)) for piece in pieces], whole, workers, factors)


def copy_forms(
    pieces: Sequence[SyncPiece], whole: Region, workers: int, factors: Sequence[int]
) -> list[Form]:
    """Return the copies that are kept of a variable, each made from the one before it.

    The first has what groups keep for servers with `via`, and proxies of the others; the second, if there is
    one, proxies of all.
    """
    first, second = [], []
    for piece in pieces:
        near: tuple[int, ...] = ()
        proxies: tuple[int, ...] = ()
        if isinstance(piece.sync, Server):
            proxies = piece.readers if piece.sync.proxy else ()
            near = piece.sync.via or proxies
        first.append(near)
        second.append(proxies or near)
    kept = [first] if any(first) else []
    kept += [second] if second != first else []
    return [
        _form([_together(*each) for each in zip(pieces, more, strict=True)], whole, workers, factors)
        for more in kept
    ]


def _together(piece: SyncPiece, more: Sequence[int]) -> tuple[tuple[int, ...], Region]:
    """Return the holders of a piece together with more of them."""
    return tuple(sorted({*piece.holders, *more})), piece.region


def computed_form(
    name: str,
    place: str,
    bound: Bound,
    uses: Sequence[Use],
    whole: Region,
    pieces: Sequence[SyncPiece],
    workers: int,
    factors: Sequence[int],
    kind: Kind = "concat",
) -> Form:
    """Return the form in which every holder computes what touches its pieces, with all sums.

    `uses` are those of a tensor that has the shape of the variable, whose region is `whole`. It computes a
    part of the results, or a partial result if `kind` is `reduce`. Raises PlanError for an operation at
    `place` that cannot be split along a dimension of variable `name`.
    """
    boxes = [(piece.holders, piece.region) for piece in pieces]
    cut = [axis for axis, all_of_it in enumerate(whole) if any(r[axis] != all_of_it for _, r in boxes)]
    labels = _labels(name, place, bound, uses, cut, kind) if cut else {}
    full = bound.full_box
    made = []
    for holders, region in boxes:
        box = full.copy()
        for axis, label in labels.items():
            box[bound.variables.index(label)] = region[axis]
        made.append((holders, to_region(box)))
    return _form(made, to_region(full), workers, factors, lambda axis: bound.variables[axis])


def two_levels(name: str, pieces: Sequence[SyncPiece], groups: Sequence[Sequence[int]]) -> TwoLevels | None:
    """Return the forms of a gradient that is summed in two levels; None if no piece is.

    Raises PlanError naming a variable of which only a part is, or of which a group does not hold all.
    """
    asked = [has_two_levels(piece.sync) for piece in pieces]
    if not any(asked):
        return None
    if not all(asked):
        raise PlanError(
            f"variable {name!r} is summed in two levels in some parts, and at once in others; give all parts "
            "`tree` or `via`, or none"
        )
    via: list[tuple[int, Region, int]] = []
    home: list[tuple[int, Region]] = []
    copy: list[tuple[int, Region]] = []
    for piece in pieces:
        if isinstance(piece.sync, Server):
            via += [(worker, piece.region, group) for group, worker in enumerate(piece.sync.via)]
            home.append((piece.sync.worker, piece.region))
            copy.append((piece.sync.worker, piece.region))
            continue
        members = _members(name, piece, groups)
        axis = max(range(len(piece.region)), key=lambda each: _length(piece.region[each]), default=None)
        for number, share in enumerate(_shares(piece.region, axis, min(map(len, members)))):
            at = [each[number] for each in members]
            via += [(worker, share, group) for group, worker in enumerate(at)]
            copy += [(worker, share) for worker in at]
            smaller = _shares(share, axis, len(groups))
            turn = number if len(smaller) == 1 else 0
            home += [(at[(turn + place) % len(at)], part) for place, part in enumerate(smaller)]
    return TwoLevels(Parts(tuple(via)), Parts(tuple(home)), Parts(tuple(copy)))


def _members(name: str, piece: SyncPiece, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the holders of a piece in each group. Raises PlanError for a group without any."""
    members = [[worker for worker in piece.holders if worker in group] for group in groups]
    if not all(members):
        raise PlanError(
            f"variable {name!r} is summed in two levels, but group {members.index([])} of the replicas "
            "does not read all of it; leave out `tree`, or choose other groups"
        )
    return members


def _length(interval: Interval) -> int:
    return interval[1] - interval[0]


def _shares(region: Region, axis: int | None, count: int) -> list[Region]:
    """Cut a region into even shares along an axis; fewer if it is short, and one if it has no axis."""
    if axis is None:
        return [region]
    lower, length = region[axis][0], _length(region[axis])
    count = min(count, length)
    edges = [lower + number * length // count for number in range(count + 1)]
    return [(*region[:axis], each, *region[axis + 1 :]) for each in pairwise(edges)]


def _form(
    boxes: Boxes,
    whole: Region,
    workers: int,
    factors: Sequence[int],
    label: Callable[[int], str | int] = lambda axis: axis,
) -> Form:
    """Return the shortest form of boxes on workers."""
    boxes = joined(boxes)
    if len(boxes) == 1:
        [(holders, _)] = boxes
        if holders == tuple(range(workers)):
            return (None,) * len(factors)
        return Spread((), holders) if len(holders) == 1 else Spread(((None, len(holders)),), holders)
    cut = [
        axis for axis, all_of_it in enumerate(whole) if any(region[axis] != all_of_it for _, region in boxes)
    ]
    if len(cut) == 1 and all(len(holders) == 1 for holders, _ in boxes):
        bounds = tuple(region[cut[0]][0] for _, region in boxes[1:])
        return Cut(label(cut[0]), bounds, tuple(holders[0] for holders, _ in boxes))
    return Parts(tuple((worker, region) for holders, region in boxes for worker in holders))


def _labels(
    name: str, place: str, bound: Bound, uses: Sequence[Use], cut: Sequence[int], kind: Kind
) -> dict[int, str]:
    """Return the variables of an operator that alone split dimensions of a tensor, wherever it is used.

    Those of dimensions that are summed are of `kind`.
    """
    found, labels = indexing(bound), {}
    for axis in cut:
        alone = [
            label
            for label in bound.splits
            if bound.kind(label) in ("concat", kind)
            and all(found.dimensions(label, use) == {axis} for use in uses)
        ]
        if len(alone) != 1:
            raise PlanError(
                f"variable {name!r} cannot be cut along dimension {axis}: {place} cannot be split so; leave "
                "out its cut"
            )
        labels[axis] = alone[0]
    return labels
