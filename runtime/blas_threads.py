"""Limit the threads of NumPy's BLAS while executors run.

A limit holds for the whole process. While several executors run, the smallest of their limits holds. The
first of them notes what the libraries had, and the last one restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_LOCK = threading.RLock()

_LIMITS: dict[object, int] = {}
"""The limits of all iterations that run now."""

_FOUND: dict[str, tuple[Any, int]] = {}
"""The controller of each limited library, and the number of its threads before all limits, by path."""


def loaded_blas() -> ThreadpoolController:
    """Return the controller of all BLAS libraries that are loaded."""
    return ThreadpoolController().select(user_api="blas")


def threads_of(blas: ThreadpoolController) -> list[int]:
    """Return the number of threads of each library, apart from limits of iterations that run now."""
    with _LOCK:
        return [
            _FOUND[each.filepath][1] if each.filepath in _FOUND else each.num_threads
            for each in blas.lib_controllers
        ]


@contextmanager
def limited(blas: ThreadpoolController, threads: int) -> Iterator[None]:
    """Limit the threads of libraries meanwhile."""
    own = object()
    try:
        with _LOCK:
            for each in blas.lib_controllers:
                _FOUND.setdefault(each.filepath, (each, each.num_threads))
            _LIMITS[own] = threads
            _apply()
        yield
    finally:
        with _LOCK:
            _LIMITS.pop(own, None)
            _apply(leaving=True)
            if not _LIMITS:
                _FOUND.clear()


def _apply(leaving: bool = False) -> None:
    for library, found in _FOUND.values():
        only_here = getattr(library, "threading_layer", None) == "openmp"  # its limits are those of a thread
        limits = () if leaving and only_here else _LIMITS.values()
        library.set_num_threads(min(limits, default=found))
        # from version 3.8 on, threadpoolctl ignores other threads until the one that set a number gives way
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()
