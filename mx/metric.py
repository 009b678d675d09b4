"""`mx.metric`: running measures of outputs against labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..dataflow.naming import suggestion
from ..errors import DataError
from .ndarray.array import as_array

Array = npt.NDArray[Any]
Listed = str | list[str]

REGISTRY: dict[str, Callable[..., EvalMetric]] = {}


class EvalMetric:
    """A mean over everything since the last `reset`: `sum_metric` over `num_inst`.

    A metric of one output and one label says in `measure` what one batch adds to the two. With
    `output_names` and `label_names` it looks at those alone.
    """

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = name
        self.output_names = output_names
        self.label_names = label_names
        self.reset()

    def reset(self) -> None:
        self.sum_metric = 0.0
        self.num_inst = 0

    reset_local = reset

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Count one batch, given by name."""
        chosen = [
            [given[name] for name in names] if names is not None else list(given.values())
            for names, given in ((self.label_names, label), (self.output_names, pred))
        ]
        self.update(*chosen)

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        """Count one batch. Raises DataError where labels and outputs do not fit each other."""
        pairs = _pairs(self.name, labels, preds)
        for label, pred in pairs:
            total, count = self.measure(label, pred)
            self.sum_metric += total
            self.num_inst += count

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        """What one output of one batch adds to the sum and to the count."""
        raise NotImplementedError(f"{type(self).__name__} says what a batch adds in update() or measure()")

    def get(self) -> tuple[Listed, Any]:
        """Name and value; NaN before anything is counted."""
        return self.name, self.sum_metric / self.num_inst if self.num_inst else math.nan

    def get_name_value(self) -> list[tuple[str, float]]:
        """Name and value of each measure."""
        name, value = self.get()
        return list(zip(name, value, strict=True)) if isinstance(name, list) else [(name, value)]

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"


def register(klass: type[EvalMetric]) -> type[EvalMetric]:
    """Make a metric known by its lower-case name, for `create`."""
    REGISTRY.update(dict.fromkeys((klass.__name__.lower(), *klass.names), klass))
    return klass


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """The metric of this name, of a function of label and output, or of a list of either.

    Raises DataError for an unknown name.
    """
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, list | tuple):
        composite = CompositeEvalMetric()
        for each in metric:
            composite.add(create(each, *args, **kwargs))
        return composite
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    known = REGISTRY.get(str(metric).lower())
    if known is None:
        raise DataError(f"there is no metric {metric!r}{suggestion(str(metric).lower(), sorted(REGISTRY))}")
    return known(*args, **kwargs)


class CompositeEvalMetric(EvalMetric):
    """Several metrics of the same outputs."""

    def __init__(self, metrics: Sequence[Any] | None = None, name: str = "composite", **kwargs: Any) -> None:
        self.metrics = [create(each) for each in metrics or ()]
        super().__init__(name, **kwargs)

    def add(self, metric: Any) -> None:
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        return self.metrics[index]

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def get(self) -> tuple[Listed, Any]:
        pairs = [pair for metric in self.metrics for pair in metric.get_name_value()]
        return [name for name, _ in pairs], [value for _, value in pairs]


@register
class Accuracy(EvalMetric):
    """How often the largest number along `axis` is at the label's place."""

    names = ("acc",)

    def __init__(self, axis: int = 1, name: str = "accuracy", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.axis = axis

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if pred.shape != label.shape:
            pred = pred.argmax(self.axis)
        if pred.size != label.size:
            raise DataError(f"metric '{self.name}' has {label.size} labels for {pred.size} outputs")
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
        top = np.argsort(pred, axis=1, kind="stable")[:, -self.top_k :]
        return float((top == label.reshape(-1, 1).astype(np.int64)).any(axis=1).sum()), len(pred)


@register
class F1(EvalMetric):
    """Harmonic mean of precision and recall of class 1 of two: averaged over batches, or ("micro") of all."""

    def __init__(self, name: str = "f1", average: str = "macro", **kwargs: Any) -> None:
        self.average = average
        super().__init__(name, **kwargs)

    def reset(self) -> None:
        super().reset()
        self._hits = self._errors = 0

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        chosen, actual = pred.argmax(axis=1), label.ravel().astype(np.int64)
        if actual.size and actual.max() > 1:
            raise DataError(f"metric '{self.name}' is for two classes, but there is a label {actual.max()}")
        hits, errors = int((chosen & actual).sum()), int((chosen != actual).sum())
        if self.average == "macro":
            return _f1(hits, errors), 1
        self._hits, self._errors = self._hits + hits, self._errors + errors
        return _f1(self._hits, self._errors) * (self.num_inst + len(pred)) - self.sum_metric, len(pred)


def _f1(hits: int, errors: int) -> float:
    return 2 * hits / (2 * hits + errors) if hits else 0.0


class _Surprise(EvalMetric):
    """Sums of minus the logarithm of the probability of the label's class."""

    smallest: ClassVar[float] = 0.0

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        return self._surprise(label.ravel().astype(np.int64), pred.reshape(-1, pred.shape[-1]))

    def _surprise(self, label: Array, rows: Array) -> tuple[float, int]:
        if len(label) != len(rows):
            raise DataError(f"metric '{self.name}' has {len(label)} labels for {len(rows)} rows of outputs")
        chosen = rows[np.arange(len(rows)), label].astype(np.float64)
        return float(-np.log(np.maximum(chosen + self.eps, self.smallest)).sum()), len(rows)

    eps: float = 0.0


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

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        rows = np.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        chosen = label.ravel().astype(np.int64)
        if self.ignore_label is not None and len(chosen) == len(rows):
            counted = chosen != self.ignore_label
            chosen, rows = chosen[counted], rows[counted]
        return self._surprise(chosen, rows)

    def get(self) -> tuple[Listed, Any]:
        name, value = super().get()
        return name, math.exp(value) if value < 700 else math.inf if value >= 700 else value


class _OfBatch(EvalMetric):
    """Means over batches of a measure of the whole batch."""

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name or type(self).__name__.lower(), **kwargs)

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        if label.size != pred.size:
            raise DataError(f"metric '{self.name}' has a label {label.shape} for an output {pred.shape}")
        return self.of(label.reshape(pred.shape).astype(np.float64) - pred), 1

    @abstractmethod
    def of(self, difference: Array) -> float:
        """The measure of one batch."""


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


class CustomMetric(EvalMetric):
    """A function of label and output, NumPy arrays, that gives a number, or a sum and a count."""

    def __init__(
        self,
        feval: Callable[[Array, Array], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        **kwargs: Any,
    ) -> None:
        shown = name or f"custom({getattr(feval, '__name__', 'function')})"
        super().__init__(shown, **kwargs)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        super().update(labels, preds[: len(labels)] if self._allow_extra_outputs else preds)

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        value = self._feval(label, pred)
        return (float(value[0]), int(value[1])) if isinstance(value, tuple) else (float(value), 1)


def np_(
    numpy_feval: Callable[[Array, Array], Any], name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """A metric from a function of NumPy arrays; `mx.metric.np`."""
    return CustomMetric(numpy_feval, name or numpy_feval.__name__, allow_extra_outputs)


def _pairs(name: str, labels: Sequence[Any], preds: Sequence[Any]) -> list[tuple[Array, Array]]:
    if len(labels) != len(preds):
        raise DataError(
            f"metric '{name}' got {len(labels)} labels for {len(preds)} outputs; choose some by "
            "output_names= and label_names="
        )
    return [(as_array(label), as_array(pred)) for label, pred in zip(labels, preds, strict=True)]
