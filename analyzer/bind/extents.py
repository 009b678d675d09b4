"""Infer the extent of every index variable from the shapes of the tensors that it indexes.

The first of these that applies gives the extent:
- an extent stated by a binder;
- the extent of a dimension that the variable alone indexes;
- the largest extent for which an affine index stays inside its tensor, once all other variables of that index
  are known; the smallest of these if there are several.

A padded access may leave its tensor, so it limits nothing. If nothing else is known of a variable, a
dimension that it alone indexes in a padded access gives its extent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from ...errors import DescriptionError
from ...tdl import ast
from ..indices.affine import (
    Absolute,
    Affine,
    IndexVariable,
    Minimum,
    Quotient,
    Remainder,
    WholeDimension,
    constant,
    extent_symbol,
    variables_of,
)
from ..indices.formula import ZERO, Formula, floor_quotient, least
from ..indices.intervals import Interval, bounds, scaled
from ..indices.measures import sign
from ..input_regions.access import IterationSpace
from ..source_errors import error_at


@dataclass(frozen=True, slots=True)
class ExtentSource:
    """A dimension of a tensor, or a binder, that fixes a variable's extent."""

    variable: str
    """The name of the index variable."""

    extent: Formula
    """The extent, in symbols for the dimensions of tensors."""

    place: str
    """The dimension or binder, in words, for error messages."""

    span: ast.Span
    """The place in the text of the description."""


@dataclass(slots=True)
class SymbolicExtents:
    """`of[variable]` in symbols, and all the sources that must agree with it."""

    of: dict[str, Formula] = field(default_factory=dict)
    sources: list[ExtentSource] = field(default_factory=list)


def infer(found: IterationSpace) -> SymbolicExtents:
    """Return symbolic extents of all variables. Raises DescriptionError if one cannot be inferred."""
    extents = SymbolicExtents()
    _adopt(extents, _stated(found))
    stated = frozenset(extents.of)
    _adopt(
        extents, (source for source in _indexed_alone(found, padded=False) if source.variable not in stated)
    )
    _solve(found, extents)
    return extents


def _adopt(extents: SymbolicExtents, sources: Iterable[ExtentSource]) -> None:
    """Take extents from sources. All of them must agree later."""
    for source in sources:
        extents.of.setdefault(source.variable, source.extent)
        extents.sources.append(source)


def _stated(found: IterationSpace) -> Iterator[ExtentSource]:
    for binder in found.binders:
        if binder.extent is not None:
            extent = constant(found.description, binder.extent)
            yield ExtentSource(binder.name, extent, "its binder", binder.span)


def _indexed_alone(found: IterationSpace, padded: bool) -> Iterator[ExtentSource]:
    for access in found.accesses:
        for axis, index in enumerate(access.indices):
            if isinstance(index, Affine) and index.bare and access.padded == padded:
                place = f"axis {axis} of {access.tensor}"
                yield ExtentSource(index.bare, extent_symbol(access.tensor, axis), place, access.span)


def _solve(found: IterationSpace, extents: SymbolicExtents) -> None:
    """Solve for variables of affine indices, first for those whose every index has one unknown only."""
    known = extents.of
    while missing := [name for name in found.variables if name not in known]:
        limits = {name: list(_limits(found, name, known)) for name in missing}
        solvable = [name for name in missing if any(limit is not None for limit in limits[name])]
        complete = [name for name in solvable if None not in limits[name]]
        if solvable:
            name = (complete or solvable)[0]
            known[name] = _smallest([limit for limit in limits[name] if limit is not None])
            continue
        weak = [*_indexed_alone(found, padded=True), *_opaque_results(found)]
        chosen = next((source.variable for source in weak if source.variable in missing), None)
        if chosen is None:
            raise _unknown(found, missing[0])
        _adopt(extents, (source for source in weak if source.variable == chosen))


def _limits(found: IterationSpace, name: str, known: Mapping[str, Formula]) -> Iterator[Formula | None]:
    """Yield the largest extent by every index that limits a variable; None while others are unknown."""
    for access in found.accesses:
        if access.padded:
            continue
        for axis, index in enumerate(access.indices):
            if not isinstance(index, Affine) or name not in _limiting(index):
                continue
            if any(other != name and other not in known for other in variables_of(index)):
                yield None
            else:
                last = extent_symbol(access.tensor, axis) - 1
                yield from _largest(index, name, ZERO, last, known)


def _largest(
    form: Affine, name: str, low: Formula, high: Formula, known: Mapping[str, Formula]
) -> Iterator[Formula]:
    """Yield the largest extent of a variable for which the form stays within `[low, high]`, if it has one.

    The variable may be in one term, and in remainders besides, which count with their whole range.
    """

    def ends(variable: str) -> Interval:
        return Interval(ZERO, known[variable] - 1)

    moving = []
    rest = Interval(form.constant, form.constant)
    for coefficient, atom in form.terms:
        if name not in variables_of(Affine(ZERO, ((coefficient, atom),))):
            part = bounds(Affine(ZERO, ((coefficient, atom),)), ends)
        elif isinstance(atom, Remainder):
            part = scaled(coefficient, Interval(ZERO, atom.divisor - 1))
        else:
            moving.append((coefficient, atom))
            continue
        rest = Interval(rest.first + part.first, rest.last + part.last)
    if len(moving) != 1:
        return
    ((coefficient, atom),) = moving
    below, above = low - rest.first, high - rest.last
    if sign(coefficient).nonnegative:
        below, above = -floor_quotient(-below, coefficient), floor_quotient(above, coefficient)
    elif sign(coefficient).nonpositive:
        below, above = -floor_quotient(above, -coefficient), floor_quotient(-below, -coefficient)
    else:
        return
    match atom:
        case IndexVariable():
            yield above + 1
        case Quotient(value, divisor):
            yield from _largest(value, name, divisor * below, divisor * above + divisor - 1, known)
        case Minimum() | Absolute():
            return
        case _:
            assert_never(atom)


def _limiting(form: Affine) -> set[str]:
    """Return variables that carry an index out of a tensor: those outside of remainders, minima, absolute
    values.
    """
    found: set[str] = set()
    for _, atom in form.terms:
        match atom:
            case IndexVariable(name):
                found.add(name)
            case Quotient(value, _):
                found |= _limiting(value)
            case Remainder() | Minimum() | Absolute():
                pass
            case _:
                assert_never(atom)
    return found


def _smallest(limits: list[Formula]) -> Formula:
    distinct = list(dict.fromkeys(limits))
    return distinct[0] if len(distinct) == 1 else least(*distinct)


def _opaque_results(found: IterationSpace) -> Iterator[ExtentSource]:
    """Yield result indices of opaque functions, each with the `:` at its place.

    An opaque function's result has the shape of its first argument's slice unless extents are stated.
    """
    for use in found.opaques:
        if not use.arguments:
            continue
        first = use.arguments[0]
        whole = [axis for axis, index in enumerate(first.indices) if isinstance(index, WholeDimension)]
        if len(whole) != len(use.indices):
            continue
        for index, axis in zip(use.indices, whole, strict=True):
            if isinstance(index, ast.Variable):
                place = f"axis {axis} of {first.tensor}"
                yield ExtentSource(index.name, extent_symbol(first.tensor, axis), place, use.span)


def _unknown(found: IterationSpace, name: str) -> DescriptionError:
    span = next(binder.span for binder in found.binders if binder.name == name)
    message = f"the extent of index variable '{name}' cannot be inferred from the tensors it indexes"
    return error_at(found.description, span, message, f"state it: lambda {name}=<extent>: ...")
