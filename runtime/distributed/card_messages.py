"""Messages of workers on cards: the commands that pack them, and the instructions that these belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ...operators.cuda.launch.commands import Command
from ...operators.cuda.launch.view import DeviceView
from ...operators.cuda.launch.workspace import DeviceWorkspace
from ...programs.process_messages import ProcessMessage
from ..buffer_views import BufferViews
from ..cuda.machine import CudaMachine
from ..cuda.message_packing import pack
from ..cuda.preparation import PreparedCommands, Views
from ..cuda.seats import Seats
from ..thread_tasks import Place
from .process_view import ProcessView

Commands = tuple[Command, ...]
Pieces = list[tuple[int, DeviceView]]
"""The worker and the memory of each piece of a message."""


class CardWire:
    """The messages of a process whose workers run on cards. Stand-ins have the memory of the host or not."""

    def __init__(self, view: ProcessView, on_host: bool) -> None:
        self.first = view.stand_ins[0]
        workers = view.partitioned.workers - len(view.stand_ins)
        self.seats = Seats.among(workers, view.local, view.stand_ins, on_host)
        self._view = view

    def sent(self) -> list[Place]:
        """List the messages that are sent, in their order."""
        return [place for place, _ in self._view.sent()]

    def received(self) -> list[Place]:
        """List the messages that are received, in their order."""
        return [place for place, _ in self._view.received()]

    def place(self, worker: int, index: int) -> str:
        """Describe a message, for errors."""
        return self._view.place(worker, index)


def pieces_of(view: ProcessView, views: Views, message: ProcessMessage) -> Pieces:
    """Return the pieces of a message; `views` are the buffers of all workers."""
    buffers = BufferViews(view.partitioned, views)
    pieces = [sent.piece for sent in message.pieces]
    return [(each.worker, buffers.part(each.worker, each.buffer, each.region)) for each in pieces]


def packed(
    messages: Sequence[tuple[Pieces, int]], machine: CudaMachine, seats: Seats, stand_in: int
) -> list[Commands]:
    """Return the commands that pack messages, each at an address, in the stream of a stand-in.

    They are issued one after the other, so they share the scratch for memory that the card does not reach.
    """
    reaches = partial(seats.reaches, machine, stand_in)
    needed, most = DeviceWorkspace(), 0
    found = []
    for pieces, address in messages:
        needed.restart(0)
        found.append(pack(pieces, address, reaches, needed))
        most = max(most, needed.used_bytes)
    if not most:
        return found
    start = machine.allocate(seats.number(stand_in), most)
    workspace = DeviceWorkspace(start)
    found = []
    for pieces, address in messages:
        workspace.restart(start)
        found.append(pack(pieces, address, reaches, workspace))
    return found


def prepared(view: ProcessView, commands: Mapping[Place, Commands]) -> dict[int, PreparedCommands]:
    """Return the commands of every stand-in. Messages that are left out have none."""
    return {
        stand_in: PreparedCommands(
            [commands.get((stand_in, index), ()) for index in range(len(messages))],
            [0] * len(messages),
            0,
            (),
        )
        for stand_in, messages in zip(view.stand_ins, view.messages, strict=True)
    }
