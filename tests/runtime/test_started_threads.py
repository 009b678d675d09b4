"""A process that may not have more threads: an error that names the thread, and nothing left behind."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tofu import ArrayIterator, Module, cpu, sym
from tofu.errors import ExecutionError
from tofu.runtime import processor
from tofu.runtime.distributed.control import Control
from tofu.runtime.step_threads import Team, ThreadStep

SAYS = r"the thread '.*' cannot be started \(can't start new thread\); use fewer threads"


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that lets this many more threads start."""

    start = threading.Thread.start

    def allow(count: int) -> None:
        left = [count]

        def limited(thread: threading.Thread) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)

    return allow


def gone(before: set[threading.Thread]) -> bool:
    """Tell whether all threads but those from before end soon."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if set(threading.enumerate()) <= before:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_threads_of_a_team_before_it_end(allowed: Callable[[int], None], count: int) -> None:
    before = set(threading.enumerate())
    allowed(count)
    with pytest.raises(ExecutionError, match=SAYS) as caught:
        Team([[ThreadStep(int)]] * 3, watchdog_seconds=10)
    assert f"'tofu-worker-{count}'" in str(caught.value)
    assert gone(before)


def test_training_is_refused_and_works_with_fewer_threads(allowed: Callable[[int], None]) -> None:
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc"), name="softmax")
    batches = ArrayIterator(np.ones((8, 4), np.float32), np.zeros(8), 4)
    allowed(3)
    with Module(net, [cpu(0), cpu(1)], threads=4) as module, pytest.raises(ExecutionError, match=SAYS):
        module.fit(batches)
    allowed(1)
    with Module(net, [cpu(0), cpu(1)], threads=1) as module:
        assert len(module.fit(batches)) == 1


def test_measuring_a_processor_ends(allowed: Callable[[int], None]) -> None:
    def nothing() -> Callable[[], Any]:
        return int

    before = set(threading.enumerate())
    allowed(1)
    with pytest.raises(ExecutionError, match=SAYS):
        processor._together([nothing, nothing])
    assert gone(before)


def test_control_of_processes_closes_its_connections(allowed: Callable[[int], None]) -> None:
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = socket.create_connection(listener.getsockname())
        one, _ = listener.accept()
    with closing(one), closing(other):
        allowed(1)
        with pytest.raises(ExecutionError, match=SAYS):
            Control(0, ["this", "that"], {1: one}, 5)
        assert gone(before)
        other.settimeout(20)
        while other.recv(1 << 16):
            pass
