"""The reports of training, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .metrics import Tally


@dataclass(frozen=True, slots=True)
class Progress:
    """The report after every training iteration."""

    epoch: int
    """The number of the epoch."""

    step: int
    """The number of the step, from 1, over all epochs of the call."""

    steps: int
    """The number of all steps of the call."""

    metrics: Mapping[str, float]
    """The metrics of this batch."""

    learning_rate: float
    """The learning rate of this step."""

    samples: int
    """The number of samples of this batch."""

    seconds: float
    """The time of the iteration, including feeding and reading."""

    fetched_bytes: int
    """The bytes that crossed between workers."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The report after every epoch."""

    number: int
    """The number of the epoch."""

    training: Mapping[str, float]
    """The metrics on training data, measured while training."""

    evaluation: Mapping[str, float]
    """The metrics on evaluation data after the epoch."""

    seconds: float
    """The duration of the epoch."""


@dataclass(slots=True)
class Standing:
    """The state of a call of `fit`: finished epochs, and the current one."""

    tallies: list[Tally]
    """The metrics of the current epoch so far."""

    rate_step: int
    """The learning rate's step."""

    batch: int = 0
    """The number of batches of the current epoch that are done."""

    seconds: float = 0.0
    """The time of the current epoch so far."""

    history: list[Epoch] = field(default_factory=list)
    """The finished epochs."""

    @property
    def epoch(self) -> int:
        """Return the number of the current epoch."""
        return len(self.history)

    def finish(self, evaluation: Mapping[str, float]) -> Epoch:
        """Finish the current epoch."""
        training = {tally.metric.name: tally.value for tally in self.tallies}
        epoch = Epoch(self.epoch, training, evaluation, self.seconds)
        self.history.append(epoch)
        self.tallies = [Tally(tally.metric) for tally in self.tallies]
        self.batch, self.seconds = 0, 0.0
        return epoch

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values; `restore` brings numbers back bit for bit."""
        return {
            "rate_step": self.rate_step,
            "batch": self.batch,
            "seconds": self.seconds,
            "tallies": [[tally.total, tally.rows] for tally in self.tallies],
            "history": [asdict(epoch) for epoch in self.history],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `to_json`; the metrics must be the same."""
        self.rate_step, self.batch, self.seconds = state["rate_step"], state["batch"], state["seconds"]
        for tally, (total, rows) in zip(self.tallies, state["tallies"], strict=True):
            tally.total, tally.rows = total, rows
        self.history = [Epoch(**epoch) for epoch in state["history"]]
