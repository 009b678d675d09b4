"""What training reports, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .metrics import Tally


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback gets after every training iteration.

    `metrics` are of this batch, `seconds` is the time of the iteration, feeding and reading included;
    `step` counts from 1 over all epochs of the call, to `steps`.
    """

    epoch: int
    step: int
    steps: int
    metrics: Mapping[str, float]
    learning_rate: float
    samples: int
    seconds: float
    fetched_bytes: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch's metrics on training data, while it was trained on, and on evaluation data after it."""

    number: int
    training: Mapping[str, float]
    evaluation: Mapping[str, float]
    seconds: float


@dataclass(slots=True)
class Standing:
    """Where a call of `fit` stands: epochs done, and what is known of the one under way.

    `batch` counts batches of that epoch, `seconds` its time so far, `tallies` hold its metrics so far.
    `rate_step` is the learning rate's step.
    """

    tallies: list[Tally]
    rate_step: int
    batch: int = 0
    seconds: float = 0.0
    history: list[Epoch] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The number of the epoch under way."""
        return len(self.history)

    def finish(self, evaluation: Mapping[str, float]) -> Epoch:
        """End the epoch under way."""
        training = {tally.metric.name: tally.value for tally in self.tallies}
        epoch = Epoch(self.epoch, training, evaluation, self.seconds)
        self.history.append(epoch)
        self.tallies = [Tally(tally.metric) for tally in self.tallies]
        self.batch, self.seconds = 0, 0.0
        return epoch

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON has it; numbers come back bit for bit."""
        return {
            "rate_step": self.rate_step,
            "batch": self.batch,
            "seconds": self.seconds,
            "tallies": [[tally.total, tally.rows] for tally in self.tallies],
            "history": [asdict(epoch) for epoch in self.history],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where `to_json` was called; the metrics must be the same ones."""
        self.rate_step, self.batch, self.seconds = state["rate_step"], state["batch"], state["seconds"]
        for tally, (total, rows) in zip(self.tallies, state["tallies"], strict=True):
            tally.total, tally.rows = total, rows
        self.history = [Epoch(**epoch) for epoch in state["history"]]
