"""Data to try an operator on: integer-valued, so that sums come out the same in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ...errors import DataError, OperatorError, ShapeError
from ...tdl import ast, walk
from ..indices.region import Shape
from .elements import Array, Subject
from .reference import reference

_RANGES = ((-4, 5, 1.0), (1, 5, 1.0), (-7, 8, 8.0), (1, 8, 8.0))
"""Numerators from, up to, and their divisor: the first for which every result is finite is taken."""
_Draw = Callable[[Shape, np.random.Generator], Array]
_FIRST_INDICES = (0, 1)
"""Indices may count from 0, or from 1 if they are lengths."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of tensors: `whole` numbers in an interval, or `made` of numbers between 0 and 1."""

    whole: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    made: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)


ANYTHING = Domain()


@dataclass(frozen=True, slots=True)
class Sample:
    """Input tensors, the outputs that the description gives for them, and the tensors used as indices.

    `indices[tensor]`, for one used as an index, holds the distinct values that it has, in order. There is no
    reference if the description calls functions that are not given.
    """

    tensors: Mapping[str, Array]
    reference: tuple[Array, ...] | None
    indices: Mapping[str, Array]


def sample(subject: Subject, domain: Domain = ANYTHING) -> Sample:
    """Return data on which the operator is defined. Raises DataError if none is found."""
    limits = index_limits(subject)
    failure: Exception | None = None
    fallback = None
    draws: tuple[_Draw, ...] = (_definite,) if subject.description.opaques else ()
    draws += tuple(partial(_between, *drawn_from) for drawn_from in _RANGES)
    for draw, first in product(draws, _FIRST_INDICES if limits else (0,)):
        rng = np.random.default_rng(len(subject.variables))
        tensors = {
            name: rng.integers(first, first + max(limits[name], 1), shape) * 1.0
            if name in limits
            else _drawn(name, shape, rng, draw, domain)
            for name, shape in subject.shapes.items()
        }
        indices = {name: np.unique(tensors[name]) for name in limits}
        try:
            outputs = reference(subject, tensors)
        except OperatorError:
            return Sample(tensors, None, indices)
        except (DataError, ShapeError) as error:
            failure = error
            continue
        found = Sample(tensors, outputs, indices)
        if all(np.isfinite(output).all() for output in outputs):
            return found
        fallback = fallback or found
    if fallback is not None:
        return fallback
    raise DataError(
        f"{subject.description.name}: no data was found to try it on; {failure}; "
        f"say how to make some: data={{{next(iter(subject.shapes))!r}: lambda uniform: ...}}"
    )


def _drawn(name: str, shape: Shape, rng: np.random.Generator, draw: _Draw, domain: Domain) -> Array:
    """Return random values for a tensor."""
    if name in domain.whole:
        return rng.integers(*domain.whole[name], shape) * 1.0
    if name in domain.made:
        return _made(name, domain.made[name], rng.integers(2, 15, shape) / 16)
    return draw(shape, rng)


def _between(lower: int, upper: int, divisor: float, shape: Shape, rng: np.random.Generator) -> Array:
    return rng.integers(lower, upper, shape) / divisor


def _definite(shape: Shape, rng: np.random.Generator) -> Array:
    """Return positive definite matrices, which opaque functions of matrices take, if the shape is of square
    ones.
    """
    numbers = _between(*_RANGES[0], shape, rng)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return numbers
    gram: Array = numbers @ numbers.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return gram


def _made(name: str, make: Callable[[Array], Array], uniform: Array) -> Array:
    """Return what a user's function makes of random numbers; it need not know what to do with every shape."""
    try:
        made = np.asarray(make(uniform), np.float64)
    except Exception as error:
        raise DataError(
            f"data[{name!r}] raises {type(error).__name__} for an array of shape {uniform.shape}: {error}"
        ) from error
    if made.shape != uniform.shape:
        raise DataError(
            f"data[{name!r}] makes an array of shape {made.shape} of one of shape {uniform.shape}"
        )
    return made


def poisons(tensor: str, given: Sample) -> Iterator[Any]:
    """Yield functions that replace elements by values that must not matter.

    NaN and infinities reach every result they touch. Tensors used as indices get other valid indices
    instead: a kernel may well convert all of them.
    """
    if tensor in given.indices:
        yield lambda array: other_indices(array, given.indices[tensor])
        return
    for value in (np.nan, np.inf, -np.inf):
        yield lambda array, value=value: np.full_like(array, value)


def other_indices(array: Array, valid: Array) -> Array:
    """Return valid indices, each different from what it was if there is more than one."""
    if not len(valid):
        return array
    following: Array = valid[(np.searchsorted(valid, array) + 1) % len(valid)]
    return following


def index_limits(subject: Subject) -> dict[str, int]:
    """Return tensors whose elements are used in indices, and the smallest extent of a dimension that they
    index.
    """
    limits: dict[str, int] = {}
    for part in subject.stage_bounds:
        for element in walk(part.description):
            if not isinstance(element, ast.Element):
                continue
            for axis, index in enumerate(element.indices):
                for inner in walk(index):
                    if isinstance(inner, ast.Element) and inner.tensor in subject.shapes:
                        extent = part.shapes[element.tensor][axis]
                        limits[inner.tensor] = min(limits.get(inner.tensor, extent), extent)
    return limits
