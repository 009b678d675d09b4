"""End a run whose metric does not improve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DataError
from ..support.checked_argument import is_number, require, require_count
from ..support.wording import alternatives
from .metrics import Metric
from .progress import Epoch


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """Ends a run after `patience` epochs in a row, none of which is better than the best one before them.

    The metric is that of the held-out data, or of the training data if there are none. The finished epochs
    alone decide whether a run ends, so a resumed run ends after as many epochs. Raises DataError for
    arguments of other kinds.
    """

    patience: int = 3
    """The number of epochs that may pass without an improvement."""

    metric: str | None = None
    """The name of the metric; None for the first one of the run."""

    least_gain: float = 0.0
    """The change of the metric above which an epoch counts as better."""

    def __post_init__(self) -> None:
        require_count(self.patience, "patience", DataError, 1)
        fits = is_number(self.least_gain) and self.least_gain >= 0
        require(fits, self.least_gain, "least_gain", "a number from 0 on", DataError)

    def chosen(self, metrics: Sequence[Metric]) -> Metric:
        """Return the metric among those of the run. Raises DataError if it is not one of them."""
        found = [metric for metric in metrics if self.metric in (None, metric.name)]
        if not found:
            names = [metric.name for metric in metrics]
            needed = "a metric" if self.metric is None else f"the metric {self.metric!r}"
            raise DataError(
                f"early stopping needs {needed}, but the run measures "
                f"{', '.join(names) or 'nothing'}{alternatives(self.metric or '', names)}; name it in metric="
            )
        return found[0]

    def ends(self, history: Sequence[Epoch], metrics: Sequence[Metric]) -> bool:
        """Tell whether a run with these finished epochs ends."""
        metric = self.chosen(metrics)
        sign = 1 if metric.higher_is_better else -1
        best, waited = None, 0
        for epoch in history:
            value = sign * (epoch.evaluation or epoch.training)[metric.name]
            if best is None or best != best or value > best + self.least_gain:
                best, waited = value, 0
            else:
                waited += 1
        return waited >= self.patience
