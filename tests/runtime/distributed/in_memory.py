"""Processes that are threads of one: a transport through queues, and engines that run next to each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import TypeVar

from tofu.programs.memory import plan_memory
from tofu.programs.process_messages import ProcessMessage, messages_of
from tofu.programs.program import PartitionedGraph
from tofu.programs.schedule import schedule
from tofu.runtime.distributed.process_view import ProcessView, process_view
from tofu.runtime.distributed.wire import Wire
from tofu.runtime.engine import Watch
from tofu.runtime.numpy_engine import NumpyEngine

Grouping = Callable[[PartitionedGraph, Sequence[int]], tuple[ProcessMessage, ...]]
"""Groups the pieces that cross between processes."""

Value = TypeVar("Value")
Queues = dict[tuple[int, int], "Queue[tuple[int, bytes]]"]
PATIENCE_SECONDS = 20.0


class QueueTransport:
    """A process's end of queues; a message is taken before `send` returns, as over a slow network."""

    def __init__(self, queues: Queues, me: int, rendezvous: bool) -> None:
        self._queues = queues
        self._me = me
        self._rendezvous = rendezvous
        self.sent_bytes: dict[int, int] = {}
        self.received_bytes = 0

    def send(self, process: int, number: int, content: memoryview) -> None:
        queue = self._queues[self._me, process]
        queue.put((number, bytes(content)), timeout=PATIENCE_SECONDS)
        self.sent_bytes[process] = self.sent_bytes.get(process, 0) + len(content)
        if self._rendezvous:
            queue.join()

    def receive(self, process: int, number: int, into: memoryview) -> None:
        queue = self._queues[process, self._me]
        found, content = queue.get(timeout=PATIENCE_SECONDS)
        assert found == number
        assert len(content) == len(into)
        into[:] = content
        self.received_bytes += len(content)
        queue.task_done()

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


def views_of(
    partitioned: PartitionedGraph, processes: Sequence[int], grouping: Grouping = messages_of
) -> list[ProcessView]:
    """Return the view of every process."""
    messages, memory = grouping(partitioned, processes), plan_memory(partitioned)
    count = max(processes) + 1
    return [process_view(partitioned, memory, messages, processes, me) for me in range(count)]


def transports_of(count: int, rendezvous: bool = False) -> list[QueueTransport]:
    """Return a transport for every process."""
    queues: Queues = {(a, b): Queue() for a in range(count) for b in range(count)}
    return [QueueTransport(queues, me, rendezvous) for me in range(count)]


def engines_of(
    views: Sequence[ProcessView], rendezvous: bool = False
) -> tuple[list[NumpyEngine], list[QueueTransport]]:
    """Return an engine and a transport for every process."""
    transports = transports_of(len(views), rendezvous)
    engines = []
    for view, transport in zip(views, transports, strict=True):
        waits = schedule(view.partitioned, view.memory)
        wire = Wire(view, transport)
        engines.append(
            NumpyEngine(
                view.partitioned,
                view.memory,
                waits,
                watch=Watch(PATIENCE_SECONDS),
                threads=1,
                stand_ins=wire,
            )
        )
    return engines, transports


def together(calls: Sequence[Callable[[], Value]]) -> list[Value]:
    """Call functions at the same time, and return their results; an error of one ends the test."""
    with ThreadPoolExecutor(len(calls)) as pool:
        barrier = threading.Barrier(len(calls))

        def run(call: Callable[[], Value]) -> Value:
            barrier.wait(PATIENCE_SECONDS)
            return call()

        return [done.result(PATIENCE_SECONDS) for done in [pool.submit(run, call) for call in calls]]
