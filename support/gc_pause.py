"""Pause the garbage collector during work that creates many objects but no cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 10_000
"""The number of new objects from which on it pays to ask whether others are frozen, which counts them."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    Use around code that allocates many long-lived objects: collecting would scan them all and free nothing.
    If there are many, they count as old afterwards, or the first allocation would make the collector scan
    them. A collector that was off stays off.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Move all objects to the oldest generation, unless few are new or the program keeps frozen ones."""
    if gc.get_count()[0] >= MANY and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
