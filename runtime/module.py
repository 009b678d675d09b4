"""Training, scoring and predicting with a symbol over several workers, in the manner of MXNet's Module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from ..analyzer.region import Shape
from ..dataflow.graph import Graph
from ..dataflow.optimizer import Optimizer, get_optimizer
from ..dataflow.partitioned import PartitionedGraph
from ..dataflow.symbol import Symbol
from ..dataflow.training import LEARNING_RATE, inference_graph, training_graph
from ..errors import DataError
from ..operators.kernel import Array
from .checkpoint import CheckpointFolder
from .context import Context, worker_count
from .data import ArrayIterator, Batch
from .executor import Executor
from .feeding import feed, outputs, tally, valid_rows
from .initializer import WeightRule, Xavier
from .interrupts import Interrupts
from .keeper import Keeper, run_settings
from .learning_rate import Constant, LearningRate, fed_rate
from .metrics import Metric, Tally, get_metric
from .parameters import Parameters
from .progress import Epoch, Progress, Standing

__all__ = ["Epoch", "Module", "Progress"]

Lower = Callable[[Graph, int], PartitionedGraph]
Metrics = str | Metric | Sequence[str | Metric]


@dataclass(slots=True)
class _Bound:
    """An executor, what it was made for, and the training step whose parameters it holds."""

    shapes: Mapping[str, Shape]
    optimizer: Optimizer | None
    executor: Executor
    step: int


class Module:
    """A symbol bound to workers, one for each entry of `context`.

    `lower` makes the partitioned graph of a graph for a number of workers; the package's face supplies
    search and lowering. `parameters` are start values by name, in place of the initializer's. Threads and
    memory are held until `close`; a module is a context manager.
    """

    def __init__(
        self,
        symbol: Symbol,
        context: Context | Sequence[Context] | None = None,
        *,
        lower: Lower,
        initializer: WeightRule | None = None,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.symbol = symbol
        self.workers = worker_count(context)
        self._lower = lower
        self._threads = threads
        self._parameters = Parameters(symbol, initializer or Xavier(), seed, parameters or {})
        self._training: _Bound | None = None
        self._inference: _Bound | None = None
        self._rate_step = 0
        self._step = 0

    def bind(self, shapes: Mapping[str, Shape], optimizer: Optimizer | str = "sgd") -> Executor:
        """The executor of the training graph: partitioned, in memory, with start values.

        `shapes` are those of one batch, data and labels. Made anew where shapes or optimizer differ from the
        last call's; then what was learned is kept, and the optimizer's state and step start again.
        """
        settings = get_optimizer(optimizer)
        bound = self._training
        if bound is not None and (bound.shapes, bound.optimizer) == (shapes, settings):
            return bound.executor
        graph = training_graph(self.symbol, shapes, settings)
        self._unbind_training()
        executor = Executor(self._lower(graph, self.workers), threads=self._threads)
        self._parameters.store(executor)
        self._training = _Bound(dict(shapes), settings, executor, self._step)
        self._rate_step = 0
        return executor

    def fit(
        self,
        train_data: ArrayIterator,
        eval_data: ArrayIterator | None = None,
        *,
        num_epoch: int = 1,
        optimizer: Optimizer | str = "sgd",
        learning_rate: float | LearningRate = 0.01,
        metric: Metrics = "accuracy",
        on_step: Callable[[Progress], None] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> list[Epoch]:
        """Train for `num_epoch` epochs and report each. Runs with the same seeds are bit-identical.

        The rows that fill up an epoch's last batch are trained on, but do not count in metrics. With a folder
        as `checkpoint` the run is saved there after every epoch, and when it is interrupted from the keyboard
        (a second interrupt stops at once); with `resume` it goes on from there, over any number of workers,
        and epochs trained before count and are reported too. Raises ExecutionError naming worker, operation
        and iteration where a worker fails, DataError for checkpoints that cannot be written or do not fit.
        """
        rate = Constant(learning_rate) if isinstance(learning_rate, int | float) else learning_rate
        metrics = _metrics(metric)
        settings = get_optimizer(optimizer)
        executor = self.bind(train_data.shapes, settings)
        standing = Standing([Tally(m) for m in metrics], self._rate_step)
        if resume and checkpoint is None:
            raise DataError("resume needs the folder of the checkpoints; name it as checkpoint")
        with ExitStack() as stack:
            keeper: Keeper | None = None
            if checkpoint is not None:
                folder = CheckpointFolder(Path(checkpoint))
                stack.enter_context(folder.exclusive(create=not resume))
                run = run_settings(train_data, settings, [m.name for m in metrics])
                keeper = Keeper(folder, executor, run)
                self._begin(keeper, standing, resume)
            interrupts = stack.enter_context(Interrupts(deferred=keeper is not None))
            while standing.epoch < num_epoch:
                started = time.perf_counter() - standing.seconds
                for batch in islice(train_data.epoch(standing.epoch), standing.batch, None):
                    begun = time.perf_counter()
                    now = rate(self._rate_step)
                    self._train(executor, batch, fed_rate(settings, now, self._rate_step))
                    standing.batch, standing.rate_step = standing.batch + 1, self._rate_step
                    values = tally(executor, batch, standing.tallies)
                    if on_step is not None:
                        ended = time.perf_counter()
                        epoch, step = standing.epoch, standing.epoch * len(train_data) + standing.batch
                        total, moved = num_epoch * len(train_data), executor.fetched_bytes
                        on_step(Progress(epoch, step, total, values, now, batch.valid, ended - begun, moved))
                    if keeper is not None and interrupts.requested:
                        standing.seconds = time.perf_counter() - started
                        keeper.save(standing)
                        raise KeyboardInterrupt
                evaluation = {} if eval_data is None else self.score(eval_data, metrics)
                standing.seconds = time.perf_counter() - started
                done = standing.finish(evaluation)
                if keeper is not None:
                    keeper.save(standing)
                if on_epoch is not None:
                    on_epoch(done)
                interrupts.check()
        return standing.history

    def _begin(self, keeper: Keeper, standing: Standing, resume: bool) -> None:
        """Start a run that is kept, or take up the one that was."""
        if not resume:
            keeper.require_empty()
            return
        keeper.resume(standing)
        self._rate_step = standing.rate_step
        self._step += 1

    def _train(self, executor: Executor, batch: Batch, rate: float) -> None:
        """One iteration."""
        feed(executor, batch)
        if executor.has(LEARNING_RATE):
            executor.write(LEARNING_RATE, [rate])
        self._step += 1
        executor.run()
        self._rate_step += 1

    def score(self, data: ArrayIterator, metric: Metrics = "accuracy") -> dict[str, float]:
        """Metrics over one pass of the data; rows that fill up the last batch do not count."""
        executor = self._bind_inference(data)
        tallies = [Tally(m) for m in _metrics(metric)]
        for batch in data.epoch():
            feed(executor, batch)
            executor.run()
            tally(executor, batch, tallies)
        return {t.metric.name: t.value for t in tallies}

    def predict(self, data: ArrayIterator) -> Array:
        """The symbol's first output for all samples of the data, in its order."""
        executor = self._bind_inference(data)
        parts = []
        for batch in data.epoch():
            feed(executor, batch)
            executor.run()
            parts.append(valid_rows(outputs(executor)[0], batch))
        return np.concatenate(parts)

    def parameters(self) -> dict[str, Array]:
        """Parameters and moving statistics by name, whole tensors; empty before anything is bound."""
        self._load()
        return dict(self._parameters.values)

    def close(self) -> None:
        """End all threads and give the memory back; what was learned is kept."""
        self._unbind_training()
        if self._inference is not None:
            self._inference.executor.close()
            self._inference = None

    def __enter__(self) -> Module:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unbind_training(self) -> None:
        if self._training is not None:
            self._load()
            self._training.executor.close()
            self._training = None

    def _load(self) -> None:
        """Take what was learned out of the training executor, unless an iteration failed half way."""
        if self._training is not None and not self._training.executor.failed:
            self._parameters.load(self._training.executor)

    def _bind_inference(self, data: ArrayIterator) -> Executor:
        """The executor of the inference graph, with the newest parameters."""
        shapes = {**self._label_shapes(data.batch_size), **data.shapes}
        bound = self._inference
        if bound is None or bound.shapes != shapes:
            graph = inference_graph(self.symbol, shapes)
            if bound is not None:
                bound.executor.close()
            executor = Executor(self._lower(graph, self.workers), threads=self._threads)
            bound = self._inference = _Bound(shapes, None, executor, step=-1)
        if bound.step != self._step:
            self._load()
            self._parameters.store(bound.executor)
            bound.step = self._step
        return bound.executor

    def _label_shapes(self, batch_size: int) -> dict[str, Shape]:
        """Shapes of everything that was fed in training, for data that comes without labels."""
        if self._training is None:
            return {}
        return {name: (batch_size, *shape[1:]) for name, shape in self._training.shapes.items()}


def _metrics(metric: Metrics) -> list[Metric]:
    several = [metric] if isinstance(metric, str | Metric) else metric
    return [get_metric(each) for each in several]
