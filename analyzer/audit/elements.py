"""Which elements of its inputs a box reads, by running through all index values.

This is the oracle that regions are held to. It evaluates the index expressions of the syntax tree itself
and shares nothing with the symbolic analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ShapeError
from ...tdl import ast, children, walk
from ...tdl.arrays import Evaluation
from ...tdl.traverse import variable_names
from ..bound import Bound
from ..region import Boxes
from ..staged import StagedBound
from .reference import intermediate

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Subject = Bound | StagedBound

MAX_POINTS = 2**24
"""Index values that one access may run through; larger operators are audited at smaller shapes."""

Site = tuple[ast.Element, tuple[str, ...], tuple[str, ...]]
"""A read, the output variables and the reduction variables around it."""


def elements_read(subject: Subject, box: Boxes, tensors: Mapping[str, Array]) -> dict[str, Mask]:
    """For every tensor a mask of the elements that a box `[variable, 2]` reads.

    `tensors` say where indices go that depend on data. Raises ShapeError if there is too much to run
    through.
    """
    intervals = dict(zip(subject.variables, box.tolist(), strict=True))
    if isinstance(subject, Bound):
        return _read(subject, intervals, None, tensors)
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
    return any(
        isinstance(inner, ast.Element)
        for part in subject.stage_bounds
        for element in walk(part.description)
        if isinstance(element, ast.Element)
        for index in element.indices
        for inner in walk(index)
    )


def _read(
    bound: Bound, intervals: Mapping[str, Any], only: Mask | None, tensors: Mapping[str, Array]
) -> dict[str, Mask]:
    """Return elements that outputs in the box (and, if given, at places where `only` is true) depend on."""
    masks = {name: np.zeros(shape, np.bool_) for name, shape in bound.shapes.items()}
    run = Evaluation(tensors, bound.shapes, {})
    for element, outer, inner in sites(bound.description):
        if all(lower < upper for lower, upper in (intervals[name] for name in (*outer, *inner))):
            at = _grid(element, outer, inner, intervals, only, bound.description.name)
            with np.errstate(all="ignore"):
                _mark(masks[element.tensor], element.indices, at, run)
    return masks


def sites(description: ast.Description) -> Iterator[Site]:
    """Return every read of a description without stages, including those inside the indices of others."""
    for output in description.outputs:
        outer = tuple(binder.name for binder in output.variables)
        pending: list[tuple[Any, tuple[str, ...]]] = [(output.body, ())]
        while pending:
            node, inner = pending.pop()
            if isinstance(node, ast.Element):
                yield node, outer, inner
            elif isinstance(node, ast.Reduce):
                inner = (*inner, *(binder.name for binder in node.variables))
            pending.extend((child, inner) for child in children(node))


def _grid(
    element: ast.Element,
    outer: tuple[str, ...],
    inner: tuple[str, ...],
    intervals: Mapping[str, Any],
    only: Mask | None,
    operator: str,
) -> dict[str, Array]:
    """Return values of the variables that an element's indices mention, broadcasting against each other."""
    mentioned = variable_names(element)
    free = [name for name in dict.fromkeys((*outer, *inner)) if name in mentioned]
    columns: dict[str, Array] = {}
    if only is not None:
        points = np.nonzero(only)
        columns = {name: points[axis] for axis, name in enumerate(outer) if name in mentioned}
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
    whole = [axis for axis, index in enumerate(indices) if isinstance(index, ast.FullSlice)]
    places = [np.zeros(()) if axis in whole else run.value(index, at) for axis, index in enumerate(indices)]
    grid = np.broadcast_arrays(*places) if places else []
    inside = np.ones(grid[0].shape if grid else (), np.bool_)
    for place, extent in zip(grid, mask.shape, strict=True):
        inside &= (place >= 0) & (place < extent)
    if not mask.ndim:
        mask[...] = True
        return
    chosen: list[Any] = [
        slice(None) if a in whole else grid[a][inside].astype(np.int64) for a in range(mask.ndim)
    ]
    mask[tuple(chosen)] = True
