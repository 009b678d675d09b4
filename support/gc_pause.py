"""Pause the garbage collector during work that creates many objects but no cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    Use around code that allocates many long-lived objects: collecting would scan them all and free nothing.
    A collector that was off stays off afterwards.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()
