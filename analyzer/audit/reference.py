"""What a description gives, as the audit holds kernels and strategies to it.

Whole arrays are quick, the interpreter is obvious. So outputs are computed by whole arrays, and some elements
by the interpreter too; where the two differ, or whole arrays have no answer, the interpreter computes all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...tdl import interpret
from ...tdl.arrays import UnsuitedError, evaluate
from ..bound import Bound
from ..staged import StagedBound

Array = npt.NDArray[Any]

CONFIRMED_POINTS = 8
"""Elements of every output that the interpreter computes, too."""

CONFIRMED_TERMS = 1000
"""Terms that the interpreter may run through for them; one element is computed whatever it takes."""

RELATIVE_TOLERANCE = 1e-9


def reference(subject: Bound | StagedBound, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return the outputs for whole tensors. Raises what the interpreter raises."""
    if subject.description.opaques:
        return subject.interpret(tensors)
    if isinstance(subject, StagedBound):
        return reference(subject.last, {**tensors, **intermediate(subject, tensors)})
    known = {name: tensors[name] for name in subject.shapes}
    intervals = {name: (0, extent) for name, extent in subject.extents.items()}
    try:
        found = evaluate(subject.description, intervals, known, subject.shapes)
    except UnsuitedError:
        return subject.interpret(known)
    return found if _confirmed(subject, known, found) else subject.interpret(known)


def intermediate(subject: StagedBound, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return what every stage but the last produces."""
    produced: dict[str, Array] = {}
    for name, stage in subject.stages.items():
        (produced[name],) = reference(stage, {**tensors, **produced})
    return produced


def reference_part(
    bound: Bound, tensors: Mapping[str, Array], box: Mapping[str, tuple[int, int]]
) -> tuple[Array, ...]:
    """Return the parts of the outputs that a box produces. Raises what the interpreter raises."""
    try:
        return evaluate(bound.description, box, tensors, bound.shapes)
    except UnsuitedError:
        return interpret(bound.description, bound.extents, tensors, bound.shapes, box=dict(box))


def _confirmed(bound: Bound, tensors: Mapping[str, Array], found: tuple[Array, ...]) -> bool:
    """Return whether the interpreter gives the same for some elements of every output."""
    return all(
        np.isclose(output[place], part, RELATIVE_TOLERANCE, RELATIVE_TOLERANCE, equal_nan=True).all()
        for box in _points(bound)
        for output, part, place in zip(
            found,
            interpret(bound.description, bound.extents, tensors, bound.shapes, box=box),
            _places(bound, box),
            strict=True,
        )
    )


def _points(bound: Bound) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield boxes of one element of every output: the first, the last, and some that lie on no diagonal."""
    outer = {binder.name for output in bound.description.outputs for binder in output.variables}
    if 0 in bound.extents.values():
        return
    terms = prod(extent for name, extent in bound.extents.items() if name not in outer)
    count = max(1, min(CONFIRMED_POINTS, CONFIRMED_TERMS // terms))
    for number in range(count):
        box = {}
        for axis, (name, extent) in enumerate(bound.extents.items()):
            place = ((extent - 1) * number + axis * (number // 2)) % extent
            box[name] = (place, place + 1) if name in outer else (0, extent)
        yield box


def _places(bound: Bound, box: Mapping[str, tuple[int, int]]) -> Iterator[tuple[slice, ...]]:
    for output in bound.description.outputs:
        yield tuple(slice(*box[binder.name]) for binder in output.variables)
