"""Run one training step: a batch in one iteration, or in several whose gradients are summed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..dataflow.updates import LEARNING_RATE, MICRO_BATCH
from .data import Batch
from .evaluation import tally
from .executor import Executor
from .feeding import feed, output_names
from .metrics import Tally


@dataclass(frozen=True, slots=True)
class Stepped:
    """The result of a training step."""

    metrics: Mapping[str, float]
    """The metrics of the step's batch."""

    fetched_bytes: int
    """The bytes that crossed between workers."""


def train_step(
    executor: Executor,
    batch: Batch,
    micro_batches: int,
    rate: float,
    tallies: Sequence[Tally] | None,
    unrolled: bool = False,
) -> Stepped:
    """Train on a batch; `rate` is the value of the learning rate tensor.

    If the graph is `unrolled`, one iteration works on all micro-batches. If there are `tallies`, the batch is
    counted in each, and NaN in an output raises ExecutionError.
    """
    if executor.has(LEARNING_RATE):
        executor.write(LEARNING_RATE, [rate])
    own = [Tally(each.metric) for each in tallies or ()]
    run = _run_together if unrolled and micro_batches > 1 else _run_in_turn
    moved = 0
    for part, names, fetched_bytes in run(executor, list(batch.parts(micro_batches))):
        moved += fetched_bytes
        if tallies is not None:
            tally(executor, part, own if part.valid else (), names)
    for whole, each in zip(tallies or (), own, strict=True):
        whole.merge(each)
    return Stepped({each.metric.name: each.value for each in own}, moved)


_Ran = Iterator[tuple[Batch, Sequence[str], int]]
"""For each micro-batch: its samples, the names of its outputs, and the bytes fetched since the one before."""


def _run_in_turn(executor: Executor, parts: Sequence[Batch]) -> _Ran:
    """Run an iteration for each micro-batch. The outputs are to be read before the next one runs."""
    names = output_names(executor)
    for number, part in enumerate(parts):
        feed(executor, part)
        if executor.has(MICRO_BATCH):
            executor.write(MICRO_BATCH, [number])
        executor.run(updates=number == len(parts) - 1)
        yield part, names, executor.fetched_bytes


def _run_together(executor: Executor, parts: Sequence[Batch]) -> _Ran:
    """Run one iteration for all micro-batches of an unrolled graph."""
    for number, part in enumerate(parts):
        feed(executor, part, number)
    executor.run()
    names = output_names(executor)
    count = len(names) // len(parts)
    for number, part in enumerate(parts):
        fetched_bytes = 0 if number else executor.fetched_bytes
        yield part, names[number * count : (number + 1) * count], fetched_bytes
