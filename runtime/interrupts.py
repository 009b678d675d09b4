"""Handle Ctrl-C and SIGTERM: the first asks to stop after the current iteration, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a run to stop."""

Handler = Callable[[int, FrameType | None], None]


class Terminated(SystemExit):
    """SIGTERM: the process ends with status 143 (128 + SIGTERM), after all blocks `finally` have run."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Interrupts:
    """While entered, the first signal to stop only sets `requested`."""

    def __init__(self) -> None:
        self.requested = False
        """Whether a signal asked to stop."""
        self.terminated = False
        """Whether one of the signals was SIGTERM."""
        self._handled = ExitStack()

    def __enter__(self) -> Interrupts:
        self._handled.enter_context(handled(SIGNALS, self._interrupt))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handled.close()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        at_once = self.requested
        self.requested = True
        self.terminated |= number == signal.SIGTERM
        if at_once:
            raise stop(self.terminated)


def stop(terminated: bool) -> BaseException:
    """Return the exception with which a run that was asked to stop ends."""
    return Terminated() if terminated else KeyboardInterrupt()


@contextmanager
def handled(signals: tuple[signal.Signals, ...], handler: Handler) -> Iterator[None]:
    """Call a handler for signals meanwhile. Outside the main thread, Python cannot, and nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, earlier in before.items():
            # a handler that Python has not set is unknown
            signal.signal(each, signal.SIG_DFL if earlier is None else earlier)


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM, which otherwise ends the process without cleaning up."""
    raise Terminated
