"""The results of a description, to which the audit holds kernels and strategies.

Whole arrays are quick, the interpreter is obvious. So outputs are computed by whole arrays, and some elements
by the interpreter too; if the two differ, or whole arrays have no answer, the interpreter computes all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...tdl import interpret
from ...tdl.arrays import UnsuitedError, evaluate
from ..bind.bound import Bound
from ..bind.staged_bound import StagedBound

Array = npt.NDArray[Any]

CONFIRMED_POINTS = 6
"""Elements of every output that the interpreter computes, too."""

CONFIRMED_TERMS = 64
"""Terms of them that it runs through: of larger reductions, a part."""

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
        if _confirmed(subject, known):
            return found
    except UnsuitedError:
        pass
    return subject.interpret(known)


def single_precision(subject: Bound | StagedBound, tensors: Mapping[str, Array]) -> tuple[Array, ...] | None:
    """Return the outputs, rounded to 32 bits after every operation; None if whole arrays give no answer."""
    known = dict(tensors)
    made: tuple[Array, ...] = ()
    try:
        for bound, produced in zip(subject.stage_bounds, (*_produced(subject), ""), strict=True):
            intervals = {name: (0, extent) for name, extent in bound.extents.items()}
            taken = {name: known[name] for name in bound.shapes}
            made = evaluate(bound.description, intervals, taken, bound.shapes, np.float32)
            known[produced] = made[0]
    except UnsuitedError:
        return None
    return made


def _produced(subject: Bound | StagedBound) -> tuple[str, ...]:
    return tuple(subject.stages) if isinstance(subject, StagedBound) else ()


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


def _confirmed(bound: Bound, tensors: Mapping[str, Array]) -> bool:
    """Return whether the interpreter gives the same for some elements of every output."""
    return all(
        np.isclose(part, expected, RELATIVE_TOLERANCE, RELATIVE_TOLERANCE, equal_nan=True).all()
        for box in _points(bound)
        for part, expected in zip(
            evaluate(bound.description, box, tensors, bound.shapes),
            interpret(bound.description, bound.extents, tensors, bound.shapes, box=box),
            strict=True,
        )
    )


def _points(bound: Bound) -> Iterator[dict[str, tuple[int, int]]]:
    """Yield boxes of one element of every output: the first, the last, and some that lie on no diagonal."""
    outer = {binder.name for output in bound.description.outputs for binder in output.variables}
    if 0 in bound.extents.values():
        return
    lengths = {name: 1 if name in outer else extent for name, extent in bound.extents.items()}
    while prod(lengths.values()) > CONFIRMED_TERMS:
        longest = max(lengths, key=lambda name: lengths[name])
        lengths[longest] = -(-lengths[longest] // 2)
    for number in range(CONFIRMED_POINTS):
        box = {}
        for axis, (name, extent) in enumerate(bound.extents.items()):
            starts = extent - lengths[name] + 1
            first = ((starts - 1) * number + axis * (number // 2)) % starts
            box[name] = first, first + lengths[name]
        yield box
