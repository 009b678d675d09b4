"""Train, score and predict with a symbol over several workers, like MXNet's Module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import SupportsFloat

import numpy as np

from ..analyzer.indices.region import Shape
from ..dataflow.optimizer import Optimizer, get_optimizer
from ..errors import DataError
from ..operators.kernels.kernel import Array
from ..support.checked_argument import is_number, require, require_count
from .binding import Binding
from .data import Batches, checked
from .early_stopping import EarlyStopping
from .evaluation import tally
from .executor import Executor
from .feeding import feed, outputs, own_share, valid_rows
from .learning_rate import ConstantRate, LearningRate, sampled_rates
from .metrics import Metric, Tally, get_metric
from .progress import Epoch, Progress, Standing
from .run_checkpoints import Keeper, flat, run_settings
from .sole_use import alone
from .training_run import TrainingRun

__all__ = ["Epoch", "Progress", "TrainableModule"]

Metrics = str | Metric | Sequence[str | Metric]


class TrainableModule(Binding):
    """A symbol bound to workers, which can be trained, scored and used for predictions."""

    checkpoint_writers = 0
    """The number of processes that wrote the checkpoints of the last call of `fit`; 0 if there were none."""

    @alone
    def fit(
        self,
        train_data: Batches,
        eval_data: Batches | None = None,
        *,
        num_epoch: int = 1,
        optimizer: Optimizer | str = "sgd",
        learning_rate: float | LearningRate = 0.01,
        metric: Metrics = "accuracy",
        accumulate: int = 1,
        unroll: bool = False,
        on_step: Callable[[Progress], None] | None = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        early_stopping: EarlyStopping | None = None,
    ) -> list[Epoch]:
        """Train for `num_epoch` epochs and report each. Runs with the same seeds are bit-identical.

        The rows that fill up an epoch's last batch are trained on, but do not count in metrics.

        `accumulate` is the number of equal parts in which a batch is processed, in the memory of one part.
        Their gradients are summed before the update. Apart from rounding, this equals training on whole
        batches if samples do not influence each other (as they do in BatchNorm) and no loss divides by the
        batch. If `unroll`, the graph holds the operations of all parts, and one iteration is a whole update,
        with the same bits. Workers may then work on different parts at a time.

        If the run is interrupted from the keyboard or terminated, the current iteration ends first, so that
        learned values are defined. A second interrupt stops at once.

        `checkpoint` is a folder in which the run is saved after every epoch, and when it is interrupted. If
        `resume`, the run continues from there, over any number of workers; earlier epochs count and are
        reported too. A run that torchrun or Slurm starts again resumes by itself, if there are checkpoints.

        `learning_rate` is a number, or a function of the step such as `tofu.optimizer.CosineRate`. It is
        fed to the graph, so that no rate needs another plan. With `early_stopping` the run ends before
        `num_epoch` if its metric does not improve.

        Raises ExecutionError naming worker, operation and iteration if a worker fails. Learned values are
        then undefined, as they are if a second interrupt stops an iteration: resume, or call
        `set_parameters`. Raises DataError for checkpoints that cannot be written or do not fit.
        """
        if resume and checkpoint is None:
            raise DataError("resume needs the folder of the checkpoints; name it as checkpoint")
        _require_batches(train_data)
        if eval_data is not None:
            _require_batches(eval_data)
        require_count(num_epoch, "num_epoch", DataError)
        for name, called in (("on_step", on_step), ("on_epoch", on_epoch)):
            require(called is None or callable(called), called, name, "a function", DataError)
        fits = checkpoint is None or isinstance(checkpoint, str | PathLike)
        require(fits, checkpoint, "checkpoint", "the name of a folder", DataError)
        fits = callable(learning_rate) or is_number(learning_rate)
        require(fits, learning_rate, "learning_rate", "a finite number, or a function of the step", DataError)
        rate = (
            ConstantRate(float(learning_rate)) if isinstance(learning_rate, SupportsFloat) else learning_rate
        )
        metrics, settings = _metrics(metric), get_optimizer(optimizer)
        fits = early_stopping is None or isinstance(early_stopping, EarlyStopping)
        require(fits, early_stopping, "early_stopping", "a tofu.optimizer.EarlyStopping", DataError)
        if early_stopping is not None:
            early_stopping.chosen(metrics)
        kept = run_settings(train_data, settings, [m.name for m in metrics])
        self.peers.agree(
            {
                **flat(kept),
                **flat({"eval_data": None if eval_data is None else eval_data.settings}),
                "num_epoch": num_epoch,
                "the learning rate": sampled_rates(rate, num_epoch * len(train_data)),
                "early_stopping": repr(early_stopping),
                "checkpoint": checkpoint is not None,
                "resume": resume,
            }
        )
        with self._restored() if resume else nullcontext():
            executor = self.bind(train_data.shapes, settings, accumulate=accumulate, unroll=unroll)
        run = TrainingRun(
            module=self,
            executor=executor,
            data=own_share(executor, train_data, accumulate, unroll),
            held_out=eval_data,
            epochs=num_epoch,
            optimizer=settings,
            learning_rate=rate,
            metrics=metrics,
            on_step=on_step,
            on_epoch=on_epoch,
            standing=Standing([Tally(m) for m in metrics], self._rate_step),
            early_stopping=early_stopping,
            peers=self.peers,
        )
        if checkpoint is None:
            return run.train()
        folder = self.peers.folder(Path(checkpoint).absolute())  # callbacks may change the working directory
        if self.peers.attempt:
            resume = folder.has_checkpoints()
        with folder.exclusive(create=not resume):
            self.checkpoint_writers = folder.writers
            keeper = Keeper(folder, run.executor, kept)
            self._begin(keeper, run.standing, resume)
            return run.train(keeper)

    def _begin(self, keeper: Keeper, standing: Standing, resume: bool) -> None:
        """Start a run with checkpoints, or resume one."""
        if not resume:
            keeper.require_empty()
            return
        keeper.resume(standing)
        self._undefined = None
        self._rate_step = standing.rate_step
        self._step += 1

    @alone
    def score(self, data: Batches, metric: Metrics = "accuracy") -> dict[str, float]:
        """Compute metrics over one pass of the data; rows that fill up the last batch do not count."""
        executor = self._bind_inference(data)
        tallies = [Tally(m) for m in _metrics(metric)]
        for batch in checked(own_share(executor, data)):
            feed(executor, batch)
            executor.run()
            tally(executor, batch, tallies)
        return {t.metric.name: t.value for t in tallies}

    @alone
    def predict(self, data: Batches) -> Array:
        """Return the symbol's first output for all samples of the data, in their order."""
        executor = self._bind_inference(data)
        parts = []
        for batch in checked(own_share(executor, data)):
            feed(executor, batch)
            executor.run()
            parts.append(valid_rows(outputs(executor)[0], batch.size, batch.valid))
        return np.concatenate(parts)

    def _bind_inference(self, data: Batches) -> Executor:
        _require_batches(data)
        shapes = data.shapes
        batch_size = next(iter(shapes.values()))[0]
        return self.evaluator({**self._label_shapes(batch_size), **shapes})

    def _label_shapes(self, batch_size: int) -> dict[str, Shape]:
        """Return the shapes of everything that was fed in training, for data without labels."""
        if self._training is None:
            return {}
        return {name: (batch_size, *shape[1:]) for name, shape in self._training.purpose.shapes.items()}


def _require_batches(data: object) -> None:
    """Raise DataError if the value is not an iterator over batches, for example an array."""
    if not isinstance(data, Batches):
        raise DataError(
            f"expected batches such as tofu.ArrayIterator(data, label, batch_size=64), "
            f"not a {type(data).__name__}"
        )


def _metrics(metric: Metrics) -> list[Metric]:
    several = [metric] if isinstance(metric, str | Metric) else metric
    fits = isinstance(several, Sequence)
    require(fits, metric, "metric", "the name of a metric, a Metric, or a list of them", DataError)
    return [get_metric(each) for each in several]
