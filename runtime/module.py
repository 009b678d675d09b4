"""Training, scoring and predicting with a symbol over several workers, in the manner of MXNet's Module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from ..analyzer.region import Shape
from ..dataflow.element_types import checked_type
from ..dataflow.graph import Graph
from ..dataflow.loss_scale import checked_scale
from ..dataflow.optimizer import Optimizer, get_optimizer
from ..dataflow.partitioned import PartitionedGraph
from ..dataflow.symbol import Symbol
from ..dataflow.training import gradient_graph, inference_graph, training_graph
from ..errors import DataError
from ..operators.kernel import Array
from .checkpoint import CheckpointFolder
from .context import Context, devices_of
from .data import ArrayIterator, Batch
from .engine import engine_on
from .executor import Executor
from .feeding import feed, outputs, tally, valid_rows
from .initializer import WeightRule, Xavier
from .keeper import Keeper, run_settings
from .learning_rate import Constant, LearningRate
from .memory_limit import MemoryLimit
from .metrics import Metric, Tally, get_metric
from .parameters import Parameters, optimizer_state
from .progress import Epoch, Progress, Standing
from .training_run import TrainingRun
from .training_step import Stepped, micro_shapes, train_step

__all__ = ["Epoch", "Module", "Progress"]

Lower = Callable[[Graph, int], PartitionedGraph]
Metrics = str | Metric | Sequence[str | Metric]


@dataclass(frozen=True, slots=True)
class _Purpose:
    """What an executor was made for. `shapes` are those of a whole batch."""

    shapes: Mapping[str, Shape]
    optimizer: Optimizer | None = None
    fixed: frozenset[str] = frozenset()
    micro_batches: int = 1

    def learns_like(self, other: _Purpose) -> bool:
        """Whether the same is learned in the same manner, from other batches at most."""
        return (self.optimizer, self.fixed) == (other.optimizer, other.fixed)


@dataclass(slots=True)
class _Bound:
    """An executor, what it was made for, and the training step whose parameters it holds."""

    purpose: _Purpose
    executor: Executor
    step: int


class Module:
    """A symbol bound to workers, one for each entry of `context`.

    `lower` makes the partitioned graph of a graph for a number of workers; the package's face supplies
    search and lowering. `parameters` are start values by name, in place of the initializer's. With
    `detect_nan` the first operation whose result is not a number stops the workers and is named; every
    result is read once more for it. A worker holds `memory_bytes` at most, training and evaluation together;
    what would take more is an ExecutionError before it runs. GPUs run an iteration as one CUDA graph unless
    `eager`, may round the factors of float32 products to TF32 with `tf32`, and store large activations and
    gradients as `dtype` says, gradients times `loss_scale`; see `training_graph`. Threads and memory are
    held until `close`; a module is a context manager.
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
        eager: bool = False,
        tf32: bool = False,
        detect_nan: bool = False,
        memory_bytes: int | None = None,
        dtype: str = "float32",
        loss_scale: float | None = None,
    ) -> None:
        self.symbol = symbol
        devices = devices_of(context)
        self.workers = len(devices)
        self._make_engine = engine_on(devices, threads=threads, eager=eager, tf32=tf32)
        self._dtype = checked_type(dtype)
        self._loss_scale = checked_scale(loss_scale, dtype)
        self._lower = lower
        self._detect_nan = detect_nan
        self._memory_bytes = memory_bytes
        self._parameters = Parameters(symbol, initializer or Xavier(), seed, parameters or {})
        self._training: _Bound | None = None
        self._evaluators: dict[tuple[str, ...] | None, _Bound] = {}
        self._rate_step = 0
        self._step = 0

    def bind(
        self,
        shapes: Mapping[str, Shape],
        optimizer: Optimizer | str = "sgd",
        fixed: Collection[str] = (),
        heads: bool = False,
        accumulate: int = 1,
    ) -> Executor:
        """The executor of the training graph: partitioned, in memory, with start values.

        `shapes` are those of one batch, data and labels; parameters named in `fixed` are not trained;
        `heads` is `training_graph`'s. A batch is worked off in `accumulate` micro-batches, whose gradients
        are summed up. Made anew where any of these differs from the last call's; then what was learned is
        kept. So are the optimizer's state and step where only batches differ; else they start again.
        """
        settings = get_optimizer(optimizer)
        purpose = _Purpose(dict(shapes), settings, frozenset(fixed), accumulate)
        bound = self._training
        if bound is not None and bound.purpose == purpose:
            return bound.executor
        micro = micro_shapes(shapes, accumulate)
        graph = training_graph(
            self.symbol,
            micro,
            settings,
            fixed=fixed,
            heads=heads,
            micro_batches=accumulate,
            dtype=self._dtype,
            loss_scale=self._loss_scale,
        )
        goes_on = bound is not None and bound.purpose.learns_like(purpose) and not bound.executor.failed
        state = optimizer_state(bound.executor) if bound is not None and goes_on else {}
        self._rate_step = self._rate_step if goes_on else 0
        self._unbind_training()
        executor = self._executor(graph)
        self._parameters.store(executor)
        for name, value in state.items():
            executor.write(name, value)
        self._training = _Bound(purpose, executor, self._step)
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
        accumulate: int = 1,
        on_step: Callable[[Progress], None] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> list[Epoch]:
        """Train for `num_epoch` epochs and report each. Runs with the same seeds are bit-identical.

        The rows that fill up an epoch's last batch are trained on, but do not count in metrics. With
        `accumulate` a batch is worked off in that many equal parts, in the memory of one: their gradients are
        summed up before the update, so that this is the training on whole batches, but for rounding, where
        samples do not see each other (as in BatchNorm) and no loss divides by the batch. With a folder
        as `checkpoint` the run is saved there after every epoch, and when it is interrupted from the keyboard
        (a second interrupt stops at once); with `resume` it goes on from there, over any number of workers,
        and epochs trained before count and are reported too. Raises ExecutionError naming worker, operation
        and iteration where a worker fails, DataError for checkpoints that cannot be written or do not fit.
        """
        if resume and checkpoint is None:
            raise DataError("resume needs the folder of the checkpoints; name it as checkpoint")
        rate = Constant(float(learning_rate)) if isinstance(learning_rate, SupportsFloat) else learning_rate
        metrics, settings = _metrics(metric), get_optimizer(optimizer)
        run = TrainingRun(
            module=self,
            executor=self.bind(train_data.shapes, settings, accumulate=accumulate),
            data=train_data,
            held_out=eval_data,
            epochs=num_epoch,
            optimizer=settings,
            learning_rate=rate,
            metrics=metrics,
            on_step=on_step,
            on_epoch=on_epoch,
            standing=Standing([Tally(m) for m in metrics], self._rate_step),
        )
        if checkpoint is None:
            return run.train()
        folder = CheckpointFolder(Path(checkpoint))
        with folder.exclusive(create=not resume):
            kept = run_settings(train_data, settings, [m.name for m in metrics])
            keeper = Keeper(folder, run.executor, kept)
            self._begin(keeper, run.standing, resume)
            return run.train(keeper)

    def _executor(self, graph: Graph) -> Executor:
        partitioned = self._lower(graph, self.workers)
        return Executor(
            partitioned,
            detect_nan=self._detect_nan,
            memory_limit=self._memory_limit(),
            make_engine=self._make_engine,
        )

    def _memory_limit(self) -> MemoryLimit | None:
        """What another executor may take beside those that are bound."""
        if self._memory_bytes is None:
            return None
        bound = [*self._evaluators.values(), *([] if self._training is None else [self._training])]
        held = [each.executor.held_bytes for each in bound]
        return MemoryLimit(self._memory_bytes, tuple(map(sum, zip(*held, strict=True))))

    def _begin(self, keeper: Keeper, standing: Standing, resume: bool) -> None:
        """Start a run that is kept, or take up the one that was."""
        if not resume:
            keeper.require_empty()
            return
        keeper.resume(standing)
        self._rate_step = standing.rate_step
        self._step += 1

    def step(
        self, executor: Executor, batch: Batch, rate: float, tallies: Sequence[Tally] | None = None
    ) -> Stepped:
        """One training step on what `bind` gave; see `train_step`."""
        assert self._training is not None, "step needs bind"
        self._step += 1
        done = train_step(executor, batch, self._training.purpose.micro_batches, rate, tallies)
        self._rate_step += 1
        return done

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
            parts.append(valid_rows(outputs(executor)[0], batch.size, batch.valid))
        return np.concatenate(parts)

    def evaluator(self, shapes: Mapping[str, Shape], gradients: Sequence[str] | None = None) -> Executor:
        """The executor of a graph that trains nothing, for data of these shapes, with the newest parameters.

        It computes as after training, or, with a list of names as `gradients`, as in training and the
        gradients for those.
        """
        made_for = None if gradients is None else tuple(gradients)
        bound = self._evaluators.get(made_for)
        if bound is None or bound.purpose.shapes != shapes:
            graph = (
                inference_graph(self.symbol, shapes, dtype=self._dtype)
                if gradients is None
                else gradient_graph(
                    self.symbol, shapes, gradients, dtype=self._dtype, loss_scale=self._loss_scale
                )
            )
            if bound is not None:
                bound.executor.close()
                del self._evaluators[made_for]
            executor = self._executor(graph)
            bound = self._evaluators[made_for] = _Bound(_Purpose(dict(shapes)), executor, step=-1)
        if bound.step != self._step or gradients is not None:
            self._load()
            self._parameters.store(bound.executor)
            bound.step = self._step
        return bound.executor

    def parameters(self) -> dict[str, Array]:
        """Parameters and moving statistics by name, whole tensors; empty before anything is bound."""
        self._load()
        return dict(self._parameters.values)

    def set_parameters(self, values: Mapping[str, npt.ArrayLike]) -> None:
        """Overwrite parameters and moving statistics, whole tensors by name; the others stay.

        Raises DataError for a name that is no variable of the symbol, ShapeError for another shape.
        """
        self._load()
        self._parameters.assign(values)
        self._step += 1
        if self._training is not None:
            self._parameters.store(self._training.executor)

    def close(self) -> None:
        """End all threads and give the memory back; what was learned is kept."""
        self._unbind_training()
        for bound in self._evaluators.values():
            bound.executor.close()
        self._evaluators.clear()

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
        return self.evaluator({**self._label_shapes(data.batch_size), **data.shapes})

    def _label_shapes(self, batch_size: int) -> dict[str, Shape]:
        """Shapes of everything that was fed in training, for data that comes without labels."""
        if self._training is None:
            return {}
        return {name: (batch_size, *shape[1:]) for name, shape in self._training.purpose.shapes.items()}


def _metrics(metric: Metrics) -> list[Metric]:
    several = [metric] if isinstance(metric, str | Metric) else metric
    return [get_metric(each) for each in several]
