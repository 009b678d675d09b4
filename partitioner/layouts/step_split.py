"""Layouts and strategies as one choice per step (Tofu, section 5.2), and the rules for legal choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, split, whole
from ...errors import PlanError

Strategies = tuple[str | None, ...]
Dimensions = tuple[int | None, ...]
Choice = tuple[str | int | None, ...]
"""Strategies or dimensions, for code that treats both in the same way."""


def prime_factors(workers: int) -> tuple[int, ...]:
    """Factor `workers` into primes, largest first: 12 gives (3, 2, 2), and 1 gives ()."""
    factors: list[int] = []
    divisor = 2
    while divisor * divisor <= workers:
        while workers % divisor == 0:
            factors.append(divisor)
            workers //= divisor
        divisor += 1
    if workers > 1:
        factors.append(workers)
    return tuple(reversed(factors))


@dataclass(frozen=True, slots=True)
class SplitLayout:
    """The layout of a tensor that is split, or replicated, step by step."""

    shape: Shape
    """The tensor's shape."""

    dimensions: Dimensions
    """The dimension that each step splits; None if the step replicates the tensor."""

    factors: tuple[int, ...]
    """The number of parts that each step makes."""

    @property
    def regions(self) -> Boxes:
        """Return the region of every worker: `[workers, dimensions, 2]` (Tofu, section 5.2)."""
        return split(whole(self.shape), self.dimensions, self.factors)

    @property
    def parts(self) -> tuple[int, ...]:
        """Count the parts into which each dimension is cut."""
        counts = [1] * len(self.shape)
        for dimension, factor in zip(self.dimensions, self.factors, strict=True):
            if dimension is not None:
                counts[dimension] *= factor
        return tuple(counts)

    def check(self, place: str) -> None:
        """Raise PlanError if a dimension does not exist or has fewer elements than parts."""
        extents = list(self.shape)
        _check_steps(self.dimensions, self.factors, place)
        for step, (dimension, factor) in enumerate(zip(self.dimensions, self.factors, strict=True)):
            if dimension is None:
                continue
            if not 0 <= dimension < len(extents):
                raise PlanError(
                    f"{place}, step {step + 1}: a tensor of shape {self.shape} has no dimension {dimension}; "
                    f"choose one of 0 to {len(extents) - 1}, or null to replicate"
                )
            if extents[dimension] < factor:
                raise PlanError(
                    f"{place}, step {step + 1}: dimension {dimension} has {extents[dimension]} elements left "
                    f"in a group, too few for {factor} parts"
                )
            extents[dimension] //= factor


def check_strategies(bound: Bound, strategies: Strategies, factors: Sequence[int], place: str) -> None:
    """Raise PlanError if a variable has no strategy or has fewer values than parts."""
    extents = dict(bound.extents)
    _check_steps(strategies, factors, place)
    for step, (variable, factor) in enumerate(zip(strategies, factors, strict=True)):
        if variable is None:
            continue
        if variable not in extents or bound.kind(variable) is None:
            offered = [v for v in bound.variables if bound.kind(v) is not None]
            raise PlanError(
                f"{place}, step {step + 1}: {bound.description.name} cannot be split along {variable!r}; "
                f"its strategies are along {', '.join(offered) or 'no variable'}"
            )
        if extents[variable] < factor:
            raise PlanError(
                f"{place}, step {step + 1}: {variable!r} has {extents[variable]} values left in a group, "
                f"too few for {factor} parts"
            )
        extents[variable] //= factor


def _check_steps(choices: Sequence[object], factors: Sequence[int], place: str) -> None:
    if len(choices) != len(factors):
        raise PlanError(f"{place}: {len(choices)} choices for {len(factors)} steps; give one for each")
