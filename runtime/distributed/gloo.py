"""Messages over gloo, the transport of torch.distributed for processors.

Nothing can interrupt a wait for gloo, so waits are in threads of their own. If the run ends early they are
left behind. A wait that ended while the interpreter does would abort the process, so the process then leaves
without taking the interpreter apart, with the status of a failure.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import numpy as np

from ...errors import ExecutionError
from ..started_threads import start_all
from .rendezvous import INSTALL
from .transport import LinkLost

PATIENCE = timedelta(days=30)
"""Gloo's own timeout. Processes that are silent are found by the control connections."""

STORE_SECONDS = 60
FAILED = 2
"""The exit status of a process that leaves a wait behind."""


class GlooTransport:
    """Moves messages through a process group of its own; that of a user's script is not touched.

    `address` is that of the first process, and `own_address` that of this one. `share` gives all processes
    what the first one says.
    """

    def __init__(
        self, number: int, count: int, address: str, own_address: str, share: Callable[[str], str]
    ) -> None:
        try:
            import torch
            from torch.distributed import ProcessGroupGloo, TCPStore
        except ImportError:
            raise ExecutionError(f"--transport gloo needs torch; {INSTALL}") from None
        self._as_tensor = torch.from_numpy
        timeout = timedelta(seconds=STORE_SECONDS)
        store = (
            TCPStore(address, 0, is_master=True, wait_for_workers=False, timeout=timeout)
            if not number
            else None
        )
        port = int(share(str(store.port) if store is not None else ""))
        store = store or TCPStore(address, port, is_master=False, timeout=timeout)
        options = ProcessGroupGloo._Options()
        options._devices = [ProcessGroupGloo.create_device(hostname=own_address)]
        options._timeout = PATIENCE
        try:
            self._group = ProcessGroupGloo(store, number, count, options)
        except RuntimeError as error:
            raise ExecutionError(f"gloo cannot connect the processes: {error}") from error
        self._store = store
        self._aborted = threading.Event()
        self._sender = _Waiter("tofu-gloo-send", self._aborted)
        self._receiver = _Waiter("tofu-gloo-receive", self._aborted)
        atexit.register(self._leave)
        self.sent_bytes = 0
        self.received_bytes = 0

    def send(self, process: int, number: int, content: memoryview) -> None:
        """Send a message; when this returns, the memory may be written again. Raises LinkLost."""
        tensor = self._as_tensor(np.asarray(content))
        self._sender.wait(process, lambda: self._group.send([tensor], process, number).wait())
        self.sent_bytes += len(content)

    def receive(self, process: int, number: int, into: memoryview) -> None:
        """Receive a message. Raises LinkLost."""
        tensor = self._as_tensor(np.asarray(into))
        self._receiver.wait(process, lambda: self._group.recv([tensor], process, number).wait())
        self.received_bytes += len(into)

    def abort(self) -> None:
        """Let everything that waits fail at once."""
        self._aborted.set()
        self._sender.wake()
        self._receiver.wake()

    def close(self) -> None:
        """Leave the process group to the end of the process."""
        self.abort()

    def _leave(self) -> None:
        """End the process if a wait was left behind."""
        if self._sender.busy or self._receiver.busy:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(FAILED)


class _Waiter:
    """A thread that waits for gloo, one call after the other."""

    def __init__(self, name: str, aborted: threading.Event) -> None:
        self._aborted = aborted
        self.busy = False
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results: SimpleQueue[Exception | None] = SimpleQueue()
        start_all([threading.Thread(target=self._serve, name=name, daemon=True)])

    def wait(self, process: int, call: Callable[[], Any]) -> None:
        """Wait for a call. Raises LinkLost if it fails, or if the transport is aborted."""
        if self._aborted.is_set():
            raise LinkLost(process, "the run has ended")
        self._calls.put(call)
        problem = self._results.get()
        if problem is not None or self._aborted.is_set():
            reason = "the run has ended" if problem is None else f"its connection broke ({_short(problem)})"
            raise LinkLost(process, reason)

    def wake(self) -> None:
        """End the wait."""
        self._results.put(None)

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            self.busy = True
            problem: Exception | None = None
            try:
                call()
            except RuntimeError as error:
                problem = error
            self.busy = False
            self._results.put(problem)


def _short(problem: Exception) -> str:
    """Return the first sentence of an error of gloo, without the place in gloo's code."""
    first = str(problem).split(". ")[0]
    return first.split("] ", 1)[-1]
