"""Metrics: compare a model's outputs with labels, as means over rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.checked_argument import array_of, require
from ..support.wording import alternatives

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of outputs against labels."""

    name: str
    """The name by which users choose it."""

    rows: Callable[[Array, Array], Values]
    """`rows(label, output)` returns a value for each row of the output, which depends on that row alone."""

    finish: Callable[[float], float] = float
    """Turns the mean of these values into the metric."""

    higher_is_better: bool = False
    """Whether a larger value is a better one."""

    def values(self, label: Array, output: Array) -> Values:
        """Return the value of each row. Raises DataError if `rows` does not give an array of numbers."""
        values = array_of(self.rows(label, output), f"metric {self.name}", DataError)
        if values.dtype.kind not in "buif" or values.ndim == 0 or not values.size:
            raise DataError(
                f"metric '{self.name}' gave {values.dtype} {values.shape} for an output of shape "
                f"{output.shape}; its `rows` must return an array with a number for each row"
            )
        return values

    def finished(self, mean: float) -> float:
        """Return the metric for the mean of values. Raises DataError if `finish` does not give a number."""
        found: object = self.finish(mean)
        require(isinstance(found, SupportsFloat), found, f"metric '{self.name}'", "a number", DataError)
        return float(found)  # type: ignore[arg-type]


@dataclass(slots=True)
class Tally:
    """A metric's running mean."""

    metric: Metric
    total: float = 0.0
    rows: int = 0

    def add(self, pairs: Sequence[tuple[Array, Array]]) -> float:
        """Count one batch's (label, output) pairs and return the metric of that batch alone."""
        return self.count(np.concatenate([self.metric.values(label, output) for label, output in pairs]))

    def count(self, values: Values) -> float:
        """Count the values of a batch's rows and return the metric of that batch alone."""
        batch = float(values.sum())
        self.total += batch
        self.rows += values.size
        return self.metric.finished(batch / values.size)

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally of the same metric."""
        self.total += other.total
        self.rows += other.rows

    @property
    def value(self) -> float:
        """Return the metric over everything counted; NaN before that."""
        return self.metric.finished(self.total / self.rows) if self.rows else math.nan


def row_labels(label: Array, output: Array) -> Array:
    """Return a label for each row of the output `[rows, classes]`.

    Raises DataError for an output of another form, and unless there are as many labels as rows.
    """
    if output.ndim != 2 or label.size != output.shape[0]:
        raise DataError(
            "a metric of classes needs outputs [rows, classes] and a label for each row, but the output has "
            f"shape {output.shape} and the label {label.shape}; for numbers measure another one, such as "
            "metric='mse', and metric=[] measures nothing"
        )
    return label.reshape(-1)


def check_classes(label: Array, classes: int) -> None:
    """Raise DataError for a label that is not the number of a class."""
    if label.size and not 0 <= label.min() <= label.max() < classes:
        raise DataError(f"labels run from {label.min()} to {label.max()}, but there are {classes} classes")
    fractions = np.extract(label % 1, label)
    if fractions.size:
        raise DataError(
            f"a label is {fractions[0]}, but a metric of classes needs their numbers, 0 to {classes - 1}; "
            "for numbers measure another one, such as metric='mse'"
        )


def surprises(classes: Array, output: Array, smallest: float, added: float = 0.0) -> Values:
    """Return minus the logarithm of the probability of each row's class, plus `added`.

    Probabilities below `smallest` count as it.
    """
    chosen = output[np.arange(len(output)), classes].astype(np.float64)
    surprise: Values = -np.log(np.maximum(chosen + added, smallest))
    return surprise


def _classes(label: Array, output: Array) -> npt.NDArray[np.int64]:
    labels = row_labels(label, output)
    check_classes(labels, output.shape[1])
    return labels.astype(np.int64)


def _correct(label: Array, output: Array) -> Values:
    correct: Values = (_classes(label, output) == output.argmax(axis=1)).astype(np.float64)
    return correct


def _surprise(label: Array, output: Array) -> Values:
    return surprises(_classes(label, output), output, 1e-30)


def _squared(label: Array, output: Array) -> Values:
    if label.size != output.size:
        raise DataError(
            f"the metric 'mse' needs a label for each number of the output, but the output has shape "
            f"{output.shape} and the label {label.shape}"
        )
    difference = output.astype(np.float64).reshape(len(output), -1)
    difference -= label.astype(np.float64).reshape(len(output), -1)
    squared: Values = (difference**2).mean(axis=1)
    return squared


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "accuracy": Metric("accuracy", _correct, higher_is_better=True),
        "cross-entropy": Metric("cross-entropy", _surprise),
        "perplexity": Metric("perplexity", _surprise, math.exp),
        "mse": Metric("mse", _squared),
    }
)


def get_metric(metric: Metric | str) -> Metric:
    """Return the metric, or look it up by name. Raises DataError for an unknown name."""
    if isinstance(metric, Metric):
        return metric
    require(isinstance(metric, str), metric, "metric", "the name of a metric, or a Metric", DataError)
    if metric not in METRICS:
        raise DataError(f"there is no metric '{metric}'{alternatives(metric, METRICS)}")
    return METRICS[metric]
