"""Proofs about regions, for all shapes and all boxes at once, with isl.

For every access the set of elements that a box reads is compared with the symbolic region that the
analysis gives for this box. The ends of the box and the extents of the tensors are parameters, so one proof
covers every strategy, every number of workers and every step of a recursive plan. Variables that are
never split are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import islpy as isl

from ...support.connected_groups import linked
from ..bind.analysis import Analysis
from ..indices.affine import Affine, DataDependent, extent_symbol, variables_of
from ..indices.formula import Formula, symbol
from ..indices.intervals import bounds, lower_symbol, upper_symbol, value_symbol
from ..indices.value_range import expression
from ..input_regions.access import Access
from ..strategies.discover import SplitVariable
from .finding import Grade, worst
from .quasi_affine import MAX_OPERATIONS, InexpressibleError, Piecewise, Terms, Values

HULL_OPERATIONS = 1_000_000
"""Steps isl may take to grade a hull, which is sound whatever its grade: half a second."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof about the regions of one tensor: their grade, or a box for which they miss an element."""

    grade: Grade
    missed: str = ""


@dataclass(frozen=True, slots=True)
class Unproven:
    """Why isl has nothing to say about a tensor."""

    reason: str


@cache
def prove(analysis: Analysis) -> dict[str, Proof | Unproven]:
    """Return, for every tensor that is read, what isl proves of its regions."""
    tensors = dict.fromkeys(access.tensor for access in analysis.accesses)
    return {tensor: _prove(analysis, tensor) for tensor in tensors}


def _prove(analysis: Analysis, tensor: str) -> Proof | Unproven:
    accesses = [access for access in analysis.accesses if access.tensor == tensor]
    try:
        proofs = [_prove_access(analysis, access) for access in accesses]
        missed = next((proof.missed for proof in proofs if proof.missed), "")
        if len(proofs) == 1 or missed:
            return Proof(worst(proof.grade for proof in proofs), missed)
    except InexpressibleError as error:
        return Unproven(f"isl cannot express {error}")
    except isl.Error:
        return Unproven("isl gave up")
    tight = worst([Grade.TIGHT, *(proof.grade for proof in proofs)])
    try:
        return Proof(_grade_hull(analysis, accesses, tight))
    except (InexpressibleError, isl.Error):
        return Proof(tight)


class _Boxes:
    """The symbols of a box of the iteration space, and what is known about them."""

    def __init__(self, analysis: Analysis, operations: int = MAX_OPERATIONS) -> None:
        self.analysis = analysis
        self.terms = Terms(operations)
        self.split = {split.variable for split in analysis.splits if isinstance(split, SplitVariable)}
        self.refined = analysis.refined

    def known(self, variables: Sequence[str]) -> Values:
        """Boxes are not empty and lie within the extents; sources of one extent agree."""
        terms, values = self.terms, self.terms.everything()
        for name in variables:
            lower, upper = terms(lower_symbol(name)), terms(upper_symbol(name))
            extent = terms(self.analysis.extents.of[name])
            values &= lower.lt_set(upper)
            if name in self.split:
                values &= terms.number(0).le_set(lower) & upper.le_set(extent)
            else:
                values &= lower.eq_set(terms.number(0)) & upper.eq_set(extent)
            for source in self.analysis.extents.sources:
                if source.variable == name:
                    values &= terms(source.extent).eq_set(extent)
        return values

    def inside(self, access: Access, axis: int) -> Values:
        """Return elements of a tensor along one axis."""
        place, extent = self.terms(place_symbol(axis)), self.terms(extent_symbol(access.tensor, axis))
        return self.terms.number(0).le_set(place) & place.lt_set(extent)

    def fits(self, access: Access, axes: Sequence[int]) -> Values:
        """Return shapes that binding accepts: an index that is not padded stays inside its tensor."""
        terms, outside = self.terms, self.terms.nothing()
        affine = [axis for axis in axes if isinstance(access.indices[axis], Affine) and not access.padded]
        names = _variables(access, affine)
        symbols = {name: value_symbol(name) for name in names}
        space = terms.everything()
        for name in names:
            value, extent = terms(symbols[name]), terms(self.analysis.extents.of[name])
            space &= terms.number(0).le_set(value) & value.lt_set(extent)
        for axis in affine:
            index, extent = access.indices[axis], terms(extent_symbol(access.tensor, axis))
            assert isinstance(index, Affine)
            place = terms(expression(index, symbols))
            outside |= space & (place.lt_set(terms.number(0)) | place.ge_set(extent))
        return terms.everything() - terms.without(outside, list(symbols.values()))

    def read(self, access: Access, axes: Sequence[int]) -> Values:
        """Return places along these axes that an access reads; any place if an index depends on data."""
        terms, values = self.terms, self.terms.everything()
        names = _variables(access, axes)
        for name in names:
            value = terms(value_symbol(name))
            values &= terms(lower_symbol(name)).le_set(value) & value.lt_set(terms(upper_symbol(name)))
        for axis in axes:
            index = access.indices[axis]
            values &= self.inside(access, axis)
            if isinstance(index, Affine):
                form = expression(index, {name: value_symbol(name) for name in names})
                values &= terms(place_symbol(axis)).eq_set(terms(form))
        return terms.without(values, [value_symbol(name) for name in names])

    def ends(self, access: Access, axis: int) -> tuple[Piecewise, Piecewise]:
        """Return the first place of a region along an axis and the one after the last, clipped."""
        index = access.indices[axis]
        zero, extent = self.terms.number(0), self.terms(extent_symbol(access.tensor, axis))
        if not isinstance(index, Affine):
            return zero, extent
        first, last = bounds(index)
        return self.terms(first).max(zero), self.terms(last + 1).min(extent)

    def region(self, access: Access, axes: Sequence[int]) -> Values:
        """Return places of a region along these axes."""
        values = self.terms.everything()
        for axis in axes:
            place = self.terms(place_symbol(axis))
            lower, upper = self.ends(access, axis)
            values &= lower.le_set(place) & place.lt_set(upper)
        return values

    def full(self, access: Access) -> Values:
        """Return where the region of an access is not empty."""
        values = self.terms.everything()
        for axis in range(len(access.indices)):
            lower, upper = self.ends(access, axis)
            values &= lower.lt_set(upper)
        return values

    def settled(self, access: Access, axis: int) -> bool:
        """Return whether the reader replaces the bounds of this axis by those of the values themselves."""
        column = sum(len(a.indices) for a in self.analysis.accesses[: self.analysis.accesses.index(access)])
        return column + axis in self.refined


def _prove_access(analysis: Analysis, access: Access) -> Proof:
    grades, missed = [], ""
    for axes in _components(access):
        if isinstance(access.indices[axes[0]], DataDependent):
            grades.append(Grade.LOOSE)
            continue
        boxes = _Boxes(analysis)
        known = boxes.known(_variables(access, axes)) & boxes.fits(access, axes)
        read = boxes.read(access, axes) & known
        region = boxes.region(access, axes) & known
        outside = read - region
        if not outside.is_empty():
            missed = f"reads {access.tensor} outside of its region where {boxes.terms.example(outside)}"
        if region.is_subset(read):
            grades.append(Grade.EXACT)
            continue
        tight = all(
            _meets(boxes, [access], axis, read, region, known) or boxes.settled(access, axis) for axis in axes
        )
        grades.append(Grade.TIGHT if tight else Grade.LOOSE)
    return Proof(worst(grades), missed)


def _grade_hull(analysis: Analysis, accesses: Sequence[Access], otherwise: Grade) -> Grade:
    """Return how well the hull around several accesses fits what they read together."""
    boxes = _Boxes(analysis, HULL_OPERATIONS)
    axes = range(len(accesses[0].indices))
    known = boxes.known(list(dict.fromkeys(name for access in accesses for name in access.enclosing)))
    read, region = boxes.terms.nothing(), boxes.terms.everything()
    for access in accesses:
        known &= boxes.fits(access, axes)
        if not any(isinstance(index, DataDependent) for index in access.indices):
            read |= boxes.read(access, axes)
    for axis in axes:
        place = boxes.terms(place_symbol(axis))
        above, below = boxes.terms.nothing(), boxes.terms.nothing()
        for access in accesses:
            lower, upper = boxes.ends(access, axis)
            full = boxes.full(access)
            above |= full & lower.le_set(place)
            below |= full & place.lt_set(upper)
        region &= above & below
    read, region = read & known, region & known
    if region.is_subset(read):
        return Grade.EXACT
    if otherwise is Grade.TIGHT:
        return Grade.TIGHT
    tight = all(_meets(boxes, accesses, axis, read, region, known) for axis in axes)
    return Grade.TIGHT if tight else Grade.LOOSE


def _meets(
    boxes: _Boxes, accesses: Sequence[Access], axis: int, read: Values, region: Values, known: Values
) -> bool:
    """Return whether something is read at both ends of a region along an axis, wherever the region is not
    empty.
    """
    terms = boxes.terms
    place = terms(place_symbol(axis))
    others = [place_symbol(other) for other in range(len(accesses[0].indices)) if other != axis]
    read, region = terms.without(read, others), terms.without(region, others)
    first, last = region, region
    for access in accesses:
        lower, upper = boxes.ends(access, axis)
        full = boxes.full(access) if len(accesses) > 1 else known
        first &= terms.everything() - (full & lower.lt_set(place))
        last &= terms.everything() - (full & place.lt_set(upper.sub(terms.number(1))))
    return bool(first.is_subset(read)) and bool(last.is_subset(read))


def _components(access: Access) -> list[list[int]]:
    """Return axes of an access in groups that share no variable: the elements that are read are the
    product of the groups.
    """
    moving = {axis: set(_variables(access, [axis])) for axis in range(len(access.indices))}
    return [sorted(axes) for axes in linked(moving)]


def _variables(access: Access, axes: Sequence[int]) -> list[str]:
    """Index variables that move an access along these axes."""
    indices = [access.indices[axis] for axis in axes]
    return list(dict.fromkeys(n for i in indices if isinstance(i, Affine) for n in variables_of(i)))


@cache
def place_symbol(axis: int) -> Formula:
    """Return a place along an axis of a tensor."""
    return symbol(f"place.{axis}")
