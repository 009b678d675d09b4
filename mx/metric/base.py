"""Running measures, alone or several at once, and how they are found by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy.typing as npt

from ...errors import DataError
from ...support.wording import alternatives
from ..ndarray.array import as_array

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

    def reset_local(self) -> None:
        """Forget what was counted, as `reset` does: nothing is counted apart from it."""
        self.reset()

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Count one batch, given by name."""
        chosen = [
            [given[name] for name in names] if names is not None else list(given.values())
            for names, given in ((self.label_names, label), (self.output_names, pred))
        ]
        self.update(*chosen)

    def update(self, labels: Sequence[Any], preds: Sequence[Any]) -> None:
        """Count one batch. Raises DataError if labels and outputs do not fit each other."""
        for label, pred in pairs(self.name, labels, preds):
            total, count = self.measure(label, pred)
            self.sum_metric += total
            self.num_inst += count

    def measure(self, label: Array, pred: Array) -> tuple[float, int]:
        """Return what one output of one batch adds to the sum and to the count."""
        raise NotImplementedError(f"{type(self).__name__} has neither update() nor measure(); override one")

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
    """Return the metric of this name, of a function of label and output, or of a list of either.

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
        raise DataError(f"there is no metric {metric!r}{alternatives(str(metric).lower(), sorted(REGISTRY))}")
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
    """Return a metric from a function of NumPy arrays; `mx.metric.np`."""
    return CustomMetric(numpy_feval, name or numpy_feval.__name__, allow_extra_outputs)


def pairs(name: str, labels: Sequence[Any], preds: Sequence[Any]) -> list[tuple[Array, Array]]:
    """Return each label with its output. Raises DataError for different numbers of them."""
    if len(labels) != len(preds):
        raise DataError(
            f"metric '{name}' got {len(labels)} labels for {len(preds)} outputs; choose some by "
            "output_names= and label_names="
        )
    return [(as_array(label), as_array(pred)) for label, pred in zip(labels, preds, strict=True)]
