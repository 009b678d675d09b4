"""Devices: `mx.cpu(i)` is a worker on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import ExecutionError
from ..runtime import context as runtime
from ..runtime.context import Context, cpu

__all__ = ["Context", "cpu", "current_context", "gpu", "num_gpus"]


def gpu(device_id: int = 0) -> NoReturn:
    """Raises ExecutionError: no engine of this version runs on a GPU."""
    raise ExecutionError(
        f"gpu({device_id}): no engine of this version runs on a GPU; use mx.cpu({device_id}), of which there "
        "may be as many as workers are wanted"
    )


def num_gpus() -> int:
    """How many GPUs `mx.gpu` can stand for: none."""
    return 0


def current_context() -> Context:
    """The device used where none is given."""
    return cpu(0)


def as_list(context: Context | Sequence[Context] | None) -> list[Context]:
    """One device for each worker. ExecutionError for what is no device."""
    if context is None:
        return [current_context()]
    listed: list[Any] = list(context) if isinstance(context, list | tuple) else [context]
    for each in listed:
        if not isinstance(each, Context):
            raise ExecutionError(f"{each!r} is no device; a context is a list such as [mx.cpu(0), mx.cpu(1)]")
    return list(runtime.devices_of(listed))
