"""Synchronisation: the fast model against simulation, merged groups, and found strategies against builders.

    python -m benchmarks.sync [--only ranking|measured|groups|found|trials|transfer] [--save FILE]

*Ranking*: 200 strategies that AutoDist's guided sampler draws, on two simulated machines. `pairs` is the part
of all pairs of different times that the fast model puts into the simulator's order. `ratio` has the least,
the median and the largest predicted time over the simulated one.

*Measured*: the same on this machine, against measured iterations, see `sync_measured`.

*Groups*: all-reduces in groups of 1 to all variables, in the order of the graph, on clusters of table 1 of
the paper. `merging` is the time of groups of 1 over that of the best size, `all` that of one group over it.
`merging_alone` is the first by the fast model if nothing else moved, such as statistics of a batch.

*Found*: the best builder and what `auto` finds, on the same clusters. `gain` is the first over the second.

*Trials*: the best time after a number of trials, by AutoDist's loop and by drawing at random, with three
seeds, next to `auto`; and how well a ranker that was fitted for one graph ranks 40 strategies of others.

*Transfer*: for each graph the part of pairs that a ranker puts in order which was fitted to strategies of all
other graphs, next to one that was fitted to other strategies of the same graph. Times are relative to those
of plain all-reduces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np

import tofu
from tofu.dataflow.graph import Graph
from tofu.machines.machine import Level, Machine
from tofu.machines.machine_file import known_kinds
from tofu.partitioner.methods.autodist.auto.candidates import Candidates
from tofu.partitioner.methods.autodist.auto.loop import run_loop
from tofu.partitioner.methods.autodist.auto.model import SyncModel
from tofu.partitioner.methods.autodist.auto.ranker import Ranker, features
from tofu.partitioner.methods.autodist.auto.sampler import sample
from tofu.partitioner.methods.autodist.auto.search import PLAIN, search_strategies
from tofu.partitioner.methods.autodist.builders import BUILDERS, all_reduce
from tofu.partitioner.methods.autodist.strategy import SyncStrategy

from .record import Row, record_parts
from .sync_measured import measured, pairs_in_order

DRAWN = 200
NETWORK_LATENCY, LOCAL_LATENCY = 14e-6, 5.7e-6
"""Seconds of a message, as presets have them."""

GBIT = 1e9 / 8


def cluster(name: str, nodes: int, cards: int, node: float, flow: float) -> Machine:
    """Return nodes of the paper's table 1: gigabits of a node's link, and of a flow."""
    kind = known_kinds()["p100-pcie"]
    count = nodes * cards
    levels = [Level("node", node * GBIT, NETWORK_LATENCY, max(1, round(node / flow)))]
    groups = [tuple(device // cards for device in range(count))]
    if cards > 1:
        levels.append(Level("gpu", 15.75e9, LOCAL_LATENCY))
        groups.append(tuple(range(count)))
    devices = tuple(f"gpu{device}" for device in range(count))
    return Machine(name, tuple(levels), devices, tuple(groups), kinds=(kind,) * count)


CLUSTERS = {
    "A, 8 nodes": cluster("a-8", 8, 1, 40, 40),
    "B1": cluster("b1", 2, 4, 25, 10),
    "B5": cluster("b5", 2, 4, 50, 10),
}


@cache
def graph_of(model: str, batch: int) -> Graph:
    return tofu.models.get(model, batch=batch).training_graph()


def modelled(graph: Graph, machine: Machine, workers: int) -> tuple[Candidates, SyncModel]:
    """Return what simulates strategies, and the fast model."""
    trying = Candidates(graph, workers, machine, tofu.lower, True)
    _, timeline = trying.simulated(PLAIN, all_reduce(graph, workers, chunk_size=1))
    return trying, SyncModel(graph, machine, timeline)


def ranking() -> Iterator[Row]:
    for model, batch, machine, workers in (
        ("lenet", 64, "pcie-8", 4),
        ("lenet", 64, "2x-k80-node", 8),
        ("alexnet", 64, "pcie-8", 4),
        ("alexnet", 64, "2x-k80-node", 8),
    ):
        graph = graph_of(model, batch)
        trying, fast = modelled(graph, tofu.machines.load(machine), workers)
        draw = Random(0)
        strategies = [sample(graph, workers, draw) for _ in range(DRAWN)]
        start = time.process_time()
        predicted = np.array([fast.seconds(each) for each in strategies])
        between = time.process_time()
        actual = np.array([trying.simulated("drawn", each)[0].seconds for each in strategies])
        ratio = np.percentile(predicted / actual, [0, 50, 100])
        yield {
            "model": model,
            "machine": machine,
            "workers": workers,
            "strategies": DRAWN,
            "pairs": round(pairs_in_order(predicted, actual)[0], 4),
            "ratio": [round(float(each), 3) for each in ratio],
            "fast_milliseconds_each": round(1e3 * (between - start) / DRAWN, 1),
            "simulated_milliseconds_each": round(1e3 * (time.process_time() - between) / DRAWN, 1),
        }


def groups() -> Iterator[Row]:
    for model in ("resnet-101", "vgg-16"):
        graph = graph_of(model, 64)
        for name, machine in CLUSTERS.items():
            trying, fast = modelled(graph, machine, 8)
            seconds, alone = {}, {}
            for size in (1, 8, 16, 32, 64, 128, 4096):
                strategy = all_reduce(graph, 8, chunk_size=size)
                seconds[size] = trying.simulated("", strategy)[0].seconds
                alone[size] = fast.alone().seconds(strategy)
            best = min(seconds, key=seconds.__getitem__)
            yield {
                "model": model,
                "cluster": name,
                "milliseconds_by_size": {size: round(each * 1e3, 2) for size, each in seconds.items()},
                "best_size": best,
                "merging": round(seconds[1] / seconds[best], 3),
                "all": round(seconds[4096] / seconds[best], 3),
                "merging_alone": round(alone[1] / min(alone.values()), 3),
            }


def found() -> Iterator[Row]:
    for model in ("resnet-50", "vgg-16", "alexnet"):
        graph = graph_of(model, 64)
        for name, machine in CLUSTERS.items():
            start = time.process_time()
            result = tofu.sync.auto(graph, 8, machine)
            taken = time.process_time() - start
            builders = [each for each in result.search.candidates if each.name in BUILDERS]
            best = min(builders, key=lambda each: each.seconds)
            yield {
                "model": model,
                "cluster": name,
                "best_builder": best.name,
                "builder_milliseconds": round(best.seconds * 1e3, 2),
                "found": result.search.best.name,
                "found_milliseconds": round(result.seconds * 1e3, 2),
                "gain": round(best.seconds / result.seconds, 3),
                "plain_over_found": round(result.plain_seconds / result.seconds, 3),
                "reasons": {each.feature: round(each.seconds * 1e3, 2) for each in result.reasons},
                "search_seconds": round(taken, 1),
            }


def trials() -> Iterator[Row]:
    machine, workers, budget = tofu.machines.load("2x-k80-node"), 8, 40
    graph = graph_of("alexnet", 64)
    trying, fast = modelled(graph, machine, workers)

    def trial(strategy: SyncStrategy) -> float:
        return trying.simulated("trial", strategy)[0].seconds

    shown = (1, 5, 10, 20, 40)
    ranker = Ranker()
    for seed in range(3):
        looped = run_loop(fast, trial, budget, seed)
        ranker = looped.ranker
        draw = Random(100 + seed)
        drawn = np.minimum.accumulate([trial(sample(graph, workers, draw)) for _ in range(budget)])
        yield {
            "seed": seed,
            "loop_milliseconds": {n: round(looped.best_seconds[n - 1] * 1e3, 2) for n in shown},
            "drawn_milliseconds": {n: round(float(drawn[n - 1]) * 1e3, 2) for n in shown},
            "refused": looped.refused,
        }
    found = search_strategies(graph, workers, machine, tofu.lower)
    yield {"auto_milliseconds": round(found.best.seconds * 1e3, 2), "simulated": len(found.candidates)}
    for model in ("alexnet", "vgg-16", "lenet"):
        other = graph_of(model, 64)
        trying, fast = modelled(other, machine, workers)
        draw = Random(500)
        strategies = [sample(other, workers, draw) for _ in range(40)]
        rows = np.array([features(fast, each) for each in strategies])
        seconds = [trying.simulated("drawn", each)[0].seconds for each in strategies]
        yield {"fitted_for": "alexnet", "ranks": model, "pairs": round(ranker.accuracy(rows, seconds), 4)}


def transfer() -> Iterator[Row]:
    machine, workers, half = tofu.machines.load("2x-k80-node"), 8, 40
    rows, seconds = {}, {}
    for model in ("mlp", "lenet", "alexnet", "vgg-11", "resnet-18"):
        graph = graph_of(model, 64)
        trying, fast = modelled(graph, machine, workers)
        plain = trying.simulated(PLAIN, all_reduce(graph, workers, chunk_size=1))[0].seconds
        draw = Random(700)
        strategies = [sample(graph, workers, draw) for _ in range(2 * half)]
        rows[model] = np.array([features(fast, each) for each in strategies])
        seconds[model] = np.array([trying.simulated("drawn", each)[0].seconds / plain for each in strategies])
    for model in rows:
        others = [other for other in rows if other != model]
        held_out = Ranker().fitted(
            np.concatenate([rows[other] for other in others]),
            np.concatenate([seconds[other] for other in others]),
        )
        own = Ranker().fitted(rows[model][:half], seconds[model][:half])
        yield {
            "ranks": model,
            "fitted_for_others": round(held_out.accuracy(rows[model][half:], seconds[model][half:]), 4),
            "fitted_for_it": round(own.accuracy(rows[model][half:], seconds[model][half:]), 4),
            "strategies": half,
        }


if __name__ == "__main__":
    parts = {
        "ranking": ranking,
        "measured": measured,
        "groups": groups,
        "found": found,
        "trials": trials,
        "transfer": transfer,
    }
    record_parts(parts, __doc__)
