"""Devices: `mx.cpu(i)` is a worker on the processor, `mx.gpu(i)` one on card `i`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ExecutionError
from ..runtime import context as runtime
from ..runtime.context import Context, cpu, gpu

__all__ = ["Context", "cpu", "current_context", "gpu", "num_gpus"]


def num_gpus() -> int:
    """How many cards there are: none without CuPy or a driver."""
    from ..runtime.cuda.cards import card_count

    try:
        return card_count()
    except ExecutionError:
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
