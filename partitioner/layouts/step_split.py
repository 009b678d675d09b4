"""Tofu's layouts and strategies written as one choice per step, and when such a choice is legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape, split, whole
from ...errors import PlanError

Strategies = tuple[str | None, ...]
Dimensions = tuple[int | None, ...]
Choice = tuple[str | int | None, ...]
"""Strategies or dimensions, where it does not matter which."""


def prime_factors(workers: int) -> tuple[int, ...]:
    """`workers` as a product of primes, largest first: 12 is (3, 2, 2); 1 is empty."""
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
    """Step `i` splits `dimensions[i]` of a tensor in `factors[i]` parts; None replicates it instead."""

    shape: Shape
    dimensions: Dimensions
    factors: tuple[int, ...]

    @property
    def regions(self) -> Boxes:
        """The region of every worker: `[workers, dimensions, 2]` (Tofu, section 5.2)."""
        return split(whole(self.shape), self.dimensions, self.factors)

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        counts = [1] * len(self.shape)
        for dimension, factor in zip(self.dimensions, self.factors, strict=True):
            if dimension is not None:
                counts[dimension] *= factor
        return tuple(counts)

    def check(self, place: str) -> None:
        """Raise PlanError where a dimension does not exist or has fewer elements than parts."""
        extents = list(self.shape)
        _check_steps(self.dimensions, self.factors, place)
        for step, (dimension, factor) in enumerate(zip(self.dimensions, self.factors, strict=True)):
            if dimension is None:
                continue
            if not 0 <= dimension < len(extents):
                raise PlanError(
                    f"{place}, step {step + 1}: dimension {dimension} of a tensor of shape {self.shape}; "
                    f"choose one of 0 to {len(extents) - 1}, or null to replicate"
                )
            if extents[dimension] < factor:
                raise PlanError(
                    f"{place}, step {step + 1}: dimension {dimension} has {extents[dimension]} elements left "
                    f"in a group, too few for {factor} parts"
                )
            extents[dimension] //= factor


def check_strategies(bound: Bound, strategies: Strategies, factors: Sequence[int], place: str) -> None:
    """Raise PlanError where a variable has no strategy or has fewer values than parts."""
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
        raise PlanError(f"{place}: {len(choices)} choices for {len(factors)} steps")
