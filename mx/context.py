"""Devices: `mx.cpu(i)` is a worker on the processor, `mx.gpu(i)` one on card `i`."""

from __future__ import annotations

from ..errors import ExecutionError
from ..runtime.context import Context, cpu, gpu

__all__ = ["Context", "cpu", "current_context", "gpu", "num_gpus"]


def num_gpus() -> int:
    """Return how many cards there are: none without CuPy or a driver."""
    from ..runtime.cuda.cards import card_count

    try:
        return card_count()
    except ExecutionError:
        return 0


def current_context() -> Context:
    """Return the device used if none is given."""
    return cpu(0)
