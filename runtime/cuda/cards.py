"""Find the cards of this machine, and share them among workers."""

from __future__ import annotations

from ...errors import ExecutionError
from ...operators.cuda.vendor.libraries import library
from ..context import Context, gpu


def card_count() -> int:
    """Count the cards that this process sees, 0 without a driver. Raises ExecutionError without CuPy."""
    runtime = library("cupy", "a GPU").cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError:
        return 0


def require_cards() -> int:
    """Count the cards. Raises ExecutionError if there is none."""
    count = card_count()
    if not count:
        raise ExecutionError(
            "no card was found on this machine; run `tofu doctor` to see what is missing, or use --device cpu"
        )
    return count


def shared(workers: int) -> list[Context]:
    """Assign a card to each worker; if there are fewer cards than workers, several workers share one.

    Neighbouring workers, which the last steps of a partition split, share first. Raises ExecutionError if
    there is no card.
    """
    count = min(require_cards(), workers)
    return [gpu(worker * count // workers) for worker in range(workers)]


def own_cards(number: int, processes: int, workers: int) -> tuple[int, ...]:
    """Return the cards of one process's workers, if all processes of this machine have as many.

    They are shared as the workers of one process share them. Raises ExecutionError if there is no card.
    """
    every = shared(processes * workers)
    return tuple(each.device_id for each in every[number * workers : (number + 1) * workers])
