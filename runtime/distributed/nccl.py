"""Messages between the cards of processes over NCCL, through CuPy's communicator.

There is one communicator, with one card of each process. Its operations run in the order in which they are
issued, in one stream, and sending ends when the other end receives. So all messages of a tick are one group,
in which none waits for another, and all processes issue the groups in the order of the clock.

* Two processes cannot have the same card. They compare their cards before they connect.
* The first exchange between two processes opens connections, which cannot be captured in a graph. The engine
  captures its second iteration at the earliest.
* NCCL does not always notice a lost peer. The control connections do, and then `abort` ends what waits on the
  card. As NCCL may itself wait there, a thread of its own calls it.
* Nothing may use a communicator after it was aborted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

from ...errors import ExecutionError
from ...operators.cuda.launch.commands import Exchange
from ...operators.cuda.vendor.libraries import library
from ..started_threads import start_all
from .transport import LinkLost
from .waiter import Left, Waiter

OLDEST = 21900
"""The first version that another thread can abort, 2.19, as NCCL writes it."""

REMEDY = "pip install nvidia-nccl-cu13, or nvidia-nccl-cu12 with CUDA 12"


class Nccl:
    """The communicator of this process, whose card is `card`.

    Raises ExecutionError if CuPy or NCCL is missing or too old.
    """

    def __init__(self, number: int, count: int, card: int) -> None:
        self._number = number
        self._count = count
        self._card = card
        self._nccl = library("cupy.cuda.nccl", "--transport nccl")
        if not hasattr(self._nccl, "NcclCommunicator"):
            raise ExecutionError(f"--transport nccl needs NCCL, which CuPy does not find: {REMEDY}")
        version = int(self._nccl.get_version())
        if version < OLDEST:
            raise ExecutionError(f"NCCL has version {version}, but {OLDEST} or newer is needed: {REMEDY}")
        self._device = library("cupy", "a GPU").cuda.Device
        self._communicator: Any = None
        self._lost = Event()
        self._waiter = Waiter("tofu-nccl")

    def connect(self, share: Callable[[str], str]) -> None:
        """Connect to the cards of all processes. `share` gives all processes what the first one says.

        Raises ExecutionError if NCCL cannot connect them, and LinkLost if one is lost meanwhile.
        """
        own = "" if self._number else json.dumps(self._nccl.get_unique_id())
        name = tuple(json.loads(share(own)))

        def connected() -> Any:
            with self._device(self._card):
                return self._nccl.NcclCommunicator(self._count, name, self._number)

        try:
            self._communicator = self._waiter.wait(connected)
        except Left:
            raise LinkLost(None, "the run has ended") from None
        except RuntimeError as error:
            raise ExecutionError(f"NCCL cannot connect the processes: {error}") from error

    def exchange(self, messages: Exchange, stream: int) -> None:
        """Put messages into a stream of this process's card, which is the current one. Raises LinkLost."""
        self._require()
        kind = self._nccl.NCCL_UINT8
        try:
            self._nccl.groupStart()
            for each in messages.sent:
                self._communicator.send(each.address, each.nbytes, kind, each.process, stream)
            for each in messages.received:
                self._communicator.recv(each.address, each.nbytes, kind, each.process, stream)
            self._nccl.groupEnd()
        except RuntimeError as error:
            raise LinkLost(None, f"NCCL: {error}") from error

    def check(self) -> None:
        """Raise LinkLost if an exchange failed on its way, or a process was lost."""
        self._require()
        try:
            self._communicator.check_async_error()
        except RuntimeError as error:
            raise LinkLost(None, f"NCCL: {error}") from error

    def abort(self) -> None:
        """End all exchanges that wait. Safe in any thread."""
        if self._lost.is_set():
            return
        self._lost.set()
        self._waiter.abort()
        if self._communicator is not None:
            start_all([Thread(target=self._communicator.abort, name="tofu-nccl-abort", daemon=True)])

    def close(self) -> None:
        """Disconnect, together with all other processes."""
        if self._communicator is None or self._lost.is_set():
            return
        communicator, self._communicator = self._communicator, None
        try:
            self._waiter.wait(communicator.destroy)
        except Left:
            return

    def _require(self) -> None:
        if self._lost.is_set():
            raise LinkLost(None, "the run has ended")
        if self._communicator is None:
            raise ExecutionError("the processes are not connected by NCCL, or no longer")


def require_own_cards(cards: Sequence[str], names: Sequence[str]) -> None:
    """Raise ExecutionError if two processes have the same card; `names` are the processes in words."""
    first: dict[str, str] = {}
    for card, name in zip(cards, names, strict=True):
        other = first.setdefault(card, name)
        if other != name:
            raise ExecutionError(
                f"{other} and {name} have the same card, {card}, but NCCL wants one for each process; start "
                "one process for each card, or take another transport"
            )
