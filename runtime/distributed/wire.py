"""The steps of stand-ins: pack and send messages, and receive them into the memory planned for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...operators.kernels.kernel import Array
from ...programs.program import Compute, Lane, MultiFetch
from ...programs.schedule import LaneOf
from ..buffer_views import BufferViews
from ..collectives import FetchedBytes, Step, Transfer, multi_fetch
from ..preparation import Buffers, PreparedSteps
from .messages import ProcessMessage
from .process_view import ProcessView
from .transport import Transport


class Wire:
    """Joins the stand-ins of a process to a transport."""

    def __init__(self, view: ProcessView, transport: Transport) -> None:
        self.local = view.local
        self.first = view.stand_ins[0]
        self._view = view
        self._transport = transport
        sent = [message.nbytes for _, message in self._each(MultiFetch)]
        self._staging = np.empty(max(sent, default=0), np.uint8)
        """Where a message is packed. One thread sends, and the memory is free when `send` returns."""

    @property
    def nbytes(self) -> int:
        """Return the memory for messages, sent and received."""
        return self._staging.nbytes + sum(
            self._view.memory.arena_bytes[each] for each in self._view.stand_ins
        )

    def lanes(self) -> list[list[LaneOf]]:
        """Return the lanes of the threads that send and that receive."""
        return [[(each, lane) for each in self._view.stand_ins] for lane in (Lane.TRANSFER, Lane.COMPUTE)]

    def prepare(self, buffers: Buffers, arenas: Sequence[Array]) -> Mapping[int, PreparedSteps]:
        """Return the steps of every stand-in."""
        steps: dict[int, list[Step]] = {each: [] for each in self._view.stand_ins}
        for (stand_in, index), message in self._each(Compute, MultiFetch):
            instruction = self._view.partitioned.programs[stand_in].instructions[index]
            if isinstance(instruction, Compute):
                start = self._view.memory.offsets[stand_in][instruction.outputs[0]]
                place = arenas[stand_in][start : start + message.nbytes]
                steps[stand_in].append(self._receipt(message, memoryview(place)))  # type: ignore[arg-type]
            else:
                steps[stand_in].append(self._sending(message, buffers))
        return {each: PreparedSteps(tuple(found), FetchedBytes(), ()) for each, found in steps.items()}

    def place(self, stand_in: int, index: int) -> str:
        """Describe the message of an instruction, for errors."""
        message = self._view.messages[stand_in - self._view.stand_ins[0]][index]
        operation = self._view.partitioned.graph.operations[message.operation].name
        return (
            f"message {message.number} of operation '{operation}' from process {message.sender} "
            f"to {message.receiver}"
        )

    def _each(self, *kinds: type) -> list[tuple[tuple[int, int], ProcessMessage]]:
        """List the stand-in, index and message of all instructions of some kinds."""
        return [
            ((stand_in, index), message)
            for stand_in, messages in zip(self._view.stand_ins, self._view.messages, strict=True)
            for index, message in enumerate(messages)
            if isinstance(self._view.partitioned.programs[stand_in].instructions[index], kinds)
        ]

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
