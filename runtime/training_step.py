"""Run one training step: a batch in one iteration, or in several whose gradients are summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..dataflow.updates import LEARNING_RATE, MICRO_BATCH
from .data import Batch
from .executor import Executor
from .feeding import feed, tally
from .metrics import Tally


@dataclass(frozen=True, slots=True)
class Stepped:
    """The result of a training step."""

    metrics: Mapping[str, float]
    """The metrics of the step's batch."""

    fetched_bytes: int
    """The bytes that crossed between workers."""


def train_step(
    executor: Executor, batch: Batch, micro_batches: int, rate: float, tallies: Sequence[Tally] | None
) -> Stepped:
    """Train on a batch; `rate` is the value of the learning rate tensor.

    If there are `tallies`, the batch is counted in each, and NaN in an output raises ExecutionError.
    """
    if executor.has(LEARNING_RATE):
        executor.write(LEARNING_RATE, [rate])
    own = [Tally(each.metric) for each in tallies or ()]
    moved = 0
    for number, part in enumerate(batch.parts(micro_batches)):
        feed(executor, part)
        if executor.has(MICRO_BATCH):
            executor.write(MICRO_BATCH, [number])
        executor.run(updates=number == micro_batches - 1)
        moved += executor.fetched_bytes
        if tallies is not None:
            tally(executor, part, own if part.valid else ())
    for whole, each in zip(tallies or (), own, strict=True):
        whole.merge(each)
    return Stepped({each.metric.name: each.value for each in own}, moved)
