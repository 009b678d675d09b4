"""Refusals that must come at once, whatever else the machine does."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time

HANG_SECONDS = 15.0
"""Far more than these refusals take on a busy machine, far less than growth without a limit would."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail if the block takes more than `HANG_SECONDS` of processor time."""
    started = process_time()
    yield
    taken = process_time() - started
    assert taken < HANG_SECONDS, f"{taken:.1f} s of processor time"
