"""Which elements of its inputs a box reads, by running through all index values.

This is the oracle that regions are held to. It evaluates the index expressions of the syntax tree itself
and shares nothing with the symbolic analysis.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import ShapeError
from ...tdl import ast, children, walk
from ...tdl.arrays import Evaluation
from ...tdl.traverse import variable_names
from ..bind.analysis import Analysis
from ..bind.bound import Bound
from ..bind.staged_bound import StagedBound
from ..indices.region import Boxes
from .reference import intermediate

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Subject = Bound | StagedBound

MAX_POINTS = 2**24
"""Index values that one access may run through; larger operators are audited at smaller shapes."""


class TensorRead(NamedTuple):
    """A read of a description."""

    element: ast.Element
    """The element that is read, with its index expressions."""

    outer: tuple[str, ...]
    """The output variables around it."""

    inner: tuple[str, ...]
    """The reduction variables around it."""

    mentioned: tuple[str, ...]
    """Those of both that its indices mention."""


def elements_read(
    subject: Subject, box: Boxes, tensors: Mapping[str, Array], only: Container[str] | None = None
) -> dict[str, Mask]:
    """Return, for every tensor, a mask of the elements that a box `[variable, 2]` reads.

    `tensors` hold the values of indices that depend on data. If `only` is given, the masks of other tensors
    stay empty for an operator without stages. Raises ShapeError for a box of too many index values.
    """
    intervals = dict(zip(subject.variables, box.tolist(), strict=True))
    if isinstance(subject, Bound):
        return _read(subject, intervals, None, tensors, only)
    known = dict(tensors) | (intermediate(subject, tensors) if indexed_by_data(subject) else {})
    needed = _read(subject.last, intervals, None, known)
    for name, stage in reversed(subject.stages.items()):
        if name not in needed:
            continue
        whole = {variable: (0, extent) for variable, extent in stage.extents.items()}
        for tensor, mask in _read(stage, whole, needed[name], known).items():
            needed[tensor] = needed[tensor] | mask if tensor in needed else mask
    return {name: needed.get(name, np.zeros(shape, np.bool_)) for name, shape in subject.shapes.items()}


def indexed_by_data(subject: Subject) -> bool:
    """Return whether elements of tensors are used in indices."""
    return any(_indexed_by_data(part.analysis) for part in subject.stage_bounds)


@lru_cache(maxsize=1024)
def _indexed_by_data(analysis: Analysis) -> bool:
    reads = (read.element for read in _reads(analysis))
    inner = (node for element in reads for index in element.indices for node in walk(index))
    return any(isinstance(node, ast.Element) for node in inner)


def _read(
    bound: Bound,
    intervals: Mapping[str, Any],
    needed: Mask | None,
    tensors: Mapping[str, Array],
    only: Container[str] | None = None,
) -> dict[str, Mask]:
    """Mark the elements that outputs in the box (and, if given, at `needed` places) depend on."""
    masks = {name: np.zeros(shape, np.bool_) for name, shape in bound.shapes.items()}
    run = Evaluation(tensors, bound.shapes, {})
    for read in _reads(bound.analysis):
        if only is not None and read.element.tensor not in only:
            continue
        if all(lower < upper for lower, upper in (intervals[name] for name in (*read.outer, *read.inner))):
            at = _grid(read, intervals, needed, bound.description.name)
            with np.errstate(all="ignore"):
                _mark(masks[read.element.tensor], read.element.indices, at, run)
    return masks


@lru_cache(maxsize=1024)
def _reads(analysis: Analysis) -> tuple[TensorRead, ...]:
    return tuple(sites(analysis.description))


def sites(description: ast.Description) -> Iterator[TensorRead]:
    """Return every read of a description without stages, including those inside the indices of others."""
    for output in description.outputs:
        outer = tuple(binder.name for binder in output.variables)
        pending: list[tuple[Any, tuple[str, ...]]] = [(output.body, ())]
        while pending:
            node, inner = pending.pop()
            if isinstance(node, ast.Element):
                mentioned = variable_names(node)
                yield TensorRead(node, outer, inner, tuple(n for n in (*outer, *inner) if n in mentioned))
            elif isinstance(node, ast.ReducerCall):
                inner = (*inner, *(binder.name for binder in node.variables))
            pending.extend((child, inner) for child in children(node))


def _grid(
    read: TensorRead, intervals: Mapping[str, Any], needed: Mask | None, operator: str
) -> dict[str, Array]:
    """Values of the variables that a read's indices mention, broadcasting against each other."""
    free = list(read.mentioned)
    columns: dict[str, Array] = {}
    if needed is not None:
        points = np.nonzero(needed)
        columns = {name: points[axis] for axis, name in enumerate(read.outer) if name in free}
        free = [name for name in free if name not in columns]
    size = prod(intervals[name][1] - intervals[name][0] for name in free)
    size *= max((len(column) for column in columns.values()), default=1)
    if size > MAX_POINTS:
        raise ShapeError(
            f"{operator}: {size} index values are too many to run through one by one; audit smaller shapes"
        )
    at = {name: np.arange(*intervals[name]).reshape([-1 if n == name else 1 for n in free]) for name in free}
    at |= {name: column.reshape(-1, *[1] * len(free)) for name, column in columns.items()}
    return at


def _mark(mask: Mask, indices: tuple[ast.Index, ...], at: Mapping[str, Array], run: Evaluation) -> None:
    """Set the elements at these indices, those outside the tensor left aside."""
    if not mask.ndim:
        mask[...] = True
        return
    places: dict[int, Array] = {
        axis: np.asarray(run.value(index, at))
        for axis, index in enumerate(indices)
        if not isinstance(index, ast.FullSlice)
    }
    if not _apart(places.values()):
        _mark_points(mask, places)
        return
    hits: list[Array] = [np.ones(extent, np.bool_) for extent in mask.shape]
    for axis, place in places.items():
        hits[axis] = np.zeros(mask.shape[axis], np.bool_)
        hits[axis][place[(place >= 0) & (place < mask.shape[axis])].astype(np.int64)] = True
    mask[np.ix_(*hits)] = True


def _apart(places: Iterable[Array]) -> bool:
    """Return whether no two indices depend on one variable, so that all of their values meet."""
    varying = [axis for place in places for axis, length in enumerate(place.shape) if length > 1]
    return len(varying) == len(set(varying))


def _mark_points(mask: Mask, places: Mapping[int, Array]) -> None:
    """Set the elements at these indices, which are those of single points."""
    inside = np.asarray(True)
    for axis, place in places.items():
        inside = inside & (place >= 0) & (place < mask.shape[axis])
    chosen: list[Any] = [slice(None)] * mask.ndim
    for axis, place in places.items():
        chosen[axis] = np.broadcast_to(place, inside.shape)[inside].astype(np.int64)
    mask[tuple(chosen)] = True
