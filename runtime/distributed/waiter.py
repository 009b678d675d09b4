"""Wait for calls of a library that nothing can interrupt.

Each wait is in a thread of its own. If the run ends early, the wait is left behind. A wait that ended while
the interpreter does could abort the process, so a process that has left one behind ends without taking the
interpreter apart, with the status of a failure.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ..started_threads import start_all

FAILED = 2
"""The exit status of a process that leaves a wait behind."""


class Left(Exception):
    """The wait was left behind, because the run has ended."""


class Waiter:
    """A thread that makes calls, one after the other, and can be left."""

    def __init__(self, name: str) -> None:
        self._aborted = threading.Event()
        self._busy = False
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results: SimpleQueue[tuple[Any, RuntimeError | None]] = SimpleQueue()
        start_all([threading.Thread(target=self._serve, name=name, daemon=True)])
        atexit.register(self._leave)

    def wait(self, call: Callable[[], Any]) -> Any:
        """Make a call and return its result.

        Raises the RuntimeError that it raises, and Left once the waiter is aborted.
        """
        if self._aborted.is_set():
            raise Left
        self._calls.put(call)
        result, problem = self._results.get()
        if problem is not None:
            raise problem
        if self._aborted.is_set():
            raise Left
        return result

    def abort(self) -> None:
        """Leave the wait, and all later ones. Safe in any thread."""
        self._aborted.set()
        self._results.put((None, None))

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            self._busy = True
            result, problem = None, None
            try:
                result = call()
            except RuntimeError as error:
                problem = error
            self._busy = False
            self._results.put((result, problem))

    def _leave(self) -> None:
        """End the process if a wait was left behind."""
        if self._busy:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(FAILED)
