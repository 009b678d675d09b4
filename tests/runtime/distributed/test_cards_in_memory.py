"""Processes whose workers run on cards, here as threads on stand-ins for cards, with messages in queues.

They have the bits of one process on such cards, whatever order the streams advance in, and send the planned
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.distributed.host_wire import HostWire
from tofu.runtime.distributed.messages import messages_of
from tofu.runtime.engine import Watch

from ..cuda.bench import Arrays, Bench, learned, over, start
from ..cuda.graphs import graph
from ..cuda.guards import fill, intact
from .in_memory import PATIENCE_SECONDS, QueueTransport, together, transports_of, views_of

STEPS = 3


class CardProcesses:
    """The engines of all processes of a run, each on a machine of its own."""

    def __init__(
        self, partitioned: PartitionedGraph, places: Sequence[int], host: Bench, rendezvous: bool = False
    ) -> None:
        self.partitioned = partitioned
        self.places = places
        views = views_of(partitioned, places)
        self.transports: list[QueueTransport] = transports_of(len(views), rendezvous)
        self.machines = []
        self.engines = []
        for number, (view, transport) in enumerate(zip(views, self.transports, strict=True)):
            machine = host.new_machine(len(view.local) + 1, seed=number)
            wire = HostWire(view, transport)
            waits = schedule(view.partitioned, view.memory)
            engine = CudaEngine(
                view.partitioned, view.memory, waits, machine, watch=Watch(PATIENCE_SECONDS), stand_ins=wire
            )
            self.machines.append(machine)
            self.engines.append(engine)

    def write(self, name: str, value: np.ndarray) -> None:
        for worker, buffer, region in self._parts(name):
            self.engines[self.places[worker]].write(worker, buffer, value[region])

    def read(self, name: str, like: np.ndarray) -> np.ndarray:
        whole = np.empty_like(like)
        for worker, buffer, region in self._parts(name):
            whole[region] = self.engines[self.places[worker]].read(worker, buffer)
        return whole

    def poison(self) -> None:
        """Fill all arenas with NaN, and what messages are received into."""
        for machine, engine in zip(self.machines, self.engines, strict=True):
            scratch = {each.scratch_bytes for each in engine._prepared}
            for block in machine.blocks:
                if block.nbytes not in scratch:
                    fill(machine, block.worker, block.address, block.nbytes)

    def run(self, updates: bool = True) -> None:
        together([lambda engine=engine: engine.run(updates) for engine in self.engines])

    def _parts(self, name: str):
        tensor = next(each for each in self.partitioned.graph.tensors if each.name == name)
        for worker, buffer in self.partitioned.homes[tensor.index]:
            region = self.partitioned.programs[worker].buffers[buffer].region
            yield worker, buffer, tuple(slice(lower, upper) for lower, upper in region)


def expected(partitioned: PartitionedGraph, values: Arrays, host: Bench) -> Arrays:
    """Return what one process learns."""
    with host.executor(partitioned) as executor:
        return learned(executor, values, STEPS)


@pytest.mark.parametrize(
    ("name", "places", "rendezvous"),
    [
        ("mlp-adam", (0, 1), False),
        ("mlp-adam", (0, 1, 2, 3), True),
        ("residual", (0, 0, 1, 1), True),
        ("residual", (0, 1, 1, 2), False),
        ("lstm", (0, 1), False),
        ("gpt-1-16", (1, 0, 1, 0), True),
    ],
)
def test_processes_have_the_bits_of_one(
    name: str, places: tuple[int, ...], rendezvous: bool, host: Bench
) -> None:
    partitioned, values = over(graph(name), len(places)), start(graph(name))
    learned_alone = expected(partitioned, values, host)
    processes = CardProcesses(partitioned, places, host, rendezvous)
    for each, value in values.items():
        processes.write(each, value)
    for _ in range(STEPS):
        processes.run()
        assert sum(engine.fetched_bytes for engine in processes.engines) == partitioned.planned_bytes
    for each, value in learned_alone.items():
        assert processes.read(each, value).tobytes() == value.tobytes(), each
    planned = sum(message.nbytes for message in messages_of(partitioned, places))
    assert sum(sum(each.sent_bytes.values()) for each in processes.transports) == STEPS * planned > 0
    assert sum(each.received_bytes for each in processes.transports) == STEPS * planned
    for machine, engine in zip(processes.machines, processes.engines, strict=True):
        assert intact(machine)
        engine.close()
