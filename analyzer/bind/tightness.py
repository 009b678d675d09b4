"""Find out whether regions hold only elements that are read, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, assert_never

from ...tdl.ast import Span
from ..indices.affine import (
    Absolute,
    Affine,
    DataDependent,
    IndexVariable,
    Minimum,
    Quotient,
    Remainder,
    WholeDimension,
    variables_of,
)
from ..indices.evaluate import value_at
from ..indices.formula import Formula
from ..indices.region import Region, Shape
from ..input_regions.access import Access


@dataclass(frozen=True, slots=True)
class Looseness:
    """A tensor whose region may hold elements that are not read."""

    tensor: str
    span: Span
    reason: str


class Image(NamedTuple):
    """Values of an index: first, last, and the largest distance between neighbours (at most)."""

    first: int
    last: int
    gap: int


@dataclass(frozen=True, slots=True)
class BoundSizes:
    """The sizes of everything that a description is bound to."""

    shapes: Mapping[str, Shape]
    """The shape of every tensor."""
    extents: Mapping[str, int]
    """The extent of every variable."""
    symbols: Mapping[Formula, int]
    """The extents of tensors by their symbols."""


def looseness(accesses: Sequence[Access], bound: BoundSizes) -> tuple[Looseness, ...]:
    """Return every tensor whose region of the whole iteration space is not known to be tight, and why."""
    found = []
    for tensor, group in groupby(accesses, key=lambda access: access.tensor):
        reached = [access for access in group if all(bound.extents[name] for name in access.enclosing)]
        reasons = [(access, _reason(access, bound)) for access in reached]
        loose = next(((access, reason) for access, reason in reasons if reason), None)
        if loose is None and not _covers([_region(bound, access) for access in reached]):
            loose = (reached[-1], "the elements that several accesses read do not form one box")
        if loose is not None:
            found.append(Looseness(tensor, loose[0].span, loose[1]))
    return tuple(found)


def _reason(access: Access, bound: BoundSizes) -> str:
    """Return why one access's region is not known to be tight; empty if it is."""
    moved: set[str] = set()
    for axis, (index, repeated) in enumerate(zip(access.indices, access.repeated, strict=True)):
        match index:
            case WholeDimension():
                continue
            case DataDependent():
                return f"the index of axis {axis} depends on data: any of its elements may be read"
            case Affine():
                pass
            case _:
                assert_never(index)
        if repeated is not None:
            return f"'{repeated}' occurs more than once in the index of axis {axis}"
        moving = {name for name in variables_of(index) if bound.extents[name] > 1}
        if moved & moving:
            return f"'{min(moved & moving)}' moves more than one axis: the elements read do not form a box"
        moved |= moving
        if _image(index, bound).gap > 1:
            return f"the index of axis {axis} steps over elements"
    return ""


def _image(form: Affine, bound: BoundSizes) -> Image:
    """Return the values of an index over the whole iteration space."""
    constant = value_at(form.constant, bound.symbols)
    parts = [Image(constant, constant, 0)]
    for coefficient, atom in form.terms:
        factor = value_at(coefficient, bound.symbols)
        match atom:
            case IndexVariable(name):
                image = Image(0, bound.extents[name] - 1, 1)
            case Quotient(value, divisor):
                inner, by = _image(value, bound), value_at(divisor, bound.symbols)
                image = Image(inner.first // by, inner.last // by, -(-inner.gap // by))
            case Remainder(value, divisor):
                image = _remainder(_image(value, bound), value_at(divisor, bound.symbols))
            case Minimum(left, right):
                image = _minimum(_image(left, bound), _image(right, bound))
            case Absolute(value):
                image = _absolute(_image(value, bound))
            case _:
                assert_never(atom)
        ends = sorted((factor * image.first, factor * image.last))
        parts.append(Image(ends[0], ends[1], abs(factor) * image.gap if ends[0] < ends[1] else 0))
    return _sum(parts)


def _sum(parts: list[Image]) -> Image:
    """Return sums of one value of each part: a part that reaches across another's gaps fills them."""
    first, last, gap = 0, 0, 0
    for part in sorted(parts, key=lambda image: image.gap):
        gap = max(gap, part.gap - (last - first))
        first, last = first + part.first, last + part.last
    return Image(first, last, gap)


def _remainder(inner: Image, divisor: int) -> Image:
    if inner.first // divisor == inner.last // divisor:
        return Image(inner.first % divisor, inner.last % divisor, inner.gap)
    whole = inner.gap <= 1 and inner.last - inner.first >= divisor - 1
    return Image(0, divisor - 1, 1 if whole else divisor)


def _minimum(one: Image, other: Image) -> Image:
    """Return the minimum's values. The part that begins first leaves at most its own gaps."""
    first = min(one.first, other.first)
    gap = min(image.gap for image in (one, other) if image.first == first)
    return Image(first, min(one.last, other.last), gap)


def _absolute(inner: Image) -> Image:
    """Return absolute values. If the values cross 0, how the two signs interleave is not examined."""
    if inner.first >= 0 or inner.last <= 0:
        first, last = sorted((abs(inner.first), abs(inner.last)))
        return Image(first, last, inner.gap)
    last = max(-inner.first, inner.last)
    return Image(0, last, inner.gap if inner.gap <= 1 else last + 1)


def _covers(regions: list[Region]) -> bool:
    """Return whether the union of boxes is known to be their hull: they differ along one dimension, without
    gaps.
    """
    distinct = sorted({region for region in regions if all(lower < upper for lower, upper in region)})
    if len(distinct) < 2:
        return True
    columns = list(zip(*distinct, strict=True))
    hull = tuple((min(low for low, _ in column), max(high for _, high in column)) for column in columns)
    if hull in distinct:
        return True
    differing = [axis for axis, column in enumerate(columns) if len(set(column)) > 1]
    if len(differing) != 1:
        return False
    reached = distinct[0][differing[0]][1]
    for region in distinct:
        lower, upper = region[differing[0]]
        if lower > reached:
            return False
        reached = max(reached, upper)
    return True


def _region(bound: BoundSizes, access: Access) -> Region:
    """Return what one access reads over the whole iteration space, clipped to the tensor."""
    shape = bound.shapes[access.tensor]
    region = []
    for index, extent in zip(access.indices, shape, strict=True):
        if isinstance(index, Affine):
            image = _image(index, bound)
            region.append((max(image.first, 0), min(image.last + 1, extent)))
        else:
            region.append((0, extent))
    return tuple(region)
