"""The memory of one worker of 8, and the savings by the measures of Tofu's section 6.

    python -m benchmarks.memory [--only peaks|measures] [--save benchmarks/results/memory.json]

*Peaks*: the models of Table 2. `ratio` is 8 times a worker's peak over the peak of one device, `fetched` the
share of fetch buffers in a worker's live bytes at the peak. Arenas without kernel workspaces.

*Measures*: with `control dependencies and late fetches` instructions keep the order of the graph and fetch
when the operation is next. `early fetches` keeps the order but fetches as soon as the sources are written.
With `no order` every instruction runs as soon as its inputs are there, as in an engine that knows data
dependencies alone (figure 7).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tofu
from tofu.partitioner import lower, partition
from tofu.programs.clock import lasting_buffers, reads, writes
from tofu.programs.memory import Lifetimes, buffer_lifetimes, plan_memory
from tofu.programs.offsets import live_sizes
from tofu.programs.program import BufferKind, PartitionedGraph

from .machine import described
from .record import keep, printed
from .space import PAPER

WORKERS = 8
LIMIT_BYTES = 12 * 2**30
CLAIMS = (("wresnet-152-10", 8), ("wresnet-152-4", 32), ("wresnet-50-4", 128), ("rnn-10-8k", 128))
"""The batches for which the paper states that 12 GB a worker are enough (section 7)."""

TABLE_2 = (
    *((f"wresnet-{depth}-{width}", 8) for depth in (50, 101, 152) for width in (4, 6, 8, 10)),
    *((f"rnn-{layers}-{hidden}k", 128) for layers in (6, 8, 10) for hidden in (4, 6, 8)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure planned memory.")
    parser.add_argument("--only", choices=("peaks", "measures"))
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    found: dict[str, Any] = described()
    for name, rows in (("peaks", peaks()), ("measures", measures())):
        if arguments.only in (None, name):
            found[name] = printed(rows)
    keep(found, arguments.save)


def peaks() -> Iterator[dict[str, Any]]:
    """Yield the claims of the paper first, then every model of Table 2."""
    for name, batch in dict.fromkeys((*CLAIMS, *TABLE_2)):
        graph = tofu.models.get(name, batch=batch).training_graph()
        memory = plan_memory(lower(graph, partition(graph, workers=WORKERS, **PAPER)))
        single = plan_memory(lower(graph, partition(graph, workers=1))).arena_bytes[0]
        fullest = memory.fullest
        peak, bound = memory.arena_bytes[fullest], memory.lower_bound_bytes[fullest]
        yield {
            "model": name,
            "batch": batch,
            "peak_gib": round(peak / 2**30, 3),
            "over_live": round(peak / bound, 4),
            "single_gib": round(single / 2**30, 2),
            "ratio": round(WORKERS * peak / single, 3),
            "fetched": round(memory.peak_kinds[fullest][BufferKind.FETCHED] / bound, 3),
            "fits_12_gib": peak <= LIMIT_BYTES,
        }


def measures() -> Iterator[dict[str, Any]]:
    """Live bytes of the fullest worker under each order, for the models of the claims."""
    for name, batch in CLAIMS:
        graph = tofu.models.get(name, batch=batch).training_graph()
        partitioned = lower(graph, partition(graph, workers=WORKERS, **PAPER))
        planned = buffer_lifetimes(partitioned)
        yield {
            "model": name,
            "batch": batch,
            "control dependencies and late fetches, GiB": _live_gib(partitioned, planned),
            "early fetches, GiB": _live_gib(partitioned, fetched_early(partitioned, planned)),
            "no order, GiB": _live_gib(partitioned, as_soon_as_possible(partitioned)),
        }


def fetched_early(partitioned: PartitionedGraph, planned: Lifetimes) -> Lifetimes:
    """Lifetimes if fetch buffers are filled as soon as everything in them is written."""
    births = [born.copy() for born in planned.births]
    written_at = _write_ticks(partitioned)
    for worker, program in enumerate(partitioned.programs):
        for instruction in program.instructions:
            now = instruction.tick
            for target in writes(instruction):
                if program.buffers[target].kind is not BufferKind.FETCHED:
                    continue
                sources = [written_at[owner][buffer] for owner, buffer in reads(worker, instruction)]
                written = max((at for times in sources for at in times if at < now), default=0)
                births[worker][target] = min(births[worker][target], written)
    return Lifetimes(tuple(births), planned.deaths)


def as_soon_as_possible(partitioned: PartitionedGraph) -> Lifetimes:
    """Lifetimes if an instruction's time is the length of the longest chain of data that leads to it."""
    order = sorted(
        (instruction.tick, worker, index)
        for worker, program in enumerate(partitioned.programs)
        for index, instruction in enumerate(program.instructions)
    )
    counts = [len(program.buffers) for program in partitioned.programs]
    ready = [np.zeros(count, np.int64) for count in counts]
    births = [np.full(count, np.iinfo(np.int64).max) for count in counts]
    deaths = [np.full(count, -1, np.int64) for count in counts]
    for _, worker, index in order:
        instruction = partitioned.programs[worker].instructions[index]
        needed = list(reads(worker, instruction))
        level = 1 + max((int(ready[owner][buffer]) for owner, buffer in needed), default=0)
        for owner, buffer in needed:
            deaths[owner][buffer] = max(deaths[owner][buffer], level)
        for buffer in writes(instruction):
            ready[worker][buffer] = level
            births[worker][buffer] = min(births[worker][buffer], level)
            deaths[worker][buffer] = max(deaths[worker][buffer], level)
    end = max(int(died.max(initial=0)) for died in deaths)
    for worker, buffers in enumerate(lasting_buffers(partitioned)):
        for buffer in buffers:
            births[worker][buffer], deaths[worker][buffer] = 0, end
    for tensor in partitioned.graph.outputs:
        for worker, buffer in partitioned.homes[tensor]:
            if buffer >= 0:
                deaths[worker][buffer] = end
    return Lifetimes(tuple(births), tuple(deaths))


def _write_ticks(partitioned: PartitionedGraph) -> list[dict[int, list[int]]]:
    """By worker and buffer the ticks at which it is written."""
    found: list[dict[int, list[int]]] = []
    for program in partitioned.programs:
        written: dict[int, list[int]] = {buffer.index: [] for buffer in program.buffers}
        for instruction in program.instructions:
            for buffer in writes(instruction):
                written[buffer].append(instruction.tick)
        found.append(written)
    return found


def _live_gib(partitioned: PartitionedGraph, lifetimes: Lifetimes) -> float:
    """Return the most that any worker holds at once, nothing computed in place."""
    largest = 0
    for program, births, deaths in zip(partitioned.programs, lifetimes.births, lifetimes.deaths, strict=True):
        sizes = np.array([buffer.nbytes for buffer in program.buffers], np.int64)
        touched = births <= deaths
        live = live_sizes(sizes[touched], births[touched], deaths[touched])
        largest = max(largest, int(live.max(initial=0)))
    return round(largest / 2**30, 3)


if __name__ == "__main__":
    main()
