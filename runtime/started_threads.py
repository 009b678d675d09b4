"""Start threads, or say that this process may not have more of them."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Thread

from ..errors import ExecutionError


def start_all(threads: Iterable[Thread]) -> None:
    """Start threads in their order. Raises ExecutionError if one cannot start; those before it run."""
    for thread in threads:
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise ExecutionError(
                f"the thread '{thread.name}' cannot be started ({error}); use fewer threads, or raise the "
                "limits on processes and memory (ulimit -u, ulimit -v)"
            ) from error
