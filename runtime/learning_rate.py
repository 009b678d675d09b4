"""Learning rates as functions of the step, and the values that are fed to the graph for them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from ..dataflow.optimizer import Optimizer
from ..errors import DataError
from ..support.checked_argument import is_count, is_number, require, require_count

SAMPLED_STEPS = 64
"""The steps of a run whose rates processes compare."""


class LearningRate(Protocol):
    """The learning rate at a step; steps count from 0 over all epochs."""

    def __call__(self, step: int, /) -> float: ...


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """The same rate at every step."""

    rate: float

    def __post_init__(self) -> None:
        _require_numbers(rate=self.rate)

    def __call__(self, step: int, /) -> float:
        return self.rate


@dataclass(frozen=True, slots=True)
class _FallingRate(ABC):
    """A rate that rises linearly at first and then falls."""

    rate: float
    """The highest rate."""

    steps: int
    """The step at which `final_rate` is reached."""

    warmup_steps: int = 0
    """The steps in which the rate rises to the highest one; 0 to begin with it."""

    final_rate: float = 0.0
    """The rate at the end."""

    def __post_init__(self) -> None:
        _require_numbers(rate=self.rate, final_rate=self.final_rate)
        require_count(self.steps, "steps", DataError)
        require_count(self.warmup_steps, "warmup_steps", DataError)

    def __call__(self, step: int, /) -> float:
        if step < self.warmup_steps:
            return self.rate * (step + 1) / self.warmup_steps
        falling = max(self.steps - self.warmup_steps, 1)
        left = self._left(min((step - self.warmup_steps) / falling, 1.0))
        return self.final_rate + (self.rate - self.final_rate) * left

    @abstractmethod
    def _left(self, done: float) -> float:
        """Return how far the rate is above the final one, as a share, when a share of the fall is done."""


class CosineRate(_FallingRate):
    """A rate that rises linearly at first and then falls along a cosine."""

    __slots__ = ()

    def _left(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2


class LinearRate(_FallingRate):
    """A rate that rises linearly at first and then falls linearly."""

    __slots__ = ()

    def _left(self, done: float) -> float:
        return 1 - done


@dataclass(frozen=True, slots=True)
class StepRate:
    """A rate that is multiplied by a factor at some steps."""

    rate: float
    """The rate at the beginning."""

    factor: float
    """The number by which it is multiplied."""

    steps: int | tuple[int, ...]
    """The steps from which it is multiplied once more; one number for all its multiples."""

    def __post_init__(self) -> None:
        _require_numbers(rate=self.rate, factor=self.factor)
        several = self.steps if isinstance(self.steps, tuple) else (self.steps,)
        fits = bool(several) and all(is_count(step, 1) for step in several)
        require(fits, self.steps, "steps", "an integer from 1 on, or a tuple of them", DataError)

    def __call__(self, step: int, /) -> float:
        if isinstance(self.steps, tuple):
            return self.rate * self.factor ** sum(step >= each for each in self.steps)
        return self.rate * self.factor ** (step // self.steps)


def _require_numbers(**settings: object) -> None:
    """Raise DataError that names the first of the settings that is not a finite number."""
    for name, value in settings.items():
        require(is_number(value), value, name, "a finite number", DataError)


def rate_at(rate: LearningRate, step: int) -> float:
    """Return the rate at a step. Raises DataError if it is not a finite number."""
    try:
        found = rate(step)
    except OverflowError:
        found = math.inf
    require(is_number(found), found, f"the learning rate of step {step}", "a finite number", DataError)
    return float(found)


def fed_rate(optimizer: Optimizer, rate: float, step: int) -> float:
    """Return the value for the graph's learning rate tensor at `step`.

    Moment estimates that start at zero are too small at first. If the update operator has such estimates
    (`beta1` and `beta2`), the correction is part of the rate, as in MXNet and in Adam's paper, section 2,
    unless the operator corrects them.
    """
    beta1, beta2 = optimizer.attributes.get("beta1"), optimizer.attributes.get("beta2")
    if beta1 is None or beta2 is None or optimizer.corrects:
        return rate
    return rate * math.sqrt(1 - beta2 ** (step + 1)) / (1 - beta1 ** (step + 1))


def sampled_rates(rate: LearningRate, steps: int) -> list[float]:
    """Return the rates of some of the steps of a run, evenly spread: what processes compare."""
    count = min(steps, SAMPLED_STEPS)
    return [rate_at(rate, number * (steps - 1) // max(count - 1, 1)) for number in range(count)]
