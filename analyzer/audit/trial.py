"""Strategies tried on concrete shapes: against an enumeration of reads, and with the interpreter."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import DataError, ShapeError
from ...tdl.reducers import combiner
from ..bind.bound import Bound
from ..indices.region import Boxes, Region, to_region
from ..strategies.strategy import Strategy
from .elements import Array, Mask, Subject, elements_read
from .finding import Counterexample, Grade, worst
from .reference import intermediate, reference_part
from .samples import Sample, other_indices

RELATIVE_TOLERANCE = 1e-9
"""For results that are not whole numbers, whose rounding may depend on the order of a sum."""


def parts(strategy: Strategy, workers: int) -> Iterator[Boxes]:
    """Yield the box `[variable, 2]` of each worker."""
    yield from strategy.bound.split((strategy.variable,), (workers,))


def regions_of(strategy: Strategy, workers: int) -> list[dict[str, Region]]:
    """Return the regions of each tensor that each worker reads.

    A strategy of the analysis computes those of all workers at once, others are asked for each worker.
    """
    if type(strategy) is not Strategy:
        return [strategy.input_regions(worker=worker, workers=workers) for worker in range(workers)]
    boxes = strategy.bound.split((strategy.variable,), (workers,))
    found = strategy.bound.input_regions(boxes)
    return [{name: to_region(each[worker]) for name, each in found.items()} for worker in range(workers)]


def missed_element(
    subject: Subject, strategy: Strategy, workers: int, given: Sample, only: Container[str] | None = None
) -> Counterexample | None:
    """Find an element, of any or of `only` some tensors, that a worker reads outside of its region."""
    regions_by_worker = regions_of(strategy, workers)
    for worker, (box, regions) in enumerate(zip(parts(strategy, workers), regions_by_worker, strict=True)):
        for tensor, mask in elements_read(subject, box, given.tensors, only).items():
            region = regions[tensor]
            missed = np.argwhere(mask & ~inside(region, mask.shape))
            if len(missed):
                place = tuple(missed[0].tolist())
                return Counterexample(
                    f"reads {element(tensor, place)} outside of its region",
                    subject.shapes,
                    workers,
                    worker,
                    tensor,
                    region,
                    place,
                )
    return None


def grades(subject: Subject, strategy: Strategy, workers: int, given: Sample) -> dict[str, Grade]:
    """Return how well each tensor's regions fit what the workers read."""
    found: dict[str, list[Grade]] = {tensor: [] for tensor in subject.reads}
    for box, regions in zip(parts(strategy, workers), regions_of(strategy, workers), strict=True):
        masks = elements_read(subject, box, given.tensors)
        for tensor, seen in found.items():
            seen.append(_grade(regions[tensor], masks[tensor]))
    return {tensor: worst(seen) for tensor, seen in found.items()}


def wrong_cover(subject: Subject, strategy: Strategy, workers: int) -> Counterexample | None:
    """Return boxes that do not cut the variable into parts, or outputs produced by no worker or by two."""
    reached = 0
    for worker, box in enumerate(parts(strategy, workers)):
        expected = {
            name: (0, extent) for name, extent in subject.extents.items() if name in subject.variables
        }
        lower, upper = box[subject.variables.index(strategy.variable)].tolist()
        expected[strategy.variable] = (reached, upper)
        if box.tolist() != [list(interval) for interval in expected.values()] or upper < lower:
            return Counterexample(
                f"its box of '{strategy.variable}' is {lower}:{upper}, the one before ends at {reached}",
                subject.shapes,
                workers,
                worker,
            )
        reached = upper
    if reached != subject.extents[strategy.variable]:
        message = (
            f"boxes of '{strategy.variable}' end at {reached}, not at {subject.extents[strategy.variable]}"
        )
        return Counterexample(message, subject.shapes, workers)
    wanted = 1 if strategy.kind == "concat" else workers
    for output, shape in enumerate(subject.output_shapes):
        count = np.zeros(shape, np.int64)
        for worker in range(workers):
            count[_slices(strategy.output_regions(worker=worker, workers=workers)[output])] += 1
        wrong = np.argwhere(count != wanted)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            message = f"{element(f'output {output}', place)} is produced by {count[place]} workers"
            return Counterexample(message, subject.shapes, workers, place=place)
    return None


def wrong_result(subject: Subject, strategy: Strategy, workers: int, given: Sample) -> Counterexample | None:
    """Return where interpreting the boxes and combining the parts differs from interpreting the whole.

    Every worker sees NaN outside of its regions.
    """
    results: list[Array] = [np.full(shape, np.nan) for shape in subject.output_shapes]
    for worker, box in enumerate(parts(strategy, workers)):
        regions = strategy.input_regions(worker=worker, workers=workers)
        try:
            partial = part_of(subject, _limited(given, regions), box)
        except (DataError, ShapeError) as error:
            return Counterexample(f"cannot be interpreted: {error}", subject.shapes, workers, worker)
        places = strategy.output_regions(worker=worker, workers=workers)
        for output, (part, place) in enumerate(zip(partial, places, strict=True)):
            if not combine(results[output], part, place, strategy, first=worker == 0):
                message = f"its part of output {output} has shape {part.shape}, which does not fit its region"
                return Counterexample(message, subject.shapes, workers, worker)
    assert given.reference is not None, "opaque functions are not interpreted in parts"
    exact = strategy.kind == "concat" or whole_numbers(given.reference)
    relative = 0.0 if exact else RELATIVE_TOLERANCE
    return difference(results, given.reference, subject, workers, relative)


def combine(result: Array, part: Array, place: Region, strategy: Strategy, first: bool) -> bool:
    """Put a worker's part into the result; False if it does not fit."""
    here: tuple[Any, ...] = (..., *_slices(place))  # the dots keep a tensor without dimensions an array
    target: Array = result[here]
    if target.shape != part.shape:
        return False
    if first or strategy.reducer is None:
        target[...] = part
    else:
        combiner(strategy.reducer)(target, part, target)
    return True


def difference(
    results: Sequence[Array],
    reference: Sequence[Array],
    subject: Subject,
    workers: int | None = None,
    relative: float = 0.0,
) -> Counterexample | None:
    """Return the first element at which results differ by more than a part of the largest element."""
    for output, (result, wanted) in enumerate(zip(results, reference, strict=True)):
        expected = np.asarray(wanted, np.float64)
        if result.shape != expected.shape:
            message = f"output {output} has shape {result.shape}, not {expected.shape}"
            return Counterexample(message, subject.shapes, workers)
        with np.errstate(all="ignore"):
            largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
            equal = (np.abs(result - expected) <= relative * largest) | (result == expected)
            equal |= np.isnan(result) & np.isnan(expected)
        wrong = np.argwhere(~equal)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            return Counterexample(
                f"{element(f'output {output}', place)} is wrong",
                subject.shapes,
                workers,
                place=place,
                expected=float(expected[place]),
                found=float(result[place]),
            )
    return None


def whole_numbers(arrays: Sequence[Array]) -> bool:
    """Return whether all finite elements are whole, so that sums of them are exact in any order."""
    finite = [np.asarray(array, np.float64)[np.isfinite(array)] for array in arrays]
    return all(bool((array == np.floor(array)).all()) for array in finite)


def part_of(subject: Subject, tensors: Mapping[str, Array], box: Boxes) -> tuple[Array, ...]:
    """Return the parts of the outputs that a box produces, from the description."""
    last, known = subject, dict(tensors)
    if not isinstance(subject, Bound):
        last, known = subject.last, known | intermediate(subject, tensors)
    assert isinstance(last, Bound)
    intervals = dict(zip(subject.variables, map(tuple, box.tolist()), strict=True))
    return reference_part(last, {name: known[name] for name in last.shapes}, intervals)


def inside(region: Region, shape: tuple[int, ...]) -> Mask:
    """Return a mask of the elements in a region."""
    mask = np.zeros(shape, np.bool_)
    mask[_slices(region)] = True
    return mask


def _limited(given: Sample, regions: Mapping[str, Region]) -> dict[str, Array]:
    """Return the tensors with NaN outside of the regions; another index in tensors used as indices."""
    limited = {}
    for tensor, array in given.tensors.items():
        valid = given.indices.get(tensor)
        other = np.full_like(array, np.nan) if valid is None else other_indices(array, valid)
        limited[tensor] = np.where(inside(regions[tensor], array.shape), array, other)
    return limited


def _grade(region: Region, mask: Mask) -> Grade:
    held = inside(region, mask.shape)
    if not (held & ~mask).any():
        return Grade.EXACT
    places = np.argwhere(mask)
    if not len(places):
        return Grade.LOOSE
    hull = tuple(zip(places.min(axis=0).tolist(), (places.max(axis=0) + 1).tolist(), strict=True))
    return Grade.TIGHT if hull == tuple(region) else Grade.LOOSE


def _slices(region: Region) -> tuple[slice, ...]:
    return tuple(slice(lower, upper) for lower, upper in region)


def element(tensor: str, place: tuple[int, ...]) -> str:
    """Return how an element is written."""
    return f"{tensor}[{', '.join(map(str, place)) or '()'}]"
