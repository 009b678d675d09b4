"""Messages of cards over NCCL, from arena to arena.

A single contiguous piece is sent from its place in the arena. Others are packed on the card first. All
messages of a tick cross together, so each has its own part of the memory for packing, which the next tick
uses again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...operators.cuda.launch.commands import CardMessage, Exchange
from ...operators.kernels.workspace import aligned
from ...programs.process_messages import ProcessMessage
from ...programs.program import Compute
from ..cuda.machine import CudaMachine
from ..cuda.message_packing import is_dense
from ..cuda.preparation import PreparedCommands, Views
from ..thread_tasks import Place
from ..update_gate import gated_instructions
from .card_messages import CardWire, Commands, Pieces, packed, pieces_of, prepared
from .own_workers import Crossed
from .process_view import PlacedMessage, ProcessView


class NcclWire(CardWire):
    """Joins the stand-ins of a process to others, between whose cards NCCL moves messages."""

    def __init__(self, view: ProcessView) -> None:
        super().__init__(view, on_host=False)
        self._gated = gated_instructions(view.partitioned)
        self._staging_bytes = 0

    @property
    def nbytes(self) -> int:
        """Return the memory of cards that messages take."""
        received = (self._view.memory.arena_bytes[each] for each in self._view.stand_ins)
        return self._staging_bytes + sum(received)

    def begin(self) -> None:
        """Begin another iteration."""

    def crossed(self, updates: bool) -> Crossed:
        """Return the bytes of the messages that an iteration exchanges."""
        sent: defaultdict[int, int] = defaultdict(int)
        for message in self._exchanged(self._view.sent(), updates):
            sent[message.receiver] += message.nbytes
        received = sum(each.nbytes for each in self._exchanged(self._view.received(), updates))
        return Crossed(sent, received)

    def host_memory(self, machine: CudaMachine) -> Mapping[int, int]:
        """Return nothing: messages are received on the card."""
        return {}

    def prepare(self, views: Views, machine: CudaMachine) -> Mapping[int, PreparedCommands]:
        """Return the commands of every message."""
        exchanges: dict[Place, Exchange] = {}
        packs: dict[Place, Commands] = {}
        for place, message in self._view.received():
            stand_in, index = place
            receipt = self._view.partitioned.programs[stand_in].instructions[index]
            assert isinstance(receipt, Compute)
            address = views[stand_in][receipt.outputs[0]].address
            arrived = CardMessage(message.sender, address, message.nbytes)
            exchanges[place] = Exchange((), (arrived,))
        sent = [(each, pieces_of(self._view, views, each[1])) for each in self._view.sent()]
        starts = self._starts(sent)
        base = machine.allocate(self.seats.number(self.first), self._staging_bytes) if starts else 0
        moved = [(pieces, base + starts[place]) for (place, _), pieces in sent if place in starts]
        for place, commands in zip(starts, packed(moved, machine, self.seats, self.first), strict=True):
            packs[place] = commands
        for (place, message), pieces in sent:
            address = base + starts[place] if place in starts else pieces[0][1].address
            exchanges[place] = Exchange((CardMessage(message.receiver, address, message.nbytes),), ())
        return prepared(
            self._view, {place: (*packs.get(place, ()), each) for place, each in exchanges.items()}
        )

    def host_steps(self) -> None:
        """Return nothing: cards exchange messages by themselves."""
        return

    def _starts(self, sent: Sequence[tuple[PlacedMessage, Pieces]]) -> dict[Place, int]:
        """Return where in the memory for packing each message begins that is not sent from its arena."""
        used: defaultdict[int, int] = defaultdict(int)
        starts: dict[Place, int] = {}
        for (place, message), pieces in sent:
            if not self._lies_ready(pieces):
                starts[place] = used[message.tick]
                used[message.tick] += aligned(message.nbytes)
        self._staging_bytes = max(used.values(), default=0)
        return starts

    def _lies_ready(self, pieces: Pieces) -> bool:
        """Tell whether a message is one run of memory on the card that NCCL uses."""
        return len(pieces) == 1 and pieces[0][0] == self._view.local[0] and is_dense(pieces[0][1])

    def _exchanged(self, messages: Sequence[PlacedMessage], updates: bool) -> list[ProcessMessage]:
        return [m for (stand_in, index), m in messages if updates or not self._gated[stand_in][index]]
