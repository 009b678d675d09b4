"""Which cards there are, and how workers share them."""

from __future__ import annotations

from ...errors import ExecutionError
from ...operators.cuda.vendor.libraries import library
from ..context import Context, gpu


def card_count() -> int:
    """How many cards CUDA shows this process: none without a driver. Raises ExecutionError without CuPy."""
    runtime = library("cupy", "a GPU").cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError:
        return 0


def shared(workers: int) -> list[Context]:
    """A card for each worker, in turn, so that with fewer cards than workers several share one.

    Neighbouring workers, which the last steps of a partition split, share sooner. Raises ExecutionError where
    there is no card.
    """
    count = min(card_count(), workers)
    if not count:
        raise ExecutionError(
            "no card is found here; `tofu doctor` says what is missing, and --device cpu needs none"
        )
    return [gpu(worker * count // workers) for worker in range(workers)]
