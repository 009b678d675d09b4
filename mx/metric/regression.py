"""Measures of differences, and of outputs that are losses themselves."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DataError
from ..ndarray.array import as_array
from .base import Array, EvalMetric, register


class _OfBatch(EvalMetric):
    """Means over batches of a measure of the whole batch."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name or type(self).__name__.lower(), **kwargs)

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if label.size != pred.size:
            raise DataError(
                f"metric '{self.name}' has a label {label.shape} for an output {pred.shape}; both need as "
                "many elements"
            )
        return self.of(label.reshape(pred.shape).astype(np.float64) - pred), 1

    @abstractmethod
    def of(self, difference: Array) -> float:
        """Return the measure of one batch."""


@register
class MAE(_OfBatch):
    """Mean absolute difference."""

    def of(self, difference: Array) -> float:
        return float(np.abs(difference).mean())


@register
class MSE(_OfBatch):
    """Mean squared difference."""

    def of(self, difference: Array) -> float:
        return float((difference**2).mean())


@register
class RMSE(_OfBatch):
    """Root of the mean squared difference, of each batch."""

    def of(self, difference: Array) -> float:
        return math.sqrt((difference**2).mean())


@register
class Loss(EvalMetric):
    """The mean of the outputs themselves, for networks that end in MakeLoss."""

    def __init__(self, name: str = "loss", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        for pred in preds:
            self.sum_metric += float(as_array(pred).sum())
            self.num_inst += as_array(pred).size
