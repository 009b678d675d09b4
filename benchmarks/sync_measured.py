"""Sampled strategies on this machine: the fast model and the simulator against measured iterations.

Two workers are two threads of the NumPy engine. `plain` has all-reduces of single variables profiled, so the
work of the others is fitted; `all` has the programs of all strategies profiled. `seconds` are medians of
rounds in which all strategies run in turn, and `noise` the distance between the quartiles of a strategy's
rounds.

A pair counts if its measured times differ by more than the noise of either. `again` is how the odd rounds
rank the pairs that differ so by the even ones: no prediction can do better. `ratio` has the least, the median
and the largest predicted time over the measured one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

import tofu
from tofu.machines.machine import Machine
from tofu.partitioner.methods.autodist.auto.model import SyncModel
from tofu.partitioner.methods.autodist.auto.sampler import sample
from tofu.partitioner.methods.autodist.builders import all_reduce

from .accuracy import iterations, machine_file, simulated
from .record import Row

Reals = npt.NDArray[np.float64]

WORKERS = 2
PROFILED_ROUNDS = 5
CASES: tuple[tuple[str, int, dict[str, Any], int, int], ...] = (
    ("mlp", 64, {}, 200, 25),
    ("mlp", 32, {"hidden": (512, 256)}, 200, 15),
    ("lenet", 16, {}, 100, 11),
)
"""A model, its batch and other options, the number of strategies, and the rounds."""


def pairs_in_order(predicted: Reals, actual: Reals, noise: Reals | float = 0.0) -> tuple[float, int]:
    """Return which part of the pairs that differ by more than noise is in order, and their number."""
    first, second = np.triu_indices(len(actual), 1)
    limit = np.broadcast_to(noise, len(actual))
    differ = np.abs(actual[first] - actual[second]) > np.maximum(limit[first], limit[second])
    right = (predicted[first] - predicted[second]) * (actual[first] - actual[second]) > 0
    return float(right[differ].mean()), int(differ.sum())


def spread(rounds: Reals) -> Reals:
    """Return the distance between the quartiles of the rounds `[strategy, round]`."""
    lower, upper = np.percentile(rounds, [25, 75], axis=1)
    found: Reals = upper - lower
    return found


def measured() -> Iterator[Row]:
    for case in CASES:
        with TemporaryDirectory() as folder:
            yield _row(*case, Path(folder))


def _row(model: str, batch: int, options: dict[str, Any], drawn: int, rounds: int, folder: Path) -> Row:
    graph = tofu.models.get(model, batch=batch, **options).training_graph()
    draw = Random(0)
    strategies = [sample(graph, WORKERS, draw) for _ in range(drawn)]
    programs = [tofu.lower(graph, tofu.sync.compile(graph, WORKERS, each)) for each in strategies]
    reduced = all_reduce(graph, WORKERS, chunk_size=1)
    plain = tofu.lower(graph, tofu.sync.compile(graph, WORKERS, reduced))
    few = tofu.machines.measure([plain], machine_file(folder, "first"))
    every = tofu.machines.measure([plain, *programs], machine_file(folder, "all"), rounds=PROFILED_ROUNDS)
    times = np.array(iterations(programs, rounds))
    seconds, noise = np.median(times, axis=1), spread(times)
    even, odd = times[:, ::2], times[:, 1::2]
    found: Row = {
        "model": model,
        "batch": batch,
        **options,
        "workers": WORKERS,
        "strategies": drawn,
        "rounds": rounds,
        "milliseconds": [round(1e3 * float(each), 3) for each in np.percentile(seconds, [0, 50, 100])],
        "median_relative_noise": round(float(np.median(noise / seconds)), 4),
        "pairs_that_differ": pairs_in_order(seconds, seconds, noise)[1],
        "again": round(pairs_in_order(np.median(odd, axis=1), np.median(even, axis=1), spread(even))[0], 4),
    }
    for name, machine in (("plain", few), ("all", every)):
        fast = _model(graph, machine, plain)
        by_model = np.array([fast.seconds(each) for each in strategies])
        by_simulator = np.array([simulated(each, machine).seconds for each in programs])
        for label, predicted in (("model", by_model), ("simulator", by_simulator)):
            found[f"{label}, {name} profiled"] = {
                "pairs": round(pairs_in_order(predicted, seconds, noise)[0], 4),
                "all_pairs": round(pairs_in_order(predicted, seconds)[0], 4),
                "ratio": [round(float(each), 3) for each in np.percentile(predicted / seconds, [0, 50, 100])],
            }
        found[f"model by simulator, {name} profiled"] = round(pairs_in_order(by_model, by_simulator)[0], 4)
    return found


def _model(graph: tofu.Graph, machine: Machine, plain: tofu.PartitionedGraph) -> SyncModel:
    """Return the fast model of the NumPy engine, which does not merge messages."""
    return SyncModel(graph, machine, tofu.simulate(plain, machine), merged=False)
