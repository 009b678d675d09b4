"""Make reads at indices that are not affine affine by a copy.

An index such as `(i - k) % n`, `abs(i + d - 2)` or `y * 55 // 83` is a function of one affine form `u`:
`i - k`, `i + d` or `y`. A copy that holds for every value of `u` what the function selects of the dimension
is read at `u` itself, through a strided view, however many variables `u` has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import gcd, prod
from typing import Any

import numpy as np

from ....analyzer.indices.region import Interval, Region
from ....support.integers import Integers
from ...kernels.kernel import Array
from ..nodes.affine import AffineIndex
from ..nodes.build import NodeBuilder
from ..nodes.index_values import evaluate
from ..nodes.ir import Apply, Constant, Load, Node
from ..steps.steps import Steps, fixed

LARGEST_COPY = 4
"""Elements of a copy, as a multiple of those held and those that are read."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A dimension's index as a function of `form`, which takes the values of an interval."""

    form: AffineIndex
    interval: Interval
    indices: Integers
    """The index for every value of the form."""


def selected(
    load: Load, array: Array, region: Region, builder: NodeBuilder, accessed: int, steps: Steps
) -> tuple[Array, Region, tuple[AffineIndex, ...]] | None:
    """Return a copy of a tensor's region that is read at affine indices, its region and these indices.

    None if an index is not a function of one affine form, or if the copy is far larger than what is read.
    """
    found = [index if isinstance(index, AffineIndex) else _rows(index, builder) for index in load.indices]
    padding = load.padding
    if any(index is None for index in found) or not (padding is None or isinstance(padding, Constant)):
        return None
    lengths = [
        len(index.indices) if isinstance(index, Rows) else upper - lower
        for index, (lower, upper) in zip(found, region, strict=True)
    ]
    held = prod(upper - lower for lower, upper in region)
    if not held or prod(lengths) > LARGEST_COPY * (held + accessed):
        return None
    forms: list[AffineIndex] = []
    intervals: list[Interval] = []
    for dimension, (index, interval) in enumerate(zip(found, region, strict=True)):
        match index:
            case Rows():
                array = _taken(load, dimension, index, interval, array, steps)
                forms.append(index.form)
                intervals.append(index.interval)
            case AffineIndex():
                forms.append(index)
                intervals.append(interval)
    return array, tuple(intervals), tuple(forms)


def _taken(load: Load, dimension: int, rows: Rows, held: Interval, array: Array, steps: Steps) -> Array:
    """Add the step that copies the selected rows of one dimension; those outside get the padding."""
    outside = (rows.indices < held[0]) | (rows.indices >= held[1])
    places = np.clip(rows.indices, held[0], held[1] - 1) - held[0]
    shape = (*array.shape[:dimension], len(places), *array.shape[dimension + 1 :])
    copy = steps.whole(shape, array.dtype)
    # without padding a row outside belongs to a value of the form that no variables give
    value = load.padding.value if isinstance(load.padding, Constant) else 0
    missing = np.flatnonzero(outside)
    run = partial(_take, places, dimension, missing, value)
    steps.add(run, (fixed(array),), fixed(copy), inplace=False)
    return copy


def _take(places: Integers, dimension: int, missing: Integers, value: Any, source: Array, out: Array) -> None:
    np.take(source, places, axis=dimension, out=out, mode="clip")
    if missing.size:
        np.moveaxis(out, dimension, 0)[missing] = value


def _rows(index: Node, builder: NodeBuilder) -> Rows | None:
    """Return an index as a function of one affine form; None if several forms or data decide it."""
    if index.loads:
        return None
    leaves = [leaf for leaf in _leaves(index, builder) if leaf.coefficients]
    if not leaves:
        return None
    common = gcd(*(coefficient for _, coefficient in leaves[0].coefficients))
    primitive = tuple((name, coefficient // common) for name, coefficient in leaves[0].coefficients)
    form = AffineIndex(primitive, 0)
    if any(_multiple(leaf, form) is None for leaf in leaves):
        return None
    interval = form.interval(builder.ranges)
    values = np.arange(*interval, dtype=np.int64)
    if not values.size:
        return None
    found = _values(index, form, values, builder)
    if found.dtype.kind not in "iub":
        return None
    return Rows(form, interval, np.broadcast_to(found, values.shape).astype(np.int64))


def _leaves(node: Node, builder: NodeBuilder) -> Iterator[AffineIndex]:
    """Yield the largest parts of an expression that are affine."""
    form = builder.form(node)
    if form is not None:
        yield form
    elif isinstance(node, Apply):
        for argument in node.arguments:
            yield from _leaves(argument, builder)


def _multiple(leaf: AffineIndex, form: AffineIndex) -> int | None:
    """Return how many times the form a leaf is, constants aside."""
    factor = leaf.coefficients[0][1] // form.coefficients[0][1]
    scaled = tuple((name, factor * coefficient) for name, coefficient in form.coefficients)
    return factor if scaled == leaf.coefficients else None


def _values(node: Node, form: AffineIndex, values: Integers, builder: NodeBuilder) -> Array:
    leaf = builder.form(node)
    if leaf is not None:
        factor = _multiple(leaf, form) if leaf.coefficients else 0
        assert factor is not None
        return np.asarray(factor * values + leaf.constant)
    assert isinstance(node, Apply), "an index without data is made of functions and index variables"
    return evaluate(node.function, [_values(argument, form, values, builder) for argument in node.arguments])
