"""Data to try an operator on: integer-valued, so that sums come out the same in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import DataError, ShapeError
from ...tdl import ast, walk
from ..bound import Bound
from .elements import Array, Subject

_RANGES = ((-4, 5, 1.0), (1, 5, 1.0), (-7, 8, 8.0), (1, 8, 8.0))
"""Numerators from, up to, and their divisor: the first for which every result is finite is taken."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Input tensors, the outputs that the description gives for them, and the tensors used as indices.

    `limits[tensor]`, for one used as an index, is the number of values it may take.
    """

    tensors: Mapping[str, Array]
    reference: tuple[Array, ...]
    limits: Mapping[str, int]


def sample(subject: Subject) -> Sample:
    """Data on which the operator is defined. Raises DataError where none is found."""
    limits = index_limits(subject)
    failure: Exception | None = None
    fallback = None
    for lower, upper, divisor in _RANGES:
        rng = np.random.default_rng(len(subject.variables))
        tensors = {}
        for name, shape in subject.shapes.items():
            drawn = rng.integers(lower, upper, shape)
            tensors[name] = rng.integers(0, limits[name], shape) * 1.0 if name in limits else drawn / divisor
        try:
            reference = subject.interpret(tensors)
        except (DataError, ShapeError) as error:
            failure = error
            continue
        found = Sample(tensors, reference, limits)
        if all(np.isfinite(output).all() for output in reference):
            return found
        fallback = fallback or found
    if fallback is not None:
        return fallback
    raise DataError(f"{subject.description.name}: no data was found to try it on: {failure}")


def poisons(tensor: str, given: Sample) -> Iterator[Any]:
    """Functions that replace elements by values that must not matter.

    NaN and infinities reach every result they touch. Tensors used as indices get other valid indices
    instead: a kernel may well convert all of them.
    """
    if tensor in given.limits:
        limit = given.limits[tensor]
        yield lambda array: np.mod(array + 1, max(limit, 1))
        return
    for value in (np.nan, np.inf, -np.inf):
        yield lambda array, value=value: np.full_like(array, value)


def index_limits(subject: Subject) -> dict[str, int]:
    """Tensors whose elements are used in indices, and the smallest extent of a dimension that they index."""
    limits: dict[str, int] = {}
    parts = [subject] if isinstance(subject, Bound) else [*subject.stages.values(), subject.last]
    for part in parts:
        for element in walk(part.description):
            if not isinstance(element, ast.Element):
                continue
            for axis, index in enumerate(element.indices):
                for inner in walk(index):
                    if isinstance(inner, ast.Element) and inner.tensor in subject.shapes:
                        extent = part.shapes[element.tensor][axis]
                        limits[inner.tensor] = min(limits.get(inner.tensor, extent), extent)
    return limits
