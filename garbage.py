"""Work that makes many objects and no cyclic garbage, without the search for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_left() -> Iterator[None]:
    """No search for cyclic garbage meanwhile: all that is made stays, and looking at it takes time.

    Where nothing is searched for already, that stays so afterwards.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()
