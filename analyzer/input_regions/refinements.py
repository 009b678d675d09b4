"""Find the accesses whose regions need more than the bounds of their indices to be exact.

Clipping the bounds of an index is exact if its values have no gaps and no other index of the access moves
with it. Bounds are exact if every variable occurs once, except under the remainder or the absolute value of
an expression that moves in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from ...support.connected_groups import linked
from ..indices.affine import (
    Absolute,
    Affine,
    IndexVariable,
    Minimum,
    Quotient,
    Remainder,
    inside,
    variables_of,
)
from ..indices.evaluate import value_at
from ..indices.formula import Formula
from ..indices.value_range import values_of
from .access import Access
from .enumerated_bounds import Trial
from .padded_strides import Edge

Number = Callable[[Formula], int]


@dataclass(frozen=True, slots=True)
class Suspect:
    """An access whose bounds may not be exact; its dimensions are the columns from `start` on."""

    access: Access
    start: int


def suspects(accesses: Sequence[Access]) -> tuple[Suspect, ...]:
    """Return the accesses to examine once shapes are known."""
    found = []
    column = 0
    for access in accesses:
        forms = [index for index in access.indices if isinstance(index, Affine)]
        padded = access.padded and (access.shares_variables or any(map(_may_step, forms)))
        if padded or any(map(_repeats, forms)) or any(map(_may_be_inexact, forms)):
            found.append(Suspect(access, column))
        column += len(access.indices)
    return tuple(found)


def refinements(
    suspicious: Sequence[Suspect],
    variables: Sequence[str],
    symbols: tuple[Formula, ...],
    extents: Sequence[int],
) -> Iterator[Edge | Trial]:
    """Yield how to find the exact bounds of suspects, for the extents that `symbols` stand for."""
    places = {name: position for position, name in enumerate(variables)}
    known = dict(zip(symbols, extents, strict=True))
    number = partial(value_at, values=known)
    for suspect in suspicious:
        for axes in _groups(suspect.access):
            indices = (suspect.access.indices[axis] for axis in axes)
            forms = tuple(index for index in indices if isinstance(index, Affine))
            columns = tuple(suspect.start + axis for axis in axes)
            yield from _refined(suspect.access, forms, columns, places, symbols, extents, number)


def _refined(
    access: Access,
    forms: tuple[Affine, ...],
    columns: tuple[int, ...],
    places: Mapping[str, int],
    symbols: tuple[Formula, ...],
    extents: Sequence[int],
    number: Number,
) -> Iterator[Edge | Trial]:
    gaps = [_gap(form, number) for form in forms]
    always = any(_repeats(form) or _is_inexact(form, number) for form in forms)
    if not always and not (access.padded and (len(forms) > 1 or gaps[0] > 1)):
        return
    steps = _steps(forms[0], places, number) if len(forms) == 1 and not always else None
    if steps:
        factors, positions = zip(*steps, strict=True)
        yield Edge(columns[0], positions, factors)
        return
    names = tuple(dict.fromkeys(name for form in forms for name in variables_of(form)))
    program = values_of(forms, names, symbols)
    yield Trial(columns, tuple(places[name] for name in names), program.bind(len(names), extents), always)


def _groups(access: Access) -> list[list[int]]:
    """Return dimensions that move together: those of a padded access that share variables, else each for
    itself.
    """
    forms = {axis: index for axis, index in enumerate(access.indices) if isinstance(index, Affine)}
    moving = {axis: names for axis, form in forms.items() if (names := set(variables_of(form)))}
    return linked(moving) if access.padded else [[axis] for axis in moving]


def _gap(form: Affine, number: Number) -> int:
    """Return an upper bound on the distance between neighbouring values of an index, in any box."""
    gaps = [0]
    for coefficient, atom in form.terms:
        match atom:
            case IndexVariable():
                gap = 1
            case Quotient(value, divisor):
                gap = -(-_gap(value, number) // max(number(divisor), 1))
            case Remainder(_, divisor):
                gap = number(divisor)
            case Minimum(left, right):
                gap = max(_gap(left, number), _gap(right, number))
            case Absolute(value):
                gap = _gap(value, number)
            case _:
                assert_never(atom)
        gaps.append(abs(number(coefficient)) * gap)
    return max(gaps)


def _is_inexact(form: Affine, number: Number) -> bool:
    """Return whether the index holds a remainder or absolute value of something whose neighbours may be
    apart.
    """
    return any(
        (isinstance(atom, Remainder | Absolute) and _gap(atom.value, number) > 1)
        or any(_is_inexact(inner, number) for inner in inside(atom))
        for _, atom in form.terms
    )


def _steps(form: Affine, places: Mapping[str, int], number: Number) -> list[tuple[int, int]] | None:
    """Return absolute factors and positions of an index's variables; None if it is made of anything else."""
    steps = []
    for coefficient, atom in form.terms:
        if not isinstance(atom, IndexVariable):
            return None
        factor = abs(number(coefficient))
        if factor:
            steps.append((factor, places[atom.name]))
    return sorted(steps)


def _may_step(form: Affine) -> bool:
    """Return whether neighbouring values of an index may be apart for some shapes."""
    return any(
        coefficient.value is None
        or abs(coefficient.value) > 1
        or isinstance(atom, Remainder)
        or any(map(_may_step, inside(atom)))
        for coefficient, atom in form.terms
    )


def _may_be_inexact(form: Affine) -> bool:
    """Return whether `_is_inexact` may hold for some shapes."""
    return any(
        (isinstance(atom, Remainder | Absolute) and _may_step(atom.value))
        or any(map(_may_be_inexact, inside(atom)))
        for _, atom in form.terms
    )


def _repeats(form: Affine) -> bool:
    """Return whether a variable occurs more than once."""
    names = list(variables_of(form))
    return len(set(names)) < len(names)
