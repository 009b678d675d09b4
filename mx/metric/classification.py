"""Measures of chosen classes: how often right, how probable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...errors import DataError
from ...runtime.metrics import check_classes, row_labels, surprises
from .base import Array, EvalMetric, Listed, pairs, register


@register
class Accuracy(EvalMetric):
    """How often the largest number along `axis` is at the label's place."""

    names = ("acc",)

    def __init__(self, axis: int = 1, name: str = "accuracy", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.axis = axis

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.shape != label.shape:
            if not -pred.ndim <= self.axis < pred.ndim:
                raise DataError(
                    f"metric '{self.name}' has no dimension {self.axis} in outputs {pred.shape}; set axis= "
                    "to the dimension of the classes"
                )
            pred = pred.argmax(self.axis)
        if pred.size != label.size:
            raise DataError(
                f"metric '{self.name}' has {label.size} labels for {pred.size} outputs; give one label for "
                "each"
            )
        return float((pred.ravel().astype(np.int64) == label.ravel().astype(np.int64)).sum()), label.size


@register
class TopKAccuracy(EvalMetric):
    """How often the label is among the `top_k` largest numbers of a row."""

    names = ("top_k_accuracy", "top_k_acc")

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", **kwargs: Any) -> None:
        if top_k < 2:
            raise DataError(f"top_k is {top_k}; for the largest number alone take Accuracy")
        super().__init__(f"{name}_{top_k}", **kwargs)
        self.top_k = top_k

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        actual = row_labels(label, pred).astype(np.int64)
        top = np.argsort(pred, axis=1, kind="stable")[:, -self.top_k :]
        return float((top == actual[:, None]).any(axis=1).sum()), len(pred)


@register
class F1(EvalMetric):
    """Harmonic mean of precision and recall of class 1 of two: averaged over batches, or ("micro") of all."""

    def __init__(self, name: str = "f1", average: str = "macro", **kwargs: Any) -> None:
        if average not in ("macro", "micro"):
            raise DataError(f"average is {average!r}; expected 'macro' or 'micro'")
        self.average = average
        super().__init__(name, **kwargs)

    def reset(self) -> None:
        super().reset()
        self._hits = self._errors = 0

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        hits = errors = rows = 0
        for label, pred in pairs(self.name, labels, preds):
            found = self._counted(label, pred)
            hits, errors, rows = hits + found[0], errors + found[1], rows + len(pred)
        if self.average == "macro":
            self.sum_metric += _f1(hits, errors)
            self.num_inst += 1
            return
        self._hits, self._errors = self._hits + hits, self._errors + errors
        self.num_inst += rows
        self.sum_metric = _f1(self._hits, self._errors) * self.num_inst

    def _counted(self, label: Array, pred: Array) -> tuple[int, int]:
        """Return how often class 1 was chosen rightly, and how often the wrong class was chosen."""
        actual = row_labels(label, pred).astype(np.int64)
        if actual.size and actual.max() > 1:
            raise DataError(
                f"metric '{self.name}' is for two classes, but there is a label {actual.max()}; use labels "
                "0 and 1"
            )
        right, chosen = actual == 1, pred.argmax(axis=1) == 1
        return int((chosen & right).sum()), int((chosen != right).sum())


def _f1(hits: int, errors: int) -> float:
    return 2 * hits / (2 * hits + errors) if hits else 0.0


class _Surprise(EvalMetric):
    """Sums of minus the logarithm of the probability of the label's class."""

    smallest: ClassVar[float] = 0.0
    eps: float = 0.0
    axis: int = -1
    ignore_label: int | None = None

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        rows = np.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        actual = row_labels(label, rows).astype(np.int64)
        if self.ignore_label is not None:
            counted = actual != self.ignore_label
            actual, rows = actual[counted], rows[counted]
        check_classes(actual, rows.shape[1])
        return float(surprises(actual, rows, self.smallest, self.eps).sum()), len(rows)


@register
class CrossEntropy(_Surprise):
    """Mean of minus the logarithm of the probability of the label's class."""

    names = ("ce", "cross-entropy")

    def __init__(self, eps: float = 1e-12, name: str = "cross-entropy", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.eps = eps


@register
class NegativeLogLikelihood(CrossEntropy):
    """As CrossEntropy."""

    names = ("nll_loss", "nll-loss")

    def __init__(self, eps: float = 1e-12, name: str = "nll-loss", **kwargs: Any) -> None:
        super().__init__(eps, name, **kwargs)


@register
class Perplexity(_Surprise):
    """The exponential of the mean surprise; rows whose label is `ignore_label` do not count."""

    smallest = 1e-10

    def __init__(
        self, ignore_label: int | None = None, axis: int = -1, name: str = "perplexity", **kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self.ignore_label = ignore_label
        self.axis = axis

    def get(self) -> tuple[Listed, Any]:
        name, value = super().get()
        return name, math.exp(value) if value < 700 else math.inf if value >= 700 else value
