"""Training, scoring and predicting with a symbol over several workers, in the manner of MXNet's Module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import numpy.typing as npt

from ..analyzer.region import Shape
from ..dataflow.graph import Graph
from ..dataflow.optimizer import Optimizer, get_optimizer
from ..dataflow.partitioned import PartitionedGraph
from ..dataflow.symbol import Symbol
from ..dataflow.training import LEARNING_RATE, inference_graph, training_graph
from ..operators.kernel import Array
from .context import Context, worker_count
from .data import ArrayIterator
from .executor import Executor
from .feeding import feed, outputs, tally, valid_rows
from .initializer import WeightRule, Xavier
from .learning_rate import Constant, LearningRate, fed_rate
from .metrics import Metric, Tally, get_metric
from .parameters import Parameters

Lower = Callable[[Graph, int], PartitionedGraph]
Metrics = str | Metric | Sequence[str | Metric]


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
    ) -> list[Epoch]:
        """Train for `num_epoch` epochs and report each. Runs with the same seeds are bit-identical.

        The rows that fill up an epoch's last batch are trained on, but do not count in metrics. Raises
        ExecutionError naming worker, operation and iteration where a worker fails.
        """
        rate = Constant(learning_rate) if isinstance(learning_rate, int | float) else learning_rate
        metrics = _metrics(metric)
        settings = get_optimizer(optimizer)
        executor = self.bind(train_data.shapes, settings)
        epochs: list[Epoch] = []
        steps = 0
        for number in range(num_epoch):
            started = time.perf_counter()
            tallies = [Tally(m) for m in metrics]
            for batch in train_data.epoch(number):
                begun = time.perf_counter()
                now = rate(self._rate_step)
                feed(executor, batch)
                if executor.has(LEARNING_RATE):
                    executor.write(LEARNING_RATE, [fed_rate(settings, now, self._rate_step)])
                self._step += 1
                executor.run()
                self._rate_step += 1
                steps += 1
                values = tally(executor, batch, tallies)
                if on_step is not None:
                    seconds = time.perf_counter() - begun
                    total = num_epoch * len(train_data)
                    fetched = executor.fetched_bytes
                    on_step(Progress(number, steps, total, values, now, batch.valid, seconds, fetched))
            training = {t.metric.name: t.value for t in tallies}
            evaluation = {} if eval_data is None else self.score(eval_data, metrics)
            epochs.append(Epoch(number, training, evaluation, time.perf_counter() - started))
            if on_epoch is not None:
                on_epoch(epochs[-1])
        return epochs

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
