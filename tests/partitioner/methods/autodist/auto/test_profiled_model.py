"""With a profile, the fast model has the measured times of transfers, and of threads that wake."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tofu
from tofu.machines.machine import Machine
from tofu.machines.machine_file import with_profile
from tofu.machines.profile import EngineTimes, MeasuredTime, Profile, WakeTime
from tofu.partitioner.methods.autodist.auto.model import SyncModel
from tofu.partitioner.methods.autodist.auto.ranker import ranking_accuracy
from tofu.partitioner.methods.autodist.auto.sampler import sample
from tofu.partitioner.methods.autodist.builders import all_reduce
from tofu.programs.program import PartitionedGraph
from tofu.runtime.instruction_times import ProgramWork
from tofu.sync import compile

from .....machines.test_profile_file import HOST, MACHINE

WORKERS = 2
COMPUTE, FETCH, SUM = (3e-6, 2e-10, 5e-11), (9e-6, 1e-10, 8e-10), (30e-6, 3e-10, 6e-10)
"""The seconds of units of work: of computations, of fetches and of reductions."""


def profiled(programs: list[PartitionedGraph], wake: float) -> Machine:
    """Return a machine on which all work of programs takes the time of its units."""
    kinds: dict[str, dict[tuple[int, ...], MeasuredTime]] = {}
    for program in programs:
        for (kind, sizes), amounts in ProgramWork.of(program).amounts.items():
            units = FETCH if kind.startswith("fetch") else SUM if kind.startswith("reduce") else COMPUTE
            kinds.setdefault(kind, {})[sizes] = MeasuredTime(float(np.dot(units, amounts)), 0.0, amounts)
    times = EngineTimes("numpy", WORKERS, 1, WakeTime(1, wake), kinds)
    return with_profile(MACHINE, Profile("box", HOST, (times,), "box.json"))


@pytest.mark.parametrize("wake", [0.0, 40e-6])
def test_profiled_times_are_those_of_the_simulator(wake: float) -> None:
    graph = tofu.models.get("mlp", batch=16, hidden=(96, 64)).training_graph()
    reduced = all_reduce(graph, WORKERS, chunk_size=1)
    plain = tofu.lower(graph, compile(graph, WORKERS, reduced))
    draw = Random(1)
    strategies = [sample(graph, WORKERS, draw) for _ in range(25)]
    programs = [tofu.lower(graph, compile(graph, WORKERS, each)) for each in strategies]
    machine = profiled([plain, *programs], wake)
    model = SyncModel(graph, machine, tofu.simulate(plain, machine), merged=False)
    actual = np.array([tofu.simulate(each, machine).seconds for each in programs])
    predicted = np.array([model.seconds(each) for each in strategies])
    assert np.abs(predicted / actual - 1).max() < 0.05
    assert ranking_accuracy(predicted, actual) > 0.95
