"""The steps of stand-ins: pack and send messages, and receive them into the memory planned for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np

from ...operators.kernels.kernel import Array
from ...programs.process_messages import ProcessMessage
from ...programs.program import Lane
from ...programs.schedule import LaneOf
from ..buffer_views import BufferViews
from ..collectives import FetchedBytes, Step, Transfer, multi_fetch
from ..preparation import Buffers, PreparedSteps
from ..thread_tasks import Place
from .counted_transport import CountedTransport
from .own_workers import Crossed
from .process_view import ProcessView
from .transport import Transport


class Wire:
    """Joins the stand-ins of a process to a transport."""

    def __init__(self, view: ProcessView, transport: Transport) -> None:
        self.local = view.local
        self.first = view.stand_ins[0]
        self._view = view
        self._transport = transport
        self._counted = CountedTransport(transport)
        sent = [message.nbytes for _, message in view.sent()]
        self._staging = np.empty(max(sent, default=0), np.uint8)
        """Where a message is packed. One thread sends, and the memory is free when `send` returns."""

    @property
    def nbytes(self) -> int:
        """Return the memory for messages, sent and received."""
        return self._staging.nbytes + sum(
            self._view.memory.arena_bytes[each] for each in self._view.stand_ins
        )

    def begin(self) -> None:
        """Begin to count another iteration."""
        self._counted.begin()

    def crossed(self, updates: bool) -> Crossed:
        """Return the bytes that crossed since then."""
        return self._counted.crossed()

    def lanes(self) -> list[list[LaneOf]]:
        """Return the lanes of the threads that send and that receive."""
        return [[(each, lane) for each in self._view.stand_ins] for lane in (Lane.TRANSFER, Lane.COMPUTE)]

    def prepare(self, buffers: Buffers, arenas: Sequence[Array]) -> Mapping[int, PreparedSteps]:
        """Return the steps of every stand-in."""
        found: dict[Place, Step] = {}
        for place, message in self._view.received():
            start = self._view.offset(place)
            into = memoryview(arenas[place[0]][start : start + message.nbytes])  # type: ignore[arg-type]
            found[place] = self._receipt(message, into)
        for place, message in self._view.sent():
            found[place] = self._sending(message, buffers)
        steps: dict[int, list[Step]] = {each: [] for each in self._view.stand_ins}
        for (stand_in, _), step in sorted(found.items(), key=itemgetter(0)):
            steps[stand_in].append(step)
        return {each: PreparedSteps(tuple(own), FetchedBytes(), ()) for each, own in steps.items()}

    def place(self, stand_in: int, index: int) -> str:
        """Describe the message of an instruction, for errors."""
        return self._view.place(stand_in, index)

    def _receipt(self, message: ProcessMessage, into: memoryview) -> Step:
        def run() -> None:
            self._transport.receive(message.sender, message.number, into)

        return run

    def _sending(self, message: ProcessMessage, buffers: Buffers) -> Step:
        """Return the step that packs a message and sends it. A single contiguous piece is sent as it is."""
        views = BufferViews(self._view.partitioned, buffers)
        sources = [
            views.part(sent.piece.worker, sent.piece.buffer, sent.piece.region) for sent in message.pieces
        ]
        if len(sources) == 1 and sources[0].flags.c_contiguous and sources[0].nbytes:
            whole = memoryview(sources[0].reshape(-1).view(np.uint8))  # type: ignore[arg-type]
            return lambda: self._transport.send(message.receiver, message.number, whole)
        transfers: list[Transfer] = []
        start = 0
        for source in sources:
            place = self._staging[start : start + source.nbytes].view(source.dtype).reshape(source.shape)
            transfers.append(Transfer(source, place, False))
            start += source.nbytes
        pack = multi_fetch(transfers, FetchedBytes())
        packed = memoryview(self._staging[:start])  # type: ignore[arg-type]

        def run() -> None:
            pack()
            self._transport.send(message.receiver, message.number, packed)

        return run
