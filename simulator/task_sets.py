"""The tasks of an operation, with what they read, what they make and how long they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Boxes, Region
from ..dataflow.graph import Operation
from ..errors import PlanError
from ..programs.parts import Holding, Task
from ..programs.program import region_text
from .compiled import plain
from .part_sets import PartSet, Pieces, check_tiles, pieces
from .times import Source

MakePieces = Callable[[Sequence[Region], Sequence[int], int], Pieces]
"""Return regions with these terms and number of terms; equal ones are one object."""

MakeParts = Callable[[Sequence[int], Pieces], PartSet]
"""Return the parts of workers; equal ones are one object."""


@dataclass(frozen=True, slots=True, eq=False)
class CutOperation:
    """An operation cut into boxes, whoever computes them."""

    boxes: Boxes
    """The boxes."""

    needed: tuple[Pieces, ...]
    """The regions that the boxes read of each tensor that is read."""

    made: tuple[Pieces, ...]
    """The regions that the boxes make of each output."""

    in_place: frozenset[int]
    """The places of tensors of which each element is read only when it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSet:
    """Tasks of an operation. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each task."""

    nanoseconds: list[int]
    """The time of each task."""

    sources: Sequence[Source]
    """Where the time of each task comes from."""

    needed: tuple[PartSet, ...]
    """The parts that the tasks read of each tensor that is read."""

    made: tuple[PartSet, ...]
    """The parts that the tasks make of each output."""

    siblings: list[list[int]]
    """For each task, the numbers of the other tasks of its worker."""

    in_place: frozenset[int]
    """The places of tensors of which each element is read only when it is written."""


def cut(operation: Operation, tasks: Sequence[Task], make: MakePieces) -> CutOperation:
    """Return an operation cut into the boxes of tasks. Raises PlanError unless they tile it."""
    bound = operation.bound
    listed = [task.box for task in tasks]
    boxes = _boxes(listed, len(bound.variables))
    term, terms = _numbered([task.term for task in tasks], "makes")
    read, reads = _numbered([task.read for task in tasks], "reads")
    check_tiles(pieces(listed, read, reads), tuple((0, extent) for extent in bound.extents.values()))
    regions = bound.input_regions(boxes)
    outputs = [_listed(made) for made in bound.output_regions(boxes)]
    _check_sums(operation, listed, outputs, term)
    made = tuple([make(each, term, terms) for each in outputs])
    for each, shape in zip(made, bound.output_shapes, strict=True):
        check_tiles(each, tuple((0, extent) for extent in shape))
    names = bound.description.tensor_names
    return CutOperation(
        boxes,
        tuple([make(_listed(regions[name]), read, reads) for _, name in bound.read_places]),
        made,
        frozenset(place for place, name in enumerate(names) if name in bound.in_place),
    )


def task_set(
    of: CutOperation,
    workers: tuple[int, ...],
    nanoseconds: list[int],
    sources: Sequence[Source],
    make: MakeParts,
) -> TaskSet:
    """Return the tasks in which workers compute the boxes of an operation."""
    places: dict[int, list[int]] = {}
    for task, worker in enumerate(workers):
        places.setdefault(worker, []).append(task)
    return TaskSet(
        workers,
        nanoseconds,
        sources,
        tuple([make(workers, each) for each in of.needed]),
        tuple([make(workers, each) for each in of.made]),
        [[other for other in places[worker] if other != task] for task, worker in enumerate(workers)],
        of.in_place,
    )


def held_parts(
    shape: Sequence[int], holdings: Sequence[Holding], workers: int, make: MakePieces, join: MakeParts
) -> PartSet:
    """Return what workers hold of a tensor, without what is empty. Raises PlanError unless it tiles it."""
    check_workers([each.worker for each in holdings], workers)
    regions = [each.region for each in holdings]
    _boxes(regions, len(shape))
    term, terms = _numbered([each.term for each in holdings], "holds")
    check_tiles(pieces(regions, term, terms), tuple((0, extent) for extent in shape))
    parts = [(each.worker, each.region, number) for each, number in zip(holdings, term, strict=True)]
    for (worker, region, _), count in Counter(parts).items():
        if count > 1:
            raise PlanError(
                f"worker {worker} has the part {region_text(region)} twice; name each worker once"
            )
    return _full(parts, terms, make, join)


def distinct(made: PartSet, make: MakePieces, join: MakeParts) -> PartSet:
    """Return the parts that tasks make, each once on each worker."""
    parts = dict.fromkeys(zip(made.workers, made.pieces.regions, plain(made.pieces.term), strict=True))
    return _full(parts, made.pieces.terms, make, join)


def _full(parts: Iterable[tuple[int, Region, int]], terms: int, make: MakePieces, join: MakeParts) -> PartSet:
    """Return the parts that are not empty."""
    full = [part for part in parts if all(lower < upper for lower, upper in part[1])]
    workers, regions, term = zip(*full, strict=True) if full else ((), (), ())
    return join(workers, make(regions, term, terms))


def check_workers(found: Sequence[int], workers: int) -> None:
    """Raise PlanError unless all are numbers of workers."""
    for worker in found:
        if isinstance(worker, bool) or not isinstance(worker, int) or not 0 <= worker < workers:
            raise PlanError(f"there is no worker {worker!r}; workers are numbered 0 to {workers - 1}")


def _listed(boxes: Boxes) -> list[Region]:
    return [tuple([(lower, upper) for lower, upper in box]) for box in boxes.tolist()]


def _boxes(regions: Sequence[Region], axes: int) -> Boxes:
    for region in regions:
        if len(region) != axes:
            raise PlanError(f"the part {region_text(region)} has {len(region)} intervals; give it {axes}")
    return np.array(regions, np.int64).reshape(len(regions), axes, 2)


def _numbered(term: Sequence[int | None], does: str) -> tuple[list[int], int]:
    """Return the number of each part's term, and the number of terms."""
    found = [0 if number is None else number for number in term]
    terms = max(found, default=0) + 1
    missing = set(range(terms)).difference(found) if found else set()
    if min(found, default=0) < 0 or missing:
        raise PlanError(
            f"no part {does} term {min(missing, default=0)} of {terms}; number terms from 0 on, without gaps"
        )
    return found, terms


def _check_sums(
    operation: Operation, boxes: Sequence[Region], outputs: Sequence[Sequence[Region]], term: Sequence[int]
) -> None:
    """Raise PlanError if tasks with one term make the same part of the output from different boxes."""
    made: dict[tuple[object, ...], Region] = {}
    for task, (box, number) in enumerate(zip(boxes, term, strict=True)):
        other = made.setdefault((number, *[regions[task] for regions in outputs]), box)
        if other != box:
            raise PlanError(
                f"the tasks {region_text(other)} and {region_text(box)} of "
                f"{operation.bound.description.name} make the same part of the output; give each part of a "
                f"sum a term of its own"
            )
