"""Placers of whole operations: time and memory on large graphs, and how far they are from bounds and optima.

    python -m benchmarks.placement [--only growth|bounds|optimum] [--save benchmarks/results/placement.json]

*Growth*: graphs with the shape of unrolled LSTMs of 32 layers in training, on 16 workers. Every size runs in
a process of its own, whose peak includes the graph; `graph_mib` is its peak before the first placement.
Seconds are processor seconds of one core after compilation. `pardnn` contains the emulations by which it
chooses.

*Bounds*: the emulated time of every placer over the lower bound, on an LSTM of 8 layers and 28 steps and on
random graphs with messages of 0.1, 1 and 10 times the computation, and after 200 emulations of refinement.

*Optimum*: random graphs of 10 nodes on 2 workers. The optimum is the least time over all placements, each in
52 orders. Ratios are the mean over graphs of the time over the optimum, `worst` that of the worst graph.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from tofu.partitioner.methods.pardnn.pardnn import communication_ratio, place
from tofu.partitioner.methods.placement.bound import lower_bound
from tofu.partitioner.methods.placement.emulate import emulate
from tofu.partitioner.methods.placement.graph import PlacementDevices, PlacementGraph
from tofu.partitioner.methods.placement.placers import placers
from tofu.partitioner.methods.placement.portfolio import portfolio
from tofu.partitioner.methods.placement.priorities import emulated, priorities
from tofu.partitioner.methods.placement.refine import improve
from tofu.support.integer_lists import IntegerLists
from tofu.support.integers import Integers

from .record import Row, record_parts
from .unrolled_lstm import unrolled_lstm

T = TypeVar("T")

WORKERS = 16
LAYERS = 32
STEPS = (21, 42, 85, 173, 338)
LATENCY_NANOSECONDS, BYTES_PER_NANOSECOND = 10_000, 50

SMALL_GRAPHS = 20
DRAWN_ORDERS = 50
EMULATIONS = 300


def joined(workers: int, latency: int, per_byte: float) -> PlacementDevices:
    """Return equal workers with equal links between all of them."""
    apart = ~np.eye(workers, dtype=bool)
    return PlacementDevices(np.zeros(workers, np.int64), latency * apart, per_byte * apart, None)


def linked(workers: int) -> PlacementDevices:
    """Return workers with links of 50 GB/s and 10 us."""
    return joined(workers, LATENCY_NANOSECONDS, 1 / BYTES_PER_NANOSECOND)


def random_layers(seed: int, count: int, width: int) -> PlacementGraph:
    """Return layers of nodes, of which each reads two or less of the layer before."""
    draw = np.random.default_rng(seed)
    readers: list[list[int]] = [[] for _ in range(count)]
    for node in range(width, count):
        first = (node // width - 1) * width
        for maker in sorted(set(draw.integers(first, first + width, 2).tolist())):
            readers[maker].append(node)
    return random_graph(draw, readers)


def random_pairs(seed: int, count: int, density: float) -> PlacementGraph:
    """Return nodes of which any two are joined with a probability."""
    draw = np.random.default_rng(seed)
    later = [[j for j in range(i + 1, count) if draw.random() < density] for i in range(count)]
    return random_graph(draw, later)


def random_graph(draw: np.random.Generator, readers: list[list[int]]) -> PlacementGraph:
    """Return nodes with the readers of their values, and random times and sizes."""
    count = len(readers)
    sizes = draw.integers(1, 2000, count)
    return PlacementGraph(
        names=tuple(map(str, range(count))),
        nanoseconds=draw.integers(1000, 10_000, (1, count)),
        maker=np.arange(count),
        sent_bytes=sizes,
        stored_bytes=sizes,
        readers=IntegerLists.of(readers),
        after=IntegerLists.of([[] for _ in readers]),
        leader=np.arange(count),
        lasting=np.zeros(count, bool),
        scratch_bytes=np.zeros(count, np.int64),
    )


def in_ratio(graph: PlacementGraph, workers: int, ratio: float) -> PlacementDevices:
    """Return workers between which all values together take `ratio` times as long as all nodes."""
    sent = graph.sent_bytes[np.diff(graph.readers.firsts) > 0].sum()
    return joined(workers, 0, ratio * graph.nanoseconds.sum() / sent)


def timed(compute: Callable[[], T]) -> tuple[T, float]:
    """Return a result and the processor seconds that it took."""
    start = time.process_time()
    found = compute()
    return found, round(time.process_time() - start, 3)


def peak_mib() -> int:
    """Return the largest memory of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def placed(steps: int) -> Row:
    """Place one graph by all placers, after loops are compiled."""
    devices = linked(WORKERS)
    small, tied = unrolled_lstm(4, 3)
    portfolio(small, devices, tied)
    graph, tied = unrolled_lstm(LAYERS, steps)
    graph_mib = peak_mib()
    worker, seconds = timed(lambda: place(graph, devices))
    pardnn_mib = peak_mib()
    _, emulation = timed(lambda: emulated(graph, devices, worker))
    others = {name: timed(lambda p=p: p(graph, devices))[1] for name, p in placers(tied).items()}  # type: ignore[misc]
    found, all_seconds = timed(lambda: portfolio(graph, devices, tied))
    return {
        "nodes": graph.count,
        "readings": len(graph.readers.entries),
        "seconds": {"pardnn": seconds, "emulated": emulation, "portfolio": all_seconds},
        "seconds_of_placers": others,
        "best": found[0].placer,
        "graph_mib": graph_mib,
        "pardnn_mib": pardnn_mib,
        "portfolio_mib": peak_mib(),
    }


def growth() -> Iterator[Row]:
    """Yield the times of all sizes, and the exponents of the number of nodes."""
    rows = []
    for steps in STEPS:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            rows.append(pool.submit(placed, steps).result())
        yield rows[-1]
    nodes = [math.log(row["nodes"]) for row in rows]
    yield {
        "exponents": {
            stage: round(float(np.polyfit(nodes, [math.log(r["seconds"][stage]) for r in rows], 1)[0]), 3)
            for stage in rows[0]["seconds"]
        }
    }


def bounds() -> Iterator[Row]:
    """Yield the ratios to the lower bound of every placer, and of the best one after refinement."""
    graph, tied = unrolled_lstm(8, 28)
    for workers in (4, 16):
        yield against_bound(f"LSTM, 8 layers, 28 steps, {workers} workers", graph, linked(workers), tied)
    for width, ratio in product((4, 64), (0.1, 1, 10)):
        graph = random_layers(1, 5000, width)
        yield against_bound(f"layers of {width}, 8 workers", graph, in_ratio(graph, 8, ratio), None)


def against_bound(name: str, graph: PlacementGraph, devices: PlacementDevices, tied: Integers | None) -> Row:
    """Return the ratios of one graph."""
    found, bound = portfolio(graph, devices, tied), lower_bound(graph, devices)
    refined = improve(graph, devices, found[0].schedule.worker, lambda _: True, 200)
    return {
        "graph": name,
        "nodes": graph.count,
        "communication_ratio": round(communication_ratio(graph, devices), 3),
        "refined": round(refined.nanoseconds / bound, 3),
        "over_bound": {each.placer: round(each.schedule.nanoseconds / bound, 3) for each in found},
    }


def optimum() -> Iterator[Row]:
    """Yield the ratios to the optimum for several amounts of communication."""
    for density, ratio in product((0.2, 0.4), (0.1, 0.5, 1, 10)):
        ratios: dict[str, list[float]] = {}
        for seed in range(SMALL_GRAPHS):
            graph = random_pairs(seed, 10, density)
            devices = in_ratio(graph, 2, ratio)
            best = least_time(graph, devices)
            found = portfolio(graph, devices)
            refined = improve(graph, devices, found[0].schedule.worker, lambda _: True, EMULATIONS)
            times = {each.placer: each.schedule.nanoseconds for each in found}
            times |= {"portfolio": found[0].schedule.nanoseconds, "refined": refined.nanoseconds}
            for placer, nanoseconds in times.items():
                ratios.setdefault(placer, []).append(nanoseconds / best)
        yield {
            "density": density,
            "communication_ratio": ratio,
            "graphs": SMALL_GRAPHS,
            "mean": {placer: round(float(np.mean(each)), 4) for placer, each in ratios.items()},
            "worst": {placer: round(max(each), 3) for placer, each in ratios.items()},
        }


def least_time(graph: PlacementGraph, devices: PlacementDevices) -> int:
    """Return the least time over all placements on two equal workers, each in several orders."""
    draw = np.random.default_rng(0)
    drawn = [draw.permutation(graph.count) for _ in range(DRAWN_ORDERS)]
    return min(
        emulate(graph, devices, worker, priority).nanoseconds
        for others in product(range(2), repeat=graph.count - 1)
        for worker in (np.array([0, *others]),)
        for priority in [*priorities(graph, devices, worker).values(), *drawn]
    )


if __name__ == "__main__":
    record_parts({"growth": growth, "bounds": bounds, "optimum": optimum}, __doc__)
