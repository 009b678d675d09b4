"""Times of work that was not measured, from measured times of work of the same kind and other sizes.

Variables: the seconds of a unit of each amount, such as a start, an operation, a byte; none is negative.
Objective: the sum of squared relative errors on the measured times, and, with a small weight, of relative
distances from the estimated seconds of the units, scaled to the measured times. That term decides if fewer
sizes were measured than there are amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WEIGHT = 0.03
"""The weight of the estimated seconds of the units."""

SHORTEST_SECONDS = 1e-12


@dataclass(frozen=True, slots=True)
class UnitTimes:
    """The seconds of a unit of each amount."""

    units: tuple[float, ...]

    def seconds(self, amounts: Sequence[int]) -> float:
        """Return the time of work."""
        return sum(unit * amount for unit, amount in zip(self.units, amounts, strict=True))


def fit(rows: Sequence[Sequence[int]], seconds: Sequence[float], estimates: Sequence[float]) -> UnitTimes:
    """Fit the seconds of units to `seconds`, of work with amounts `rows`.

    `estimates` are the estimated seconds of the units, all positive.
    """
    from scipy.optimize import nnls

    estimated = np.array(rows, float) * np.array(estimates)  # [work, amount]
    measured = np.array(seconds)
    scale = float(np.median(measured / np.maximum(estimated.sum(axis=1), SHORTEST_SECONDS)))
    prior = WEIGHT * np.eye(len(estimates))
    matrix = np.concatenate([estimated * scale / measured[:, None], prior])
    target = np.concatenate([np.ones(len(measured)), prior.sum(axis=1)])
    factors, _ = nnls(matrix, target)
    return UnitTimes(tuple((factors * scale * np.array(estimates)).tolist()))
