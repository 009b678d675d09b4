"""Restrictions: the choices of operations and tensors that constraints leave to the search.

For one class of a `Problem` with the choices `c[0], c[1], ...`, one per step, a restriction demands

    c[i] == pin[i]              for every step i that is pinned
    c[i] not in forbidden       for every step i, if c[i] is a label (an index variable, a dimension)

If a step of a restricted class has nothing left to split along, it replicates. Implemented in:
`Restriction.allows` and `fits` (one class), `Restrictions.variables` and `dimensions` (only allowed choices,
for methods that make them step by step), `Restrictions.priced` (a price on all others, for methods that take
choices as they are).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..layouts.forms import Partial

if TYPE_CHECKING:
    from ...analyzer.bind.bound import Bound
    from ..layouts.step_split import Choice, Dimensions, Strategies
    from ..solvers.elimination import CostTable
    from .candidates import KeepDimensions, KeepVariables

FREE: Literal["*"] = "*"
"""In a pin: this step is left to the search. No index variable has such a name."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """The choices that one class may make."""

    pins: Choice
    """For each step a label, None to replicate, or `FREE`."""

    forbidden: frozenset[str | int] = frozenset()
    """The labels that are never split."""

    def allows(self, sequence: Strategies | Dimensions) -> bool:
        """Tell whether a sequence of at most as many steps obeys this."""
        pinned = zip(sequence, self.pins, strict=False)
        return self.forbidden.isdisjoint(sequence) and all(pin in (FREE, label) for label, pin in pinned)

    def fits(
        self, sequence: Strategies | Dimensions, extents: Mapping[str | int, int], factors: Sequence[int]
    ) -> bool:
        """Tell whether the pins of later steps still find enough values after the steps of `sequence`."""
        left = dict(extents)
        later = self.pins[len(sequence) :]
        for label, factor in zip((*sequence, *later), factors, strict=True):
            if label is None or label == FREE or isinstance(label, Partial):
                continue
            if left[label] < factor:
                return False
            left[label] //= factor
        return True


@dataclass(frozen=True, slots=True)
class _Remaining:
    """The choices that a restriction leaves to the step after `earlier`, usable as a key of caches."""

    restriction: Restriction
    earlier: Strategies | Dimensions
    factors: tuple[int, ...]

    @property
    def pin(self) -> str | int | None:
        return self.restriction.pins[len(self.earlier)]

    def allows(self, label: str | int | Partial | None, extents: Mapping[str | int, int]) -> bool:
        """Tell whether this step may take a label and leave enough for what later steps must take."""
        if label in self.restriction.forbidden:
            return False
        return self.restriction.fits((*self.earlier, label), extents, self.factors)


@dataclass(frozen=True, slots=True)
class _RestrictedVariables(_Remaining):
    keep: KeepVariables

    def __call__(self, bound: Bound, fitting: tuple[str, ...]) -> Strategies:
        if self.pin != FREE:
            assert not isinstance(self.pin, int), "operators are pinned to variables"
            return (self.pin,)
        extents = dict[str | int, int](bound.extents.items())
        allowed = tuple(variable for variable in fitting if self.allows(variable, extents))
        return self.keep(bound, allowed) or allowed


@dataclass(frozen=True, slots=True)
class _RestrictedDimensions(_Remaining):
    keep: KeepDimensions
    shape: tuple[int, ...]

    def __call__(self, fitting: Dimensions) -> Dimensions:
        if self.pin != FREE:
            assert not isinstance(self.pin, str), "tensors are pinned to dimensions"
            return (self.pin,)
        extents = dict[str | int, int](enumerate(self.shape))
        allowed = tuple(dimension for dimension in fitting if self.allows(dimension, extents))
        return self.keep(allowed) or allowed


@dataclass(frozen=True)
class Restrictions:
    """The restrictions of a problem's operation and tensor classes, by number."""

    factors: tuple[int, ...] = ()
    operators: Mapping[int, Restriction] = field(default_factory=dict)
    tensors: Mapping[int, Restriction] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.operators or self.tensors)

    def variables(self, number: int, earlier: Strategies, keep: KeepVariables) -> KeepVariables:
        """Return the allowed variables after `earlier` that `keep` keeps; a pin overrides the method."""
        restriction = self.operators.get(number)
        return _RestrictedVariables(restriction, earlier, self.factors, keep) if restriction else keep

    def dimensions(
        self, number: int, shape: tuple[int, ...], earlier: Dimensions, keep: KeepDimensions
    ) -> KeepDimensions:
        """Return the allowed dimensions of a tensor after `earlier`, likewise."""
        restriction = self.tensors.get(number)
        return _RestrictedDimensions(restriction, earlier, self.factors, keep, shape) if restriction else keep

    def broken(
        self, strategies: Sequence[Strategies], dimensions: Sequence[Dimensions]
    ) -> tuple[list[int], list[int]]:
        """Return the operation and tensor classes whose choices break their restriction."""
        return (
            [number for number, kept in self.operators.items() if not kept.allows(strategies[number])],
            [number for number, kept in self.tensors.items() if not kept.allows(dimensions[number])],
        )

    def priced(
        self,
        cost_tables: list[CostTable],
        operators: Sequence[Sequence[Strategies]],
        tensors: Sequence[Sequence[Dimensions]],
    ) -> list[CostTable]:
        """Return the cost tables, with forbidden choices that cost more than any allowed assignment.

        The variables of the tables are operations, then tensors; their sequences are the domains. This is for
        searches that choose among sequences without calling `variables` and `dimensions`.
        """
        count = len(operators)
        barred: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]] = {}
        numbered: Iterable[tuple[int, Restriction, Sequence[Strategies] | Sequence[Dimensions]]] = (
            *((n, kept, operators[n]) for n, kept in self.operators.items()),
            *((count + n, kept, tensors[n]) for n, kept in self.tensors.items()),
        )
        for variable, restriction, sequences in numbered:
            mask = np.array([not restriction.allows(sequence) for sequence in sequences])
            if mask.any():
                barred[variable] = mask
        if not barred:
            return cost_tables
        price = 1 + sum(int(cost_table.table.max()) for cost_table in cost_tables)
        priced = []
        for cost_table in cost_tables:
            table = cost_table.table
            for axis, variable in enumerate(cost_table.scope):
                if variable in barred:
                    table = table + price * np.expand_dims(barred.pop(variable), 1 - axis)
            priced.append(cost_table if table is cost_table.table else cost_table._replace(table=table))
        return priced


UNRESTRICTED = Restrictions()
