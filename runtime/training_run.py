"""Run training: epochs of steps, reported as they end, and saved in checkpoints on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from ..dataflow.optimizer import Optimizer
from .data import Batch, Batches, checked
from .early_stopping import EarlyStopping
from .executor import Executor
from .interrupts import Interrupts, stop
from .learning_rate import LearningRate, fed_rate, rate_at
from .metrics import Metric, Tally
from .peers import Peers
from .progress import Epoch, Progress, Standing
from .run_checkpoints import Keeper
from .training_step import Stepped


class Trained(Protocol):
    """The interface of the module that a run trains."""

    def step(
        self, executor: Executor, batch: Batch, rate: float, tallies: Sequence[Tally] | None = None
    ) -> Stepped: ...

    def score(self, data: Batches, metric: Sequence[Metric]) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """The arguments of a call of `Module.fit`, and the state from which it continues."""

    module: Trained
    """The module that is trained."""

    executor: Executor
    """The executor that `module.bind` returned for `data` and `optimizer`."""

    data: Batches
    """The batches to train on."""

    held_out: Batches | None
    """The batches that are scored after each epoch; None if there are none."""

    epochs: int
    """The number of epochs, those done earlier included."""

    optimizer: Optimizer
    """The update operator and its settings."""

    learning_rate: LearningRate
    """Returns the learning rate of each step."""

    metrics: Sequence[Metric]
    """The metrics of each epoch."""

    on_step: Callable[[Progress], None] | None
    """Called after each step; None if nobody asks."""

    on_epoch: Callable[[Epoch], None] | None
    """Called after each epoch; None if nobody asks."""

    standing: Standing
    """The epochs and steps done, and the metrics so far."""

    peers: Peers
    """The processes that train together."""

    early_stopping: EarlyStopping | None = None
    """Says when the run ends before all epochs; None for never."""

    def train(self, keeper: Keeper | None = None) -> list[Epoch]:
        """Train the remaining epochs; return them and the earlier ones.

        If there is a keeper, the run is saved after every epoch, and when it is interrupted from the
        keyboard or terminated. The first interrupt lets the current iteration end.
        """
        with Interrupts() as interrupts:
            while self.standing.epoch < self.epochs and not self._ended():
                self._train_epoch(keeper, interrupts)
                self._stop_if_asked(interrupts)
        return self.standing.history

    def _ended(self) -> bool:
        """Tell whether the run ends early; all processes decide together."""
        stopping = self.early_stopping
        return stopping is not None and self.peers.any(stopping.ends(self.standing.history, self.metrics))

    def _train_epoch(self, keeper: Keeper | None, interrupts: Interrupts) -> None:
        standing = self.standing
        started = time.perf_counter() - standing.seconds
        for batch in islice(checked(self.data, standing.epoch), standing.batch, None):
            self._step(batch)
            if self.peers.any(interrupts.requested):
                standing.seconds = time.perf_counter() - started
                if keeper is not None:
                    keeper.save(standing)
                self._stop_if_asked(interrupts)
        evaluation = {} if self.held_out is None else self.module.score(self.held_out, self.metrics)
        standing.seconds = time.perf_counter() - started
        finished = standing.finish(evaluation)
        if keeper is not None:
            keeper.save(standing)
        if self.on_epoch is not None:
            self.on_epoch(finished)

    def _stop_if_asked(self, interrupts: Interrupts) -> None:
        """Raise KeyboardInterrupt or Terminated, the same in all processes, if one was asked to stop."""
        if self.peers.any(interrupts.requested):
            raise stop(self.peers.any(interrupts.terminated))

    def _step(self, batch: Batch) -> None:
        standing, begun = self.standing, time.perf_counter()
        rate = rate_at(self.learning_rate, standing.rate_step)
        fed = fed_rate(self.optimizer, rate, standing.rate_step)
        done = self.module.step(self.executor, batch, fed, standing.tallies)
        standing.batch += 1
        standing.rate_step += 1
        if self.on_step is not None:
            self.on_step(
                Progress(
                    epoch=standing.epoch,
                    step=standing.epoch * len(self.data) + standing.batch,
                    steps=self.epochs * len(self.data),
                    metrics=done.metrics,
                    learning_rate=rate,
                    samples=batch.valid,
                    seconds=time.perf_counter() - begun,
                    fetched_bytes=done.fetched_bytes,
                )
            )
