"""The loops of `fit`, `score` and `predict`, in terms of a module's single calls."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...dataflow.symbol import Symbol
from ...errors import DataError, ExecutionError
from .. import metric as mx_metric
from .. import model
from ..callback import BatchEndParam
from ..initializer import Uniform
from ..io import DataBatch, DataIter, NDArrayIter
from ..ndarray.array import NDArray
from .inputs import padding, without_padding

Callbacks = Callable[..., Any] | Sequence[Callable[..., Any]] | None
Params = Mapping[str, NDArray]


class BaseModule(ABC):
    """The loops over batches. A module computes them; see `Module`."""

    symbol: Symbol
    logger: Any = logging
    binded = False
    params_initialized = False
    optimizer_initialized = False

    @abstractmethod
    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None: ...

    @abstractmethod
    def init_params(
        self,
        initializer: Any = None,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None: ...

    @abstractmethod
    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None: ...

    @abstractmethod
    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None: ...

    @abstractmethod
    def backward(self, out_grads: Any = None) -> None: ...

    @abstractmethod
    def update(self) -> None: ...

    @abstractmethod
    def get_outputs(self, merge_multi_context: bool = True) -> Any: ...

    @abstractmethod
    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]: ...

    @abstractmethod
    def set_params(
        self,
        arg_params: Params,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None: ...

    @abstractmethod
    def save_optimizer_states(self, fname: str) -> None: ...

    @abstractmethod
    def update_metric(
        self, eval_metric: mx_metric.EvalMetric, labels: Any, pre_sliced: bool = False
    ) -> None: ...

    def save_params(self, fname: str) -> None:
        """Write parameters and auxiliary states to a file."""
        model.save_params(fname, *self.get_params())

    def load_params(self, fname: str) -> None:
        """Take parameters and auxiliary states from a file."""
        self.set_params(*model.read_params(fname))

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Write `prefix-symbol.json`, `prefix-0001.params` and, if wanted, `prefix-0001.states`."""
        model.save_checkpoint(prefix, epoch, self.symbol, *self.get_params())
        if save_optimizer_states:
            self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    def forward_backward(self, data_batch: DataBatch) -> None:
        """Forward and backward of a batch."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Any = None) -> None:
        """Called before each batch of `fit`; nothing has to be made ready."""
        return

    def install_monitor(self, mon: Any) -> None:
        """Raises AttributeError: values on the way are seen by binding `symbol.get_internals()`."""
        raise AttributeError(
            "monitors are not supported; bind symbol.get_internals() to look at what is inside"
        )

    def fit(
        self,
        train_data: DataIter,
        eval_data: DataIter | None = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Callbacks = None,
        batch_end_callback: Callbacks = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Callbacks = None,
        eval_batch_end_callback: Callbacks = None,
        initializer: Any = None,
        arg_params: Params | None = None,
        aux_params: Params | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Bind, initialise and train up to epoch `num_epoch`, with a log line for each epoch.

        Raises ExecutionError if that is left out.
        """
        if num_epoch is None:
            raise ExecutionError("fit needs num_epoch, the number of epochs to train")
        if monitor is not None:
            self.install_monitor(monitor)
        self.bind(train_data.provide_data, train_data.provide_label, force_rebind=force_rebind)
        self.init_params(
            initializer or Uniform(0.01),
            arg_params=arg_params,
            aux_params=aux_params,
            allow_missing=allow_missing,
            force_init=force_init,
        )
        self.init_optimizer(kvstore, optimizer, optimizer_params=optimizer_params)
        measure = mx_metric.create(eval_metric)
        for epoch in range(begin_epoch, num_epoch):
            self._train_epoch(epoch, train_data, measure, batch_end_callback)
            if epoch_end_callback is not None:
                _call(epoch_end_callback, epoch, self.symbol, *self.get_params())
            if eval_data is not None:
                found = self.score(
                    eval_data,
                    validation_metric or eval_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                )
                self._log(epoch, "Validation", found)
            train_data.reset()

    def _train_epoch(
        self, epoch: int, train_data: DataIter, eval_metric: mx_metric.EvalMetric, callback: Callbacks
    ) -> None:
        """Train one pass over the data. The values logged are those before the last callback."""
        started = time.perf_counter()
        eval_metric.reset()
        values: list[tuple[str, float]] = []
        nbatch = -1
        for nbatch, batch in enumerate(train_data):
            self.prepare(batch)
            self.forward_backward(batch)
            self.update()
            self.update_metric(eval_metric, batch.label)
            values = eval_metric.get_name_value()
            _call(callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
        if nbatch < 0:
            raise DataError("train_data gives no batch: it is empty or at its end; call its reset()")
        self._log(epoch, "Train", values)
        self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - started)

    def _log(self, epoch: int, what: str, values: Sequence[tuple[str, float]]) -> None:
        for name, value in values:
            self.logger.info("Epoch[%d] %s-%s=%f", epoch, what, name, value)

    def score(
        self,
        eval_data: DataIter,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Callbacks = None,
        score_end_callback: Callbacks = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, float]]:
        """Return metrics over one pass, or `num_batch` batches, of the data."""
        measure = mx_metric.create(eval_metric)
        measure.reset()
        nbatch = -1
        for nbatch, batch in self._batches(eval_data, num_batch, reset):
            self.forward(batch, is_train=False)
            self.update_metric(measure, batch.label)
            _call(batch_end_callback, BatchEndParam(epoch, nbatch, measure, locals()))
        _call(score_end_callback, BatchEndParam(epoch, nbatch + 1, measure, locals()))
        return measure.get_name_value()

    def iter_predict(
        self, eval_data: DataIter, num_batch: int | None = None, reset: bool = True
    ) -> Iterator[tuple[list[NDArray], int, DataBatch]]:
        """Yield the outputs of each batch, its number and the batch; rows that fill up the last
        are left out.
        """
        for nbatch, batch in self._batches(eval_data, num_batch, reset):
            self.forward(batch, is_train=False)
            yield [_without(output, batch) for output in self.get_outputs()], nbatch, batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """Return the outputs for all samples: one array, a list for several outputs, or a list for each
        batch.
        """
        if isinstance(eval_data, NDArray | np.ndarray):
            eval_data = NDArrayIter(eval_data, batch_size=len(eval_data))
        batches = [outputs for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset)]
        if not merge_batches or not batches:
            return batches
        merged = [
            NDArray(np.concatenate([output.numpy_array for output in several]))
            for several in zip(*batches, strict=True)
        ]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def _batches(self, data: DataIter, num_batch: int | None, reset: bool) -> Iterator[tuple[int, DataBatch]]:
        if reset:
            data.reset()
        for nbatch, batch in enumerate(data):
            if nbatch == num_batch:
                return
            yield nbatch, batch


def _without(output: NDArray, batch: DataBatch) -> NDArray:
    """Return an output without the rows of samples that fill the batch."""
    size = len(batch.data[0])
    return NDArray(without_padding(output.numpy_array, size, size - padding(batch)).copy())


def _call(callbacks: Callbacks, *arguments: Any) -> None:
    if callbacks is None:
        return
    for callback in [callbacks] if callable(callbacks) else callbacks:
        callback(*arguments)
