"""Whether parts tile a box: disjoint and together all of it, apart from replicas on other workers.

If there are several terms, the parts of each tile the box.
"""

from __future__ import annotations

import numpy as np

from ...analyzer.indices.region import Boxes, Region, intersect, to_region, volume
from ...errors import PlanError
from ...programs.program import region_text
from .forms import Expanded, Workers

PAIRS = 1 << 16
"""The pairs of parts that are compared at once."""


def check_tiling(parts: Expanded, whole: Boxes) -> None:
    """Raise PlanError naming the parts that overlap or are empty, or how much is missing.

    A box without elements is tiled by empty parts.
    """
    for term in range(parts.terms):
        try:
            _check_tiling(_distinct(*_of_term(parts, term)), whole)
        except PlanError as error:
            raise error if parts.terms == 1 else PlanError(f"term {term}: {error}") from error


def _check_tiling(distinct: Boxes, whole: Boxes) -> None:
    full = int(volume(whole))
    for box in distinct:
        if full and not volume(box):
            raise PlanError(f"the part {region_text(to_region(box))} is empty; make fewer parts")
    _check_inside(distinct, whole)
    _check_disjoint(distinct)
    covered = int(volume(distinct).sum())
    if covered != full:
        raise PlanError(
            f"the parts cover {covered} of the {full} elements of {region_text(to_region(whole))}; add "
            "the others"
        )


def check_held(parts: Expanded, whole: Boxes) -> None:
    """Raise PlanError if a part lies outside, or if a worker would hold an element of a term twice."""
    for term in range(parts.terms):
        workers, boxes = _of_term(parts, term)
        _check_inside(_distinct(workers, boxes), whole)
        for worker in np.unique(workers).tolist():
            _check_disjoint(boxes[workers == worker])


def _of_term(parts: Expanded, term: int) -> tuple[Workers, Boxes]:
    here = parts.term == term
    return parts.workers[here], parts.boxes[here]


def intervals_along(boxes: Boxes) -> tuple[int, ...]:
    """Count the intervals between the bounds of all parts along each axis: `[parts, d, 2] -> [d]`."""
    return tuple(max(len(np.unique(boxes[:, axis])) - 1, 1) for axis in range(boxes.shape[1]))


def _distinct(workers: Workers, boxes: Boxes) -> Boxes:
    """Return the boxes without replicas. Raises PlanError if a worker has the same box twice."""
    seen: set[tuple[int, Region]] = set()
    first: dict[Region, int] = {}
    for number, (worker, region) in enumerate(zip(workers.tolist(), map(to_region, boxes), strict=True)):
        if (worker, region) in seen:
            raise PlanError(
                f"worker {worker} has the part {region_text(region)} twice; name each worker once"
            )
        seen.add((worker, region))
        first.setdefault(region, number)
    return boxes[list(first.values())]


def _check_inside(boxes: Boxes, whole: Boxes) -> None:
    outside = (boxes[..., 0] < whole[..., 0]) | (boxes[..., 1] > whole[..., 1])
    for box in boxes[outside.any(axis=-1)][:1]:
        raise PlanError(
            f"the part {region_text(to_region(box))} lies outside {region_text(to_region(whole))}"
        )


def _check_disjoint(boxes: Boxes) -> None:
    rows = max(PAIRS // max(len(boxes), 1), 1)
    for begin in range(0, len(boxes), rows):
        some = boxes[begin : begin + rows]
        common = volume(intersect(some[:, None], boxes[None, : begin + len(some)])) > 0
        earlier = np.argwhere(np.tril(common, begin - 1))
        for number, other in earlier[:1].tolist():
            first, second = region_text(to_region(boxes[other])), region_text(to_region(some[number]))
            raise PlanError(f"the parts {first} and {second} overlap; parts are equal or disjoint")
