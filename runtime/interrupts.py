"""Handle Ctrl-C: the first asks to stop after the current iteration, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While entered and `deferred`, the first interrupt from the keyboard only sets `requested`.

    Outside the main thread, Python cannot handle signals, so interrupts are left unchanged.
    """

    def __init__(self, deferred: bool) -> None:
        self.requested = False
        self._deferred = deferred
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if self._deferred and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
