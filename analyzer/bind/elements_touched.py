"""Count the elements that a description touches: those of its input regions and of its outputs.

The count is an expression of sympy, which simplifies it for those who read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import sympy

from ...tdl import ast
from ..indices.affine import Absolute, Affine, Minimum, Remainder, extent_of, extent_symbol, inside
from ..indices.formula import ZERO, Formula
from ..indices.intervals import Interval, bounds
from ..indices.symbolic import symbolic
from ..input_regions.access import Access

DEEPEST = 2
"""The most remainders, minima and absolute values inside each other."""


def elements_formula(
    description: ast.Description, accesses: Sequence[Access], extents_of: Mapping[str, Formula]
) -> sympy.Expr:
    """Return elements of all input regions and outputs, in the extents of variables and tensors.

    `accesses` are grouped by tensor, and `extents_of` has the extent of every variable.
    The iteration space must not be empty. If a padded index moves in steps across the edge of its tensor, the
    region is slightly smaller than this count (see `edges`). An index nested deeper than `DEEPEST` counts as
    its whole dimension, because its bounds would fill pages.
    """
    extents = {extent: extent_of(name) for name, extent in extents_of.items() if extent.atom is not None}
    groups = groupby(accesses, key=lambda access: access.tensor)
    inputs = (_hull([_region(access, extents) for access in group]) for _, group in groups)
    outputs = (
        sympy.Mul(*(symbolic(extent_of(binder.name)) for binder in output.variables))
        for output in description.outputs
    )
    total: sympy.Expr = sympy.Add(*inputs, *outputs)
    return total


def _region(access: Access, extents: Mapping[Formula, Formula]) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Return the half-open interval read in each dimension, clipped if the access is padded.

    `extents` names tensors' extents by variables that have them.
    """
    region = []
    for axis, index in enumerate(access.indices):
        extent = extent_symbol(access.tensor, axis)
        extent = extents.get(extent, extent)
        if not isinstance(index, Affine) or _depth(index) > DEEPEST:
            region.append((symbolic(ZERO), symbolic(extent)))
            continue
        interval = bounds(index, lambda name: Interval(ZERO, extent_of(name) - 1))
        first, end = symbolic(interval.first), symbolic(interval.last + 1)
        if access.padded:
            first, end = sympy.Max(first, 0), sympy.Min(end, symbolic(extent))
        region.append((first, end))
    return region


def _depth(form: Affine) -> int:
    """Return how many remainders, minima and absolute values stand inside each other at most."""
    return max(
        (
            isinstance(atom, Remainder | Minimum | Absolute) + max(map(_depth, inside(atom)), default=0)
            for _, atom in form.terms
        ),
        default=0,
    )


def _hull(regions: Sequence[Sequence[tuple[sympy.Expr, sympy.Expr]]]) -> sympy.Expr:
    """Return elements of the smallest box around several."""
    lengths = []
    for column in zip(*regions, strict=True):
        lower = sympy.Min(*(first for first, _ in column))
        upper = sympy.Max(*(end for _, end in column))
        lengths.append(upper - lower)
    volume: sympy.Expr = sympy.Mul(*lengths)
    return volume
