"""Modules for inputs of several lengths, with the same parameters and optimizer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ...errors import ExecutionError
from .. import metric as mx_metric
from ..io import DataBatch
from ..ndarray.array import NDArray
from .base_module import BaseModule
from .module import Module


class BucketingModule(BaseModule):
    """One `Module` for each bucket key that a batch has; `sym_gen(key)` gives symbol, data and label names.

    Parameters and the optimizer's states move to the module of a batch, as whole tensors, if that is not
    the one of the batch before.
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        **options: Any,
    ) -> None:
        if default_bucket_key is None:
            raise ExecutionError("a BucketingModule needs default_bucket_key, the key of the largest bucket")
        self._sym_gen = sym_gen
        self._default = default_bucket_key
        self._options = {
            "logger": logger,
            "context": context,
            "fixed_param_names": fixed_param_names,
            **options,
        }
        self.logger = logger
        self._bind_options: dict[str, Any] = {}
        self._modules: dict[Any, Module] = {}
        self._current = self._module(default_bucket_key)

    @property
    def symbol(self) -> Any:  # type: ignore[override]
        """That of the newest bucket."""
        return self._current.symbol

    @property
    def params_initialized(self) -> bool:  # type: ignore[override]
        return self._current.params_initialized

    @property
    def optimizer_initialized(self) -> bool:  # type: ignore[override]
        return self._current.optimizer_initialized

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Bind the module of the default bucket; others are bound when their first batch comes."""
        self._bind_options = {
            "for_training": for_training,
            "inputs_need_grad": inputs_need_grad,
            "shared_module": shared_module,
            "grad_req": grad_req,
        }
        self._current.bind(data_shapes, label_shapes, force_rebind=force_rebind, **self._bind_options)
        self.binded = True

    def init_params(self, *params: Any, **options: Any) -> None:
        self._current.init_params(*params, **options)

    def set_params(self, *params: Any, **options: Any) -> None:
        self._current.set_params(*params, **options)

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        return self._current.get_params()

    def init_optimizer(self, *settings: Any, **options: Any) -> None:
        self._current.init_optimizer(*settings, **options)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Continue with the module of another bucket."""
        before, after = self._current, self._module(bucket_key)
        after.bind(data_shapes, label_shapes, **self._bind_options)
        if before is after:
            return
        after.set_params(*before.get_params())
        if before.optimizer_initialized and before._optimizer is not None:
            after.init_optimizer(optimizer=before._optimizer)
            if before._executor is not None and after._executor is not None:
                after.set_optimizer_states(before.optimizer_states())
        self._current = after

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._current.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        self._current.backward(out_grads)

    def update(self) -> None:
        self._current.update()

    def get_outputs(self, merge_multi_context: bool = True) -> Any:
        return self._current.get_outputs(merge_multi_context)

    def update_metric(self, eval_metric: mx_metric.EvalMetric, labels: Any, pre_sliced: bool = False) -> None:
        self._current.update_metric(eval_metric, labels, pre_sliced)

    def save_optimizer_states(self, fname: str) -> None:
        self._current.save_optimizer_states(fname)

    def close(self) -> None:
        """End all threads and give the workers' memory back; parameters stay."""
        for module in self._modules.values():
            if module.binded:
                module.close()

    def _module(self, bucket_key: Any) -> Module:
        if bucket_key not in self._modules:
            symbol, data_names, label_names = self._sym_gen(bucket_key)
            self._modules[bucket_key] = Module(symbol, data_names, label_names, **self._options)
        return self._modules[bucket_key]
