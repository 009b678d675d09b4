"""The tasks of an operation, with what they read, what they make and how long they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analyzer.indices.region import Boxes, Region, intersect, to_region, volume, whole
from ..dataflow.graph import Operation
from ..errors import PlanError
from ..programs.parts import Holding, Task
from ..programs.program import region_text
from .compiled import plain
from .part_sets import PartSet
from .times import TaskTimes

Intern = Callable[[Sequence[int], Sequence[Region], Sequence[int], int], PartSet]
"""Return the set of parts with these workers, regions, terms and number of terms; equal ones are one object."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSet:
    """Tasks of an operation. Compared by identity."""

    workers: list[int]
    """The worker of each task."""

    nanoseconds: list[int]
    """The time of each task."""

    needed: tuple[PartSet, ...]
    """What the tasks read of each tensor that is read."""

    made: tuple[PartSet, ...]
    """What the tasks make of each output."""

    siblings: list[list[int]]
    """For each task, the numbers of the other tasks of its worker."""

    in_place: frozenset[int]
    """The places of tensors of which each element is read only where it is written."""


def task_set(
    operation: Operation, tasks: Sequence[Task], workers: int, times: TaskTimes, intern: Intern
) -> TaskSet:
    """Return the tasks of an operation. Raises PlanError unless they tile its iteration space."""
    bound = operation.bound
    of = _checked_workers([task.worker for task in tasks], workers)
    boxes = _boxes([task.box for task in tasks], len(bound.variables))
    term, terms = _numbered([task.term for task in tasks], "makes")
    read, reads = _numbered([task.read for task in tasks], "reads")
    _check_tiles(boxes, read, reads, bound.full_box)
    regions = bound.input_regions(boxes)
    outputs = bound.output_regions(boxes)
    for made, shape in zip(outputs, bound.output_shapes, strict=True):
        _check_tiles(made, term, terms, whole(shape))
    _check_sums(operation, boxes, outputs, term)
    nanoseconds = np.asarray(times(operation, np.array(of, np.int64), boxes), np.int64)
    if nanoseconds.shape != (len(of),) or (nanoseconds < 0).any():
        raise PlanError(
            f"the times of its {len(of)} tasks are {nanoseconds.tolist()}; give one for each, 0 or more"
        )
    names = bound.description.tensor_names
    return TaskSet(
        of,
        nanoseconds.tolist(),
        tuple(intern(of, list(map(to_region, regions[name])), read, reads) for _, name in bound.read_places),
        tuple(intern(of, list(map(to_region, made)), term, terms) for made in outputs),
        [[o for o, other in enumerate(of) if other == worker and o != t] for t, worker in enumerate(of)],
        frozenset(place for place, name in enumerate(names) if name in bound.in_place),
    )


def held_parts(shape: Sequence[int], holdings: Sequence[Holding], workers: int, intern: Intern) -> PartSet:
    """Return what workers hold of a tensor, without empty parts. Raises PlanError unless it tiles the tensor."""
    of = _checked_workers([each.worker for each in holdings], workers)
    boxes = _boxes([each.region for each in holdings], len(shape))
    term, terms = _numbered([each.term for each in holdings], "holds")
    _check_tiles(boxes, term, terms, whole(shape))
    regions = list(map(to_region, boxes))
    twice = [part for part, count in Counter(zip(of, regions, term, strict=True)).items() if count > 1]
    if twice:
        worker, region, _ = twice[0]
        raise PlanError(f"worker {worker} has the part {region_text(region)} twice; name each worker once")
    return _full(zip(of, regions, term, strict=True), terms, intern)


def distinct(made: PartSet, intern: Intern) -> PartSet:
    """Return the parts that tasks make, each once on each worker."""
    parts = zip(plain(made.workers), made.regions, plain(made.term), strict=True)
    return _full(dict.fromkeys(parts), made.terms, intern)


def _full(parts: Iterable[tuple[int, Region, int]], terms: int, intern: Intern) -> PartSet:
    """Return the parts that are not empty."""
    full = [part for part in parts if all(lower < upper for lower, upper in part[1])]
    workers, regions, term = zip(*full, strict=True) if full else ((), (), ())
    return intern(workers, regions, term, terms)


def _checked_workers(found: Sequence[int], workers: int) -> list[int]:
    for worker in found:
        if isinstance(worker, bool) or not isinstance(worker, int) or not 0 <= worker < workers:
            raise PlanError(f"there is no worker {worker!r}; workers are numbered 0 to {workers - 1}")
    return list(found)


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


def _check_tiles(boxes: Boxes, term: Sequence[int], terms: int, full: Boxes) -> None:
    """Raise PlanError unless the distinct boxes of every term are disjoint and make up all of `full`."""
    numbers = np.array(term, np.int64)
    size = int(volume(full))
    for number in range(terms):
        distinct = np.unique(boxes[numbers == number].reshape(-1, full.size), axis=0)
        parts = distinct.reshape(-1, *full.shape)
        shared = volume(intersect(parts[:, None], parts[None]))
        np.fill_diagonal(shared, 0)
        outside = (intersect(parts, full) != parts).any(axis=(1, 2))
        covered = int(volume(parts).sum())
        if outside.any():
            text = region_text(to_region(parts[int(outside.argmax())]))
            raise PlanError(f"the part {text} lies outside {region_text(to_region(full))}")
        if shared.any():
            one, other = np.unravel_index(shared.argmax(), shared.shape)
            raise PlanError(
                f"the parts {region_text(to_region(parts[one]))} and {region_text(to_region(parts[other]))} "
                f"overlap; parts are equal or disjoint"
            )
        if covered != size:
            raise PlanError(
                f"the parts cover {covered} of the {size} elements of {region_text(to_region(full))}; add "
                f"the others"
            )


def _check_sums(operation: Operation, boxes: Boxes, outputs: Sequence[Boxes], term: Sequence[int]) -> None:
    """Raise PlanError if tasks with one term make the same part of the output from different boxes."""
    made: dict[tuple[object, ...], Region] = {}
    for task, number in enumerate(term):
        key = number, *[to_region(regions[task]) for regions in outputs]
        box = to_region(boxes[task])
        other = made.setdefault(key, box)
        if other != box:
            raise PlanError(
                f"the tasks {region_text(other)} and {region_text(box)} of {operation.bound.description.name} "
                f"make the same part of the output; give each part of a sum a term of its own"
            )
