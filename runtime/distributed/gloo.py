"""Messages over gloo, the transport of torch.distributed for processors.

Nothing can interrupt a wait for gloo, so waits are in threads of their own, see `waiter`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from ...errors import ExecutionError
from .rendezvous import INSTALL
from .transport import LinkLost
from .waiter import Left, Waiter

PATIENCE = timedelta(days=30)
"""Gloo's own timeout. Processes that are silent are found by the control connections."""

STORE_SECONDS = 60


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
        self._sender = Waiter("tofu-gloo-send")
        self._receiver = Waiter("tofu-gloo-receive")
        self.sent_bytes = {other: 0 for other in range(count) if other != number}
        self.received_bytes = 0

    def send(self, process: int, number: int, content: memoryview) -> None:
        """Send a message; when this returns, the memory may be written again. Raises LinkLost."""
        tensor = self._as_tensor(np.asarray(content))
        self._waited(self._sender, process, lambda: self._group.send([tensor], process, number).wait())
        self.sent_bytes[process] += len(content)

    def receive(self, process: int, number: int, into: memoryview) -> None:
        """Receive a message. Raises LinkLost."""
        tensor = self._as_tensor(np.asarray(into))
        self._waited(self._receiver, process, lambda: self._group.recv([tensor], process, number).wait())
        self.received_bytes += len(into)

    def abort(self) -> None:
        """Let everything that waits fail at once."""
        self._sender.abort()
        self._receiver.abort()

    def close(self) -> None:
        """Leave the process group to the end of the process."""
        self.abort()

    @staticmethod
    def _waited(waiter: Waiter, process: int, call: Callable[[], Any]) -> None:
        try:
            waiter.wait(call)
        except Left:
            raise LinkLost(process, "the run has ended") from None
        except RuntimeError as problem:
            raise LinkLost(process, f"its connection broke ({_short(problem)})") from problem


def _short(problem: Exception) -> str:
    """Return the first sentence of an error of gloo, without the place in gloo's code."""
    first = str(problem).split(". ")[0]
    return first.split("] ", 1)[-1]
