"""The engine of one process among several: that of its own workers, with messages to the others.

All processes call the same methods in the same order. An iteration ends in all of them or in none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ...analyzer.indices.region import Region
from ...dataflow.element_types import storage_type
from ...errors import ExecutionError
from ...operators.kernels.kernel import Array
from ...programs.memory import MemoryPlan
from ...programs.process_messages import messages_of
from ...programs.program import Held, PartitionedGraph
from ..checkpoint_file import content
from .own_workers import OwnWorkers
from .process_view import ProcessView, process_view
from .transport import LinkLost, Transport

END = "end an iteration"
"""The purpose of the exchange after every iteration."""


class Together(Protocol):
    """The parts of `Processes` that the engine needs."""

    number: int
    local_count: int

    @property
    def places(self) -> Sequence[int]:
        """Return the process of each worker."""
        ...

    @property
    def transport(self) -> Transport: ...

    @property
    def lost(self) -> bool: ...

    def exchange(self, purpose: str, content: bytes) -> list[bytes]: ...

    def expect(self, purpose: str) -> None: ...

    def fail(self, error: Exception) -> ExecutionError: ...


class DistributedEngine:
    """Runs the workers of this process, one iteration per call of `run`.

    `own` makes them from the programs of this process.
    """

    def __init__(
        self,
        partitioned: PartitionedGraph,
        memory: MemoryPlan,
        processes: Together,
        own: Callable[[ProcessView], OwnWorkers],
    ) -> None:
        self._partitioned = partitioned
        self._processes = processes
        messages = messages_of(partitioned, processes.places)
        view = process_view(partitioned, memory, messages, processes.places, processes.number)
        made = own(view)
        self._engine, self._messages = made.engine, made.messages
        self.local = view.local
        self.iterations = 0
        self._homes = {held: homes for homes in partitioned.homes for held in homes}
        self._gathered: dict[Held, Array] = {}
        """The parts of the tensor that was read last."""
        self._fetched_bytes = 0
        self._sent: dict[int, int] = {}
        """The bytes that each process got from this one in the last iteration."""
        self._workspace_bytes = self._all_workspaces(self._engine.workspace_bytes)

    @property
    def fetched_bytes(self) -> int:
        """Count the bytes that crossed between workers in the last iteration, in all processes.

        Those that crossed between processes are counted as they were sent.
        """
        return self._fetched_bytes

    @property
    def process_bytes(self) -> tuple[tuple[int, ...], ...]:
        """Return the bytes that each process got from each in the last iteration: `[source][reader]`."""
        content = json.dumps([self._sent.get(each, 0) for each in sorted(set(self._processes.places))])
        said = self._processes.exchange("count bytes", content.encode())
        return tuple(tuple(json.loads(row)) for row in said)

    @property
    def workspace_bytes(self) -> tuple[int, ...]:
        """Count the bytes besides each worker's arena.

        The memory that messages take there counts for the first worker of each process.
        """
        return self._workspace_bytes

    @property
    def failed(self) -> bool:
        """Tell whether an iteration stopped halfway, here or in another process."""
        return self._engine.failed or self._processes.lost

    def run(self, updates: bool = True) -> None:
        """Run one iteration, in all processes. If `updates` is False, skip the parameter updates.

        Raises ExecutionError that names the worker, the operation and the iteration, or the process that was
        lost.
        """
        self._gathered = {}
        self._messages.begin()
        self._processes.expect(END)
        try:
            self._engine.run(updates)
        except ExecutionError as error:
            raise self._processes.fail(error) from error
        except BaseException as error:
            number, kind = self._processes.number, type(error).__name__
            self._processes.fail(
                ExecutionError(f"process {number} was interrupted in iteration {self.iterations} ({kind})")
            )
            raise
        crossed = self._messages.crossed(updates)
        self._sent = {**crossed.sent, self._processes.number: self._engine.fetched_bytes - crossed.received}
        counted = b"%d" % sum(self._sent.values())
        self._fetched_bytes = sum(map(int, self._processes.exchange(END, counted)))
        self.iterations += 1

    def write(self, worker: int, buffer: int, values: Array) -> None:
        """Fill a buffer, if its worker is in this process."""
        self._gathered = {}
        if worker in self.local:
            self._engine.write(worker, buffer, values)

    def read(self, worker: int, buffer: int) -> Array:
        """Return a buffer's contents, valid until the next iteration.

        The first part of a tensor that is read brings all parts from their processes.
        """
        if (worker, buffer) not in self._gathered:
            homes = self._homes.get((worker, buffer), ((worker, buffer),))
            self._gathered = self._gather(homes)
        return self._gathered[worker, buffer]

    def bring(self, held: Sequence[Held], process: int) -> bool:
        """Bring buffers into one process, so that `read` there is local; tell whether it is this one.

        Of equal regions one travels, and none if the process has one of them. All processes send and receive
        in one order, so none waits for ever.
        """
        self._gathered = {}
        places, me = self._processes.places, self._processes.number
        chosen: dict[Region, Held] = {}
        for worker, buffer in sorted(held, key=lambda each: places[each[0]] != process):
            chosen.setdefault(self._region((worker, buffer)), (worker, buffer))
        found: dict[Region, Array] = {}
        try:
            for number, (region, (worker, buffer)) in enumerate(chosen.items()):
                source = places[worker]
                if source == me:
                    values = np.ascontiguousarray(self._engine.read(worker, buffer))
                    found[region] = values
                    if process != me:
                        self._processes.transport.send(process, number, content(values))
                elif process == me:
                    form = self._partitioned.programs[worker].buffers[buffer]
                    dtype = storage_type(self._partitioned.graph.tensors[form.tensor].dtype)
                    found[region] = np.empty([upper - lower for lower, upper in region], dtype)
                    self._processes.transport.receive(source, number, content(found[region]))
        except LinkLost as error:
            failed = ExecutionError("the reading of a tensor")
            failed.__cause__ = error
            raise self._processes.fail(failed) from error
        if process == me:
            self._gathered = {each: found[self._region(each)] for each in held}
        return process == me

    def read_own(self, worker: int, buffer: int) -> Array:
        """Return the contents of a buffer of this process, valid until the next iteration."""
        return self._engine.read(worker, buffer)

    def exchange(self, purpose: str, content: bytes) -> list[bytes]:
        """Return the contents that all processes give for a purpose, by process."""
        return self._processes.exchange(purpose, content)

    def close(self) -> None:
        """End the threads. The engine cannot run again."""
        self._engine.close()

    def _region(self, held: Held) -> Region:
        """Return the region of a buffer."""
        return self._partitioned.programs[held[0]].buffers[held[1]].region

    def _gather(self, homes: Sequence[Held]) -> dict[Held, Array]:
        """Return the contents of buffers from their processes. Of equal regions one is sent."""
        regions = [self._region(held) for held in homes]
        senders = dict(zip(reversed(regions), reversed(homes), strict=True))
        places = self._processes.places
        own = [held for held in senders.values() if held[0] in self.local]
        content = b"".join(np.ascontiguousarray(self._engine.read(*held)).tobytes() for held in own)
        said = self._processes.exchange("read a tensor", content)
        starts = [0] * len(said)
        found: dict[Region, Array] = {}
        for region, (worker, buffer) in senders.items():
            process, form = places[worker], self._partitioned.programs[worker].buffers[buffer]
            part = np.frombuffer(said[process], np.uint8, form.nbytes, starts[process])
            dtype = storage_type(self._partitioned.graph.tensors[form.tensor].dtype)
            found[region] = part.view(dtype).reshape([upper - lower for lower, upper in region])
            starts[process] += form.nbytes
        return {held: found[region] for held, region in zip(homes, regions, strict=True)}

    def _all_workspaces(self, own: Sequence[int]) -> tuple[int, ...]:
        """Return the workspaces of all workers, with the memory for messages."""
        counted = {worker: own[worker] for worker in self.local}
        counted[self.local[0]] += self._messages.nbytes
        known: dict[str, int] = {}
        for said in self._processes.exchange("count memory", json.dumps(counted).encode()):
            known |= json.loads(said)
        return tuple(known[str(worker)] for worker in range(self._partitioned.workers))


def lost_link(error: BaseException) -> LinkLost | None:
    """Return the loss of a connection, if that is why an iteration failed."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, LinkLost):
        cause = cause.__cause__
    return cause
