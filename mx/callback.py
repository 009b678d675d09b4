"""`mx.callback`: what `fit` and `score` call after batches and epochs."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from .model import BatchEndParam, save_checkpoint

__all__ = [
    "BatchEndParam",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]


class Speedometer:
    """Logs samples a second and the metrics every `frequent` batches, then resets the metrics."""

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self._since: float | None = None
        self._last = 0

    def __call__(self, param: BatchEndParam) -> None:
        if param.nbatch < self._last:
            self._since = None
        self._last = param.nbatch
        if self._since is None:
            self._since = time.perf_counter()
            return
        if param.nbatch % self.frequent:
            return
        seconds = time.perf_counter() - self._since
        speed = self.frequent * self.batch_size / seconds if seconds else math.inf
        metrics = param.eval_metric.get_name_value() if param.eval_metric is not None else []
        listed = "".join(f"\t{name}={value:f}" for name, value in metrics)
        logging.info(
            "Epoch[%d] Batch [%d]\tSpeed: %.2f samples/sec%s", param.epoch, param.nbatch, speed, listed
        )
        if self.auto_reset and param.eval_metric is not None:
            param.eval_metric.reset()
        self._since = time.perf_counter()


class ProgressBar:
    """Logs how much of `total` batches is done."""

    def __init__(self, total: int, length: int = 80) -> None:
        self.total = total
        self.length = length

    def __call__(self, param: BatchEndParam) -> None:
        done = round(self.length * param.nbatch / self.total)
        logging.info(
            "[%s%s] %d%%", "=" * done, "-" * (self.length - done), math.ceil(100 * param.nbatch / self.total)
        )


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """Logs the metrics every `period` batches."""

    def callback(param: BatchEndParam) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset()

    return callback


def do_checkpoint(prefix: str, period: int = 1) -> Callable[[int, Any, Any, Any], None]:
    """After every `period` epochs saves symbol and parameters: `prefix-symbol.json`, `prefix-0001.params`."""

    def callback(epoch: int, symbol: Any, arg_params: Any, aux_params: Any) -> None:
        if (epoch + 1) % max(period, 1) == 0:
            save_checkpoint(prefix, epoch + 1, symbol, arg_params, aux_params)

    return callback


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Return a callback as `do_checkpoint`, for a module, with its optimizer's states if wanted."""

    def callback(epoch: int, symbol: Any = None, arg_params: Any = None, aux_params: Any = None) -> None:
        if (epoch + 1) % max(period, 1) == 0:
            mod.save_checkpoint(prefix, epoch + 1, save_optimizer_states)

    return callback
