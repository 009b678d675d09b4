"""How long the host issues commands for cards while it moves messages itself. Needs no card.

    python -m benchmarks.hosted_commands [--save FILE]

The first of four processes, with one worker, whose messages cross the memory of the host. Nothing is computed
and nothing arrives: CUDA's calls and the transport do nothing, so times are those of the engine alone, and a
driver adds to each call. `eager` issues every command by itself, `runs` what the engine issues: computations
between two waits as one graph, transfers of a tick together. `calls` are the calls of CUDA in an iteration
that put something into a stream, and `microseconds` the least processor time of an iteration.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import tofu
from tofu.operators.cuda.launch.commands import Command
from tofu.programs import plan_memory, schedule
from tofu.programs.process_messages import messages_of
from tofu.programs.program import PartitionedGraph
from tofu.runtime.cuda import cupy_machine
from tofu.runtime.cuda.engine import CudaEngine
from tofu.runtime.distributed.host_wire import HostWire
from tofu.runtime.distributed.process_view import process_view
from tofu.runtime.engine import Watch
from tofu.sync import builders

from .gpu.dry_machine import DryMachine
from .record import Row, record_parts

PROCESSES = 4
ITERATIONS = 20
MODELS = ("mlp", "lenet", "wresnet-10-2", "lstm")


def issued() -> Iterator[Row]:
    for name in MODELS:
        graph = tofu.models.get(name, batch=32).training_graph()
        strategy = builders.all_reduce(graph, PROCESSES)
        plans = {
            "recursive": tofu.partition(graph, PROCESSES),
            "all-reduce": tofu.sync.compile(graph, PROCESSES, strategy),
            "all-reduce, together": tofu.sync.compile(graph, PROCESSES, replace(strategy, together=True)),
        }
        for kind, plan in plans.items():
            program = tofu.lower(graph, plan)
            row: Row = {"model": name, "plan": kind}
            for label, eager in (("eager", True), ("runs", False)):
                row[label] = measured(program, eager)
            yield row


class SilentTransport:
    """Sends and receives nothing."""

    sent_bytes: dict[int, int] = dict.fromkeys(range(PROCESSES), 0)
    received_bytes = 0

    def send(self, process: int, number: int, content: memoryview) -> None:
        pass

    def receive(self, process: int, number: int, into: memoryview) -> None:
        pass


class IssuingMachine(cupy_machine.CupyMachine):
    """A machine for cards that are not there: it has addresses, and libraries that do nothing."""

    def __init__(self, cards: list[int]) -> None:
        self.cuda = SilentCuda()
        with patch.object(cupy_machine, "library", lambda name, purpose: self.cuda.module()):
            super().__init__(cards)
        self._dry = DryMachine(len(cards))
        self._libraries = SimpleNamespace(  # type: ignore[assignment]
            nbytes=[0] * len(cards),
            multiply=lambda worker, command: self.cuda.call(),
            convolve=lambda worker, command: self.cuda.call(),
            scratch_bytes=lambda worker, command: 0,
            closing=list,
        )

    def require(self, nbytes: Any) -> None:
        pass

    def allocate(self, worker: int, nbytes: int) -> int:
        return self._dry.allocate(worker, nbytes)

    def pinned(self, nbytes: int) -> Any:
        return self._dry.pinned(nbytes)

    def load(self, worker: int, commands: Any) -> None:
        for command in commands:
            if isinstance(command, Command) and hasattr(command, "function"):
                self._functions[self._cards[worker], command.function] = self.cuda.call

    def read(self, worker: int, address: int, nbytes: int) -> Any:
        return self._dry.read(worker, address, nbytes)


class SilentCuda:
    """CuPy without CUDA: counts the calls that put something into a stream."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self, *arguments: Any, **options: Any) -> None:
        self.calls += 1

    def module(self) -> Any:
        def stream(non_blocking: bool) -> Any:
            return SimpleNamespace(
                ptr=0,
                done=True,
                wait_event=self.call,
                begin_capture=lambda mode: None,
                end_capture=lambda: SimpleNamespace(launch=self.call),
            )

        def event(disable_timing: bool) -> Any:
            return SimpleNamespace(done=True, record=self.call)

        runtime = SimpleNamespace(
            getDeviceCount=lambda: 1,
            deviceCanAccessPeer=lambda card, other: True,
            streamCaptureModeThreadLocal=0,
            memcpyAsync=self.call,
            memcpyDefault=4,
        )
        none = type("Never", (Exception,), {})
        cuda = SimpleNamespace(
            Device=lambda card: nullcontext(),
            Event=event,
            Stream=stream,
            compiler=SimpleNamespace(CompileException=none),
            memory=SimpleNamespace(OutOfMemoryError=none),
            runtime=runtime,
        )
        return SimpleNamespace(cuda=cuda)


def measured(program: PartitionedGraph, eager: bool) -> Row:
    places = range(PROCESSES)
    view = process_view(program, plan_memory(program), messages_of(program, places), places, 0)
    machine = IssuingMachine([0, 0])
    engine = CudaEngine(
        view.partitioned,
        view.memory,
        schedule(view.partitioned, view.memory),
        machine,
        watch=Watch(60.0),
        eager=eager,
        stand_ins=HostWire(view, SilentTransport()),  # type: ignore[arg-type]
    )
    engine.run()
    engine.run()
    machine.cuda.calls = 0
    times = []
    for _ in range(ITERATIONS):
        begun = time.process_time()
        engine.run()
        times.append(time.process_time() - begun)
    engine.close()
    return {"calls": machine.cuda.calls // ITERATIONS, "microseconds": round(1e6 * min(times))}


if __name__ == "__main__":
    record_parts({"issued": issued}, __doc__)
