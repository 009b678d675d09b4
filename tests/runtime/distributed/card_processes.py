"""Processes that are threads of one, whose workers run on stand-ins for cards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime.cuda.cupy_machine import CupyMachine
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.cuda.stand_ins import CardStandIns
from tofu.runtime.distributed import nccl
from tofu.runtime.distributed.host_wire import HostWire
from tofu.runtime.distributed.nccl import Nccl
from tofu.runtime.distributed.nccl_wire import NcclWire
from tofu.runtime.distributed.process_view import ProcessView
from tofu.runtime.engine import Watch

from ..cuda.bench import Arrays, Bench, learned
from ..cuda.host_machine import Compiled
from ..cuda.stand_in import StandIn, installed
from .in_memory import PATIENCE_SECONDS, QueueTransport, together, transports_of, views_of
from .nccl_stand_in import World

STEPS = 3
BUS_STEP = 16
"""The distance between the addresses of the first cards of two processes."""


class CardProcesses:
    """The engines of all processes of a run."""

    def __init__(self, partitioned: PartitionedGraph, places: Sequence[int]) -> None:
        self.partitioned = partitioned
        self.places = places
        self.views = views_of(partitioned, places)
        self.engines: list[CudaEngine] = []

    def add(self, view: ProcessView, machine: Any, wire: CardStandIns, **options: Any) -> None:
        """Add the next process."""
        waits = schedule(view.partitioned, view.memory)
        watch = Watch(PATIENCE_SECONDS)
        self.engines.append(
            CudaEngine(view.partitioned, view.memory, waits, machine, watch=watch, stand_ins=wire, **options)
        )

    def write(self, values: Arrays) -> None:
        for name, value in values.items():
            for worker, buffer, region in self._parts(name):
                self.engines[self.places[worker]].write(worker, buffer, value[region])

    def read(self, like: Arrays) -> Arrays:
        found = {}
        for name, value in like.items():
            found[name] = np.empty_like(value)
            for worker, buffer, region in self._parts(name):
                found[name][region] = self.engines[self.places[worker]].read(worker, buffer)
        return found

    def run(self, updates: bool = True) -> None:
        together([lambda engine=engine: engine.run(updates) for engine in self.engines])  # type: ignore[misc]

    def close(self) -> None:
        for engine in self.engines:
            engine.close()

    def _parts(self, name: str) -> Iterator[tuple[int, int, tuple[slice, ...]]]:
        tensor = next(each for each in self.partitioned.graph.tensors if each.name == name)
        for worker, buffer in self.partitioned.homes[tensor.index]:
            region = self.partitioned.programs[worker].buffers[buffer].region
            yield worker, buffer, tuple(slice(lower, upper) for lower, upper in region)


class HostProcesses(CardProcesses):
    """Processes on stand-ins for the machine of cards, with messages in queues."""

    def __init__(
        self, partitioned: PartitionedGraph, places: Sequence[int], host: Bench, rendezvous: bool = False
    ) -> None:
        super().__init__(partitioned, places)
        self.transports: list[QueueTransport] = transports_of(len(self.views), rendezvous)
        self.wires = []
        self.machines = []
        for number, (view, transport) in enumerate(zip(self.views, self.transports, strict=True)):
            self.machines.append(host.new_machine(len(view.local) + 1, seed=number))
            self.wires.append(HostWire(view, transport))
            self.add(view, self.machines[-1], self.wires[-1])


class NcclProcesses(CardProcesses):
    """Processes on stand-ins for CuPy, each with cards of its own, with messages over NCCL's stand-in."""

    def __init__(
        self,
        partitioned: PartitionedGraph,
        places: Sequence[int],
        kernels: Compiled,
        monkeypatch: pytest.MonkeyPatch,
        world: World | None = None,
        **options: Any,
    ) -> None:
        super().__init__(partitioned, places)
        self.world = world or World()
        self.cudas = [
            StandIn(kernels, bus=BUS_STEP * number, seed=number) for number in range(len(self.views))
        ]
        self.links: list[Nccl] = []
        self.wires: list[NcclWire] = []
        for number, (view, cuda) in enumerate(zip(self.views, self.cudas, strict=True)):
            library = self._library(cuda, monkeypatch)
            monkeypatch.setattr(nccl, "library", lambda name, purpose, found=library: found[name])
            self.links.append(Nccl(number, len(self.views), 0))
            self.wires.append(NcclWire(view))
            cards = [worker % cuda.cards for worker in range(len(view.local))]
            self.add(view, CupyMachine([*cards, 0], communicator=self.links[-1]), self.wires[-1], **options)
        unique = json.dumps(list(range(128)))
        together([lambda link=link: link.connect(lambda own: unique) for link in self.links])  # type: ignore[misc]

    def _library(self, cuda: StandIn, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Let what is made from now on use a process's stand-ins."""
        installed(cuda, monkeypatch)
        return {"cupy": cuda.module(), "cupy.cuda.nccl": self.world.module(cuda)}


def learned_alone(partitioned: PartitionedGraph, values: Arrays, host: Bench, steps: int = STEPS) -> Arrays:
    """Return what one process learns."""
    with host.executor(partitioned) as executor:
        return learned(executor, values, steps)
