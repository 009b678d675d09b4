"""How many messages several processes send, and what hides them.

    python -m benchmarks.process_times [--only grouping|hidden] [--save FILE]

*Grouping*: messages of `resnet-50` over 8 processes, one for each transfer and sender (`separate`), for all
that is needed at one tick (`at_once`), the fewest that the order allows (`fewest`), and as processes send
them, those for updates by themselves (`sent`). `small` is the part of messages under 64 kB.

*Hidden*: two processes over sockets on this machine. A message takes from the first bytes that are there to
the last, or from the call that sends it to its end. `hidden` is the part of that time in which the same
process also computes, `share` is the time of messages over that of the iteration.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tofu
from tofu.programs.messages import count_messages, messages
from tofu.programs.process_messages import messages_of
from tofu.programs.program import Compute, PartitionedGraph
from tofu.runtime.distributed.processes import Processes
from tofu.runtime.distributed.sockets import SocketTransport
from tofu.runtime.engine import Engine, Watch
from tofu.runtime.executor import Executor
from tofu.runtime.instruction_times import initial_values
from tofu.runtime.step_moments import StepMoments

from .record import Row, record_parts

SMALL_BYTES = 64_000
PROCESSES = 2
ITERATIONS = 30
CASES: Mapping[str, Mapping[str, int]] = {
    "mlp": {},
    "lenet": {"batch": 32},
    "wresnet-10-2": {"batch": 8},
    "lstm": {},
}
"""The options of every model."""

Spans = Sequence[tuple[float, float]]


def lowered(name: str, workers: int = PROCESSES) -> PartitionedGraph:
    graph = tofu.models.get(name, **CASES.get(name, {"batch": 32})).training_graph()
    return tofu.lower(graph, tofu.partition(graph, workers))


def grouping() -> Iterator[Row]:
    workers = 8
    partitioned = lowered("resnet-50", workers)
    counts = count_messages(partitioned)
    sent = messages_of(partitioned, range(workers))
    at_once = list(messages(partitioned, 0))
    yield {
        "model": "resnet-50",
        "workers": workers,
        "planned_bytes": partitioned.planned_bytes,
        "separate": counts.separate,
        "at_once": counts.at_once,
        "fewest": counts.fewest,
        "sent": len(sent),
        "small_at_once": round(sum(each.nbytes < SMALL_BYTES for each in at_once) / len(at_once), 3),
        "small_sent": round(sum(each.nbytes < SMALL_BYTES for each in sent) / len(sent), 3),
    }


def hidden() -> Iterator[Row]:
    for name in CASES:
        yield {"model": name, "processes": PROCESSES, **in_processes(name)}


def in_processes(name: str) -> Any:
    """Return what the first of several processes measures."""
    code = (
        "import sys; from tofu.runtime.distributed.launch import launch; "
        "sys.exit(launch([sys.executable, *sys.argv[2:]], int(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(PROCESSES), "-m", "benchmarks.process_times"]
    command += ["--member", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=600)
    return json.loads(done.stdout)


def member(name: str) -> None:
    """Be one of several processes; the first one prints the figures."""
    from tofu.runtime.distributed.launch import end_with_parent

    end_with_parent(os.environ)
    with tofu.distributed() as processes:
        figures = overlapped(processes, lowered(name))
        if not processes.number:
            print(json.dumps(figures))


class Timed:
    """A transport that notes when each message is on its way."""

    def __init__(self, inner: SocketTransport) -> None:
        self._inner = inner
        self.spans: list[tuple[float, float]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def send(self, process: int, number: int, content: memoryview) -> None:
        begin = time.perf_counter()
        self._inner.send(process, number, content)
        self.spans.append((begin, time.perf_counter()))

    def receive(self, process: int, number: int, into: memoryview) -> None:
        # what passes before the first bytes is the sender's time, not the message's
        select.select([self._inner._connections[process]], [], [])
        begin = time.perf_counter()
        self._inner.receive(process, number, into)
        self.spans.append((begin, time.perf_counter()))


def overlapped(processes: Processes, partitioned: PartitionedGraph) -> dict[str, Any]:
    """Return the part of messages' time that computation hides, over all processes and iterations."""
    assert isinstance(processes.transport, SocketTransport)
    transport, moments = Timed(processes.transport), StepMoments(partitioned)
    processes.transport = transport
    make = processes.engine()

    def watched(program: PartitionedGraph, memory: Any, watch: Watch) -> Engine:
        return make(program, memory, Watch(watch.watchdog_seconds, moments))

    totals = [0.0, 0.0, 0.0]
    with Executor(partitioned, make_engine=watched) as executor:
        for name, value in initial_values(partitioned.graph):
            executor.write(name, value)
        executor.run()
        for _ in range(ITERATIONS):
            transport.spans.clear()
            begin = time.perf_counter()
            executor.run()
            taken = time.perf_counter() - begin
            computing = united(
                moment
                for program, found in zip(partitioned.programs, moments.moments, strict=True)
                for instruction, moment in zip(program.instructions, found, strict=True)
                if isinstance(instruction, Compute) and moment[0] >= begin
            )
            moving = united(iter(transport.spans))
            for place, seconds in enumerate((length(moving), common(moving, computing), taken)):
                totals[place] += seconds
    gathered = [json.loads(each) for each in processes.exchange("add up", json.dumps(totals).encode())]
    moved, behind, whole = (sum(each) for each in zip(*gathered, strict=True))
    return {
        "ms": round(1000 * whole / ITERATIONS / processes.count, 2),
        "share": round(moved / whole, 3),
        "hidden": round(behind / moved, 3),
    }


def united(spans: Iterator[tuple[float, float]]) -> Spans:
    """Return spans of time as spans that do not overlap, in order."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def length(spans: Spans) -> float:
    return sum(end - begin for begin, end in spans)


def common(first: Spans, second: Spans) -> float:
    """Return the time that is in both."""
    return length(first) + length(second) - length(united(iter([*first, *second])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--member"]:
        member(sys.argv[2])
    else:
        record_parts({"grouping": grouping, "hidden": hidden}, __doc__)
