"""Messages of cards through the memory of the host, over any transport.

A message is packed by one launch, or a few, into pinned memory of the host, and sent from there. It is
received into pinned memory, planned as the arena of a stand-in, where the transfers of workers read it: so it
crosses the card's bus once each way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..cuda.machine import Bytes, CudaMachine
from ..cuda.preparation import PreparedCommands, Views
from ..step_threads import Step
from ..thread_tasks import Place
from .card_messages import CardWire, packed, pieces_of, prepared
from .counted_transport import CountedTransport
from .own_workers import Crossed
from .process_view import ProcessView
from .transport import Transport


class HostWire(CardWire):
    """Joins the stand-ins of a process whose workers run on cards to a transport of the host."""

    nbytes = 0
    """The memory of cards that messages take."""

    def __init__(self, view: ProcessView, transport: Transport) -> None:
        super().__init__(view, on_host=True)
        self._transport = transport
        self._counted = CountedTransport(transport)
        self._arenas: dict[int, Bytes] = {}
        self._staging: Bytes

    def begin(self) -> None:
        """Begin to count another iteration."""
        self._counted.begin()

    def crossed(self, updates: bool) -> Crossed:
        """Return the bytes that crossed since then."""
        return self._counted.crossed()

    def host_memory(self, machine: CudaMachine) -> Mapping[int, int]:
        """Allocate the arenas of stand-ins, and the memory in which messages are packed."""
        for stand_in in self._view.stand_ins:
            self._arenas[stand_in] = machine.pinned(self._view.memory.arena_bytes[stand_in])
        most = max((message.nbytes for _, message in self._view.sent()), default=0)
        self._staging = machine.pinned(most)
        return {stand_in: arena.ctypes.data for stand_in, arena in self._arenas.items()}

    def prepare(self, views: Views, machine: CudaMachine) -> Mapping[int, PreparedCommands]:
        """Return the commands that pack the messages of every stand-in."""
        sent, start = self._view.sent(), self._staging.ctypes.data
        pieces = [(pieces_of(self._view, views, message), start) for _, message in sent]
        commands = packed(pieces, machine, self.seats, self.first)
        return prepared(self._view, {place: each for (place, _), each in zip(sent, commands, strict=True)})

    def host_steps(self) -> Mapping[Place, Step]:
        """Return the sending and receiving of each message."""
        steps: dict[Place, Step] = {}
        for place, message in self._view.sent():
            packed = memoryview(self._staging[: message.nbytes])  # type: ignore[arg-type]
            steps[place] = partial(self._transport.send, message.receiver, message.number, packed)
        for place, message in self._view.received():
            start = self._view.offset(place)
            into = memoryview(self._arenas[place[0]][start : start + message.nbytes])  # type: ignore[arg-type]
            steps[place] = partial(self._transport.receive, message.sender, message.number, into)
        return steps
