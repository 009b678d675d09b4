"""One training step: a batch in one iteration, or in several whose gradients are summed before the update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analyzer.region import Shape
from ..dataflow.updates import LEARNING_RATE, MICRO_BATCH
from ..errors import DataError
from .data import Batch
from .executor import Executor
from .feeding import feed, tally
from .metrics import Tally


@dataclass(frozen=True, slots=True)
class Stepped:
    """The metrics of the step's batch, and the bytes that crossed between workers."""

    metrics: Mapping[str, float]
    fetched_bytes: int


def micro_shapes(shapes: Mapping[str, Shape], count: int) -> dict[str, Shape]:
    """The shapes of one of `count` equal parts of a batch. Raises DataError where it has no such parts."""
    if count < 1:
        raise DataError(f"a batch cannot be trained on in {count} micro-batches; use 1 or more")
    for name, shape in shapes.items():
        if count > 1 and (not shape or shape[0] % count):
            raise DataError(
                f"a batch whose '{name}' has shape {shape} has no {count} equal micro-batches; use a batch "
                f"size that is a multiple of {count}"
            )
    return {name: (shape[0] // count, *shape[1:]) if count > 1 else shape for name, shape in shapes.items()}


def train_step(
    executor: Executor, batch: Batch, micro_batches: int, rate: float, tallies: Sequence[Tally] | None
) -> Stepped:
    """Train on a batch; `rate` is what the learning rate tensor is fed.

    With `tallies` the batch is counted in each, and outputs that are not numbers are an ExecutionError.
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
