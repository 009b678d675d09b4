"""Signals to stop within one process: deferred once, then at once, and as before outside."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

from tofu.runtime.interrupts import Interrupts, Terminated, handled, terminate


def test_the_first_is_deferred_and_the_second_is_not() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_after_ctrl_c_terminates() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert (interrupts.requested, interrupts.terminated) == (True, False)
        with pytest.raises(Terminated) as caught:
            signal.raise_signal(signal.SIGTERM)
        assert interrupts.terminated
    assert caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_handler_within_another_one_gives_way_to_it_again() -> None:
    seen = []

    def outer(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    with handled((signal.SIGTERM,), outer):
        with handled((signal.SIGTERM,), terminate), pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert seen == [signal.SIGTERM]


def test_other_threads_leave_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
