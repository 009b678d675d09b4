"""Calls in processes of their own: their results, their errors, and where they are made."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tofu.support import at_once as module
from tofu.support.at_once import at_once


@pytest.fixture
def two_processors(monkeypatch):
    """Two processors, and no threads of the test runner."""
    threads = threading.active_count()
    monkeypatch.setattr(module, "processors", lambda: 2)
    monkeypatch.setattr(module, "threads", lambda: threading.active_count() - threads + 1)


@pytest.mark.usefixtures("two_processors")
def test_the_first_call_is_made_here_and_others_in_forks():
    here, *others = at_once([os.getpid] * 3)
    assert here == os.getpid()
    assert len({here, *others}) == 3


@pytest.mark.usefixtures("two_processors")
def test_results_are_in_the_order_of_calls():
    assert at_once([lambda n=n: [n] * n for n in range(4)]) == [[], [1], [2, 2], [3, 3, 3]]


@pytest.mark.usefixtures("two_processors")
def test_an_error_of_a_fork_is_raised_here():
    def fails():
        raise ValueError(f"in {os.getpid()}")

    with pytest.raises(ValueError, match=f"in {os.getpid()}"):
        at_once([os.getpid, fails])


@pytest.mark.usefixtures("two_processors")
def test_a_call_whose_process_is_killed_is_made_here():
    here = os.getpid()

    def killed():
        if os.getpid() != here:
            os.kill(os.getpid(), 9)
        return os.getpid()

    assert at_once([os.getpid, killed]) == [here, here]


@pytest.mark.usefixtures("two_processors")
def test_an_error_here_ends_a_process_that_does_not_heed_sigterm():
    """Such as one in which the error of an inherited handler is ignored."""
    before, begun = signal.signal(signal.SIGTERM, signal.SIG_IGN), time.monotonic()
    try:
        with pytest.raises(ZeroDivisionError):
            at_once([lambda: 1 // 0, lambda: time.sleep(5)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - begun < 4


@pytest.mark.usefixtures("two_processors")
def test_calls_in_a_fork_are_made_there():
    _, (outer, inner) = at_once([lambda: (0, 0), lambda: tuple(at_once([os.getpid] * 2))])
    assert outer == inner != os.getpid()


def test_one_processor_makes_all_calls_here(monkeypatch):
    monkeypatch.setattr(module, "processors", lambda: 1)
    assert set(at_once([os.getpid] * 3)) == {os.getpid()}


@pytest.mark.usefixtures("two_processors")
def test_a_process_with_threads_makes_all_calls_itself():
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        assert set(at_once([os.getpid] * 3)) == {os.getpid()}
    finally:
        done.set()
        waiting.join()


def test_without_calls_there_are_no_results():
    assert at_once([]) == []
