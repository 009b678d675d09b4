"""The tasks of an operation, with what they read, what they make and how long they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Boxes, Region
from ..dataflow.graph import Operation
from ..errors import PlanError
from ..programs.parts import Holding, Task
from ..programs.program import region_text
from ..support.compiled import Numbers, numbers, plain
from .part_cache import PartCache
from .part_sets import PartSet, Pieces
from .times import SOURCES, Source


@dataclass(frozen=True, slots=True, eq=False)
class CutOperation:
    """An operation cut into boxes, whoever computes them."""

    boxes: Boxes
    """The boxes."""

    needed: tuple[Pieces, ...]
    """The regions that the boxes read of each tensor that is read."""

    made: tuple[Pieces, ...]
    """The regions that the boxes make of each output."""

    in_place: tuple[bool, ...]
    """Whether each element of each tensor that is read is read only when it is written."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSet:
    """Tasks of an operation. Compared by identity."""

    workers: tuple[int, ...]
    """The worker of each task."""

    needed: tuple[PartSet, ...]
    """The parts that the tasks read of each tensor that is read."""

    made: tuple[PartSet, ...]
    """The parts that the tasks make of each output."""

    words: Numbers
    """The tasks without their parts, as loops read them, and the places that are read in place."""


def cut(operation: Operation, tasks: Sequence[Task], cache: PartCache) -> CutOperation:
    """Return an operation cut into the boxes of tasks. Raises PlanError unless they tile it."""
    bound = operation.bound
    boxes = _boxes([task.box for task in tasks], len(bound.variables))
    term, terms = _numbered([task.term for task in tasks], "makes")
    read, reads = _numbered([task.read for task in tasks], "reads")
    space = cache.pieces(boxes, read, reads)
    cache.check_tiles(space, tuple(bound.extents.values()))
    regions = bound.input_regions(boxes)
    made = tuple([cache.pieces(each, term, terms) for each in bound.output_regions(boxes)])
    if all(len(each.groups) <= len(tasks) for each in made):
        _check_sums(operation, space, made)
    for each, shape in zip(made, bound.output_shapes, strict=True):
        cache.check_tiles(each, shape)
    return CutOperation(
        boxes,
        tuple([cache.pieces(regions[name], read, reads) for _, name in bound.read_places]),
        made,
        tuple([name in bound.in_place for _, name in bound.read_places]),
    )


def task_set(
    of: CutOperation,
    workers: tuple[int, ...],
    nanoseconds: list[int],
    sources: Sequence[Source],
    cache: PartCache,
) -> TaskSet:
    """Return the tasks in which workers compute the boxes of an operation."""
    return TaskSet(
        workers,
        tuple([cache.parts(workers, each) for each in of.needed]),
        tuple([cache.parts(workers, each) for each in of.made]),
        numbers([len(workers), *of.in_place, *workers, *nanoseconds, *map(SOURCES.index, sources)]),
    )


def held_parts(shape: Sequence[int], holdings: Sequence[Holding], workers: int, cache: PartCache) -> PartSet:
    """Return what workers hold of a tensor, without what is empty. Raises PlanError unless it tiles it."""
    holders = [each.worker for each in holdings]
    check_workers(holders, workers)
    term, terms = _numbered([each.term for each in holdings], "holds")
    found = cache.pieces(_boxes([each.region for each in holdings], len(shape)), term, terms)
    cache.check_tiles(found, shape)
    parts = list(zip(holders, plain(found.group), strict=True))
    if len(set(parts)) < len(parts):
        twice = next(part for part, count in Counter(parts).items() if count > 1)
        text = region_text(found.region(parts.index(twice)))
        raise PlanError(f"worker {twice[0]} has the part {text} twice; name each worker once")
    return distinct(cache.parts(holders, found), cache)


def distinct(parts: PartSet, cache: PartCache) -> PartSet:
    """Return parts, each once on each worker, without those that are empty."""
    of = parts.pieces
    listed = zip(parts.workers, plain(of.group), plain(of.elements), strict=True)
    seen: dict[tuple[int, int], int] = {}
    for number, (worker, group, elements) in enumerate(listed):
        if elements:
            seen.setdefault((worker, group), number)
    if len(seen) == len(parts.workers):
        return parts
    kept = list(seen.values())
    boxes = np.array(of.bounds, np.int64).reshape(len(parts.workers), of.axes, 2)[kept]
    term = [of.term[number] for number in kept]
    return cache.parts([parts.workers[number] for number in kept], cache.pieces(boxes, term, of.terms))


def check_workers(found: Sequence[int], workers: int) -> None:
    """Raise PlanError unless all are numbers of workers."""
    for worker in found:
        if isinstance(worker, bool) or not isinstance(worker, int) or not 0 <= worker < workers:
            raise PlanError(f"there is no worker {worker!r}; workers are numbered 0 to {workers - 1}")


def _boxes(regions: Sequence[Region], axes: int) -> Boxes:
    for region in regions:
        if len(region) != axes:
            raise PlanError(f"the part {region_text(region)} has {len(region)} intervals; give it {axes}")
    return np.array(regions, np.int64).reshape(len(regions), axes, 2)


def _numbered(term: Sequence[int | None], does: str) -> tuple[list[int], int]:
    """Return the number of each part's term, and the number of terms."""
    if term.count(None) == len(term):
        return [0] * len(term), 1
    found = [0 if number is None else number for number in term]
    terms = max(found, default=0) + 1
    missing = set(range(terms)).difference(found) if found else set()
    if min(found, default=0) < 0 or missing:
        raise PlanError(
            f"no part {does} term {min(missing, default=0)} of {terms}; number terms from 0 on, without gaps"
        )
    return found, terms


def _check_sums(operation: Operation, space: Pieces, outputs: Sequence[Pieces]) -> None:
    """Raise PlanError if tasks with one term make the same part of the output from different boxes."""
    made: dict[tuple[int, ...], Region] = {}
    for task in range(len(space.elements)):
        box = space.region(task)
        other = made.setdefault(tuple([int(each.group[task]) for each in outputs]), box)
        if other != box:
            raise PlanError(
                f"the tasks {region_text(other)} and {region_text(box)} of "
                f"{operation.bound.description.name} make the same part of the output; give each part of a "
                f"sum a term of its own"
            )
