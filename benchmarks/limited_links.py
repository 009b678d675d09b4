"""How well an iteration of two processes is predicted, over cables that are free, narrow, or long.

    python -m benchmarks.limited_links [--rounds 5] [--only mlp ...] [--prefer] [--save FILE]

Two processes run in network namespaces of their own, joined by a cable (`benchmarks.cables`). Needs the
rights to make them. In each round the times of instructions and of messages are measured over the free cable,
as `tofu profile --processes` does. From these, and from what the machine's tools were told, iterations over
all cables are simulated: of a narrow cable the bandwidth, less what headers take, of a long one the delay.
Then the same iterations are measured over each cable. `predicted_ms` is the median over rounds, `measured_ms`
that of all iterations, and `error` that of these medians. `spread` is the distance between the quartiles of
the measured times, over their median: no prediction can be surer.

With `--prefer` the kernel runs the processes before other work of a shared machine, if it groups sessions
(`/proc/self/autogroup`).

Narrow cables are those of the kernel's token bucket. The long cable is a process that carries packets, a
stand-in for a network, whose delay is the one that it made, which it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import tofu
from tofu.machines.machine import Machine
from tofu.programs import plan_memory, schedule
from tofu.programs.process_messages import messages_of
from tofu.programs.program import PartitionedGraph
from tofu.runtime.distributed.process_times import ProcessProfiler
from tofu.runtime.executor import Executor
from tofu.runtime.instruction_times import initial_values

from .cables import FRAME_BYTES, PAYLOAD_BYTES, Cable, cable, shaped
from .machine import described
from .record import keep

PROCESSES = 2
ITERATIONS = 12
PROFILED = 12
PATIENCE_SECONDS = 300
PORT = "29481"
CASES: Mapping[str, Mapping[str, int]] = {
    "mlp": {},
    "lenet": {"batch": 32},
    "wresnet-10-2": {"batch": 8},
    "lstm": {},
}


@dataclass(frozen=True)
class Limit:
    """A cable, and what a machine file says of it."""

    name: str
    megabits: float | None = None
    delay_seconds: float = 0.0

    def made(self) -> AbstractContextManager[Cable]:
        return shaped(self.delay_seconds) if self.delay_seconds else cable()

    def described(self, machine: Machine, delay_seconds: float) -> Machine:
        """Return the machine with the links that were set, and the delay that was made."""
        (level,) = machine.levels
        if self.megabits is not None:
            payload = self.megabits * 1e6 / 8 * PAYLOAD_BYTES / FRAME_BYTES
            level = replace(level, bytes_per_second=payload)
        return replace(machine, levels=(replace(level, latency_seconds=delay_seconds),))


FREE = Limit("free")
LIMITS = (FREE, Limit("100 Mbit/s", 100), Limit("20 Mbit/s", 20), Limit("5 ms", delay_seconds=0.005))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--prefer", action="store_true", help="run before other work of this machine")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--member", nargs=2, help="be one of the processes: a folder, and profile or time")
    arguments = parser.parse_args()
    names = arguments.only or list(CASES)
    if arguments.member is not None:
        member(Path(arguments.member[0]), arguments.member[1] == "profile", names)
        return
    found = list(cases(names, arguments.rounds, arguments.prefer))
    print(keep({**described(), "preferred": arguments.prefer, "cases": found}, arguments.save))


def cases(names: Sequence[str], rounds: int, preferred: bool) -> Iterator[dict[str, Any]]:
    predicted: dict[tuple[str, str], list[float]] = defaultdict(list)
    measured: dict[tuple[str, str], list[float]] = defaultdict(list)
    programs = {name: lowered(name) for name in names}
    for _ in range(rounds):
        with TemporaryDirectory() as folder:
            delays = {}
            for limit in LIMITS:
                found, delays[limit] = run(limit, Path(folder), names, limit is FREE, preferred)
                for name, times in found.items():
                    measured[name, limit.name] += times
            for name, program in programs.items():
                machine = tofu.machines.load(str(Path(folder) / f"{name}.yaml"))
                waits = schedule(program, plan_memory(program))
                for limit in LIMITS:
                    seconds = tofu.simulate(program, limit.described(machine, delays[limit]), waits).seconds
                    predicted[name, limit.name].append(1000 * seconds)
    for name, limit_name in predicted:
        times = sorted(measured[name, limit_name])
        lower, middle, upper = quantiles(times, n=4)
        forecast = median(predicted[name, limit_name])
        yield {
            "model": name,
            "cable": limit_name,
            "messages": len(messages_of(programs[name], range(PROCESSES))),
            "bytes": programs[name].planned_bytes,
            "predicted_ms": round(forecast, 2),
            "measured_ms": round(middle, 2),
            "error": round(forecast / middle - 1, 3),
            "spread": round((upper - lower) / middle, 3),
        }


def lowered(name: str) -> PartitionedGraph:
    graph = tofu.models.get(name, **CASES[name]).training_graph()
    return tofu.lower(graph, tofu.partition(graph, PROCESSES))


def run(
    limit: Limit, folder: Path, names: Sequence[str], profile: bool, preferred: bool
) -> tuple[dict[str, list[float]], float]:
    """Return the milliseconds of the iterations of each model over a cable, and the seconds of its delay."""
    part = "profile" if profile else "time"
    chosen = [option for name in names for option in ("--only", name)]
    command = [sys.executable, "-m", "benchmarks.limited_links", *chosen, "--member", str(folder), part]
    with limit.made() as made:
        if limit.megabits is not None:
            made.narrow(limit.megabits)
        environment = {
            **os.environ,
            "WORLD_SIZE": str(PROCESSES),
            "LOCAL_WORLD_SIZE": str(PROCESSES),
            "MASTER_ADDR": made.address(0),
            "MASTER_PORT": PORT,
            "TOFU_TOKEN": secrets.token_hex(),
            "OMP_NUM_THREADS": "1",
        }
        running = [
            subprocess.Popen(
                made.command(rank, command),
                env={**environment, "RANK": str(rank)},
                preexec_fn=prefer if preferred else None,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(PROCESSES)
        ]
        try:
            said = [each.communicate(timeout=PATIENCE_SECONDS)[0] for each in running]
        finally:
            for each in running:
                each.kill()
    return json.loads(said[0]), made.delay_seconds


def prefer() -> None:
    """Let the kernel run this process, in a session of its own, before other work of the machine."""
    os.setsid()
    Path("/proc/self/autogroup").write_text("-20")


def member(folder: Path, profile: bool, names: Sequence[str]) -> None:
    """Be one of two processes; the first one prints the figures."""
    found: dict[str, list[float]] = {}
    with tofu.distributed() as processes:
        for name in names:
            program = lowered(name)
            with Executor(program, make_engine=processes.engine()) as executor:
                for tensor, value in initial_values(program.graph):
                    executor.write(tensor, value)
                found[name] = timed(executor)
                if profile:
                    path = folder / f"{name}.yaml"
                    ProcessProfiler(processes, path, rounds=PROFILED).add(program)
                    found[name] += timed(executor)
        if not processes.number:
            print(json.dumps(found))


def timed(executor: Executor) -> list[float]:
    """Return the milliseconds of iterations, and leave out the first."""
    executor.run()
    times = []
    for _ in range(ITERATIONS):
        started = time.perf_counter()
        executor.run()
        times.append(1000 * (time.perf_counter() - started))
    return times


if __name__ == "__main__":
    main()
