"""Learning rates as functions of the step, and the values that are fed to the graph for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ..dataflow.optimizer import Optimizer


class LearningRate(Protocol):
    """The learning rate at a step; steps count from 0 over all epochs."""

    def __call__(self, step: int, /) -> float: ...


@dataclass(frozen=True, slots=True)
class ConstantRate:
    """The same rate at every step."""

    rate: float

    def __call__(self, step: int, /) -> float:
        return self.rate


@dataclass(frozen=True, slots=True)
class CosineRate:
    """A rate that rises linearly at first and then falls along a cosine."""

    rate: float
    """The highest rate."""

    steps: int
    """The step at which `final_rate` is reached."""

    warmup_steps: int = 0
    """The steps in which the rate rises to the highest one; 0 to begin with it."""

    final_rate: float = 0.0
    """The rate at the end."""

    def __call__(self, step: int, /) -> float:
        if step < self.warmup_steps:
            return self.rate * (step + 1) / self.warmup_steps
        falling = max(self.steps - self.warmup_steps, 1)
        done = min((step - self.warmup_steps) / falling, 1.0)
        return self.final_rate + (self.rate - self.final_rate) * (1 + math.cos(math.pi * done)) / 2


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
