"""The operations that decide the time of an iteration, found in the blocks of a simulation."""

from __future__ import annotations

import hashlib

import pytest

import tofu

from ..compiled_loops import same_in_plain_python
from .boxes import GRAPHS, Assignment
from .test_simulate import MACHINES
from .test_simulation import LINKS

CLUSTERS = {**LINKS, "in turn": MACHINES["in turn"]}


def found_after_proposals(name: str, workers: int, links: str) -> list[list[int]]:
    """Return the deciding operations of a simulation before and after random proposals."""
    state = Assignment(GRAPHS[name](), workers, 5)
    simulation = state.simulation(CLUSTERS[links](workers))
    found = []
    for number in range(6):
        found.append(simulation.deciding())
        assert sum(found[-1]) == simulation.nanoseconds
        tasks, held, stops = state.change()
        simulation.propose(tasks, held, stops=stops)
        found.append(simulation.deciding())
        assert sum(found[-1]) == simulation.nanoseconds
        if number % 2:
            simulation.accept()
        else:
            simulation.refuse()
    return found


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("links", CLUSTERS)
def test_their_times_add_up_to_the_whole(name: str, links: str) -> None:
    for each in found_after_proposals(name, 4, links):
        assert min(each) >= 0


def test_they_are_those_of_the_time_line() -> None:
    """On one worker there is one chain: all operations, one after the other."""
    graph = GRAPHS["transformer"]()
    plan = tofu.partition(graph, 1)
    simulation = tofu.partitioner.simulation(graph, plan, "p100-node")
    line = simulation.timeline
    names = [operation.name for operation in graph.operations]
    found = {name: each / 1e9 for name, each in zip(names, simulation.deciding(), strict=True) if each}
    stated = {each.operation: each.computing_seconds + each.moving_seconds for each in line.deciding_path}
    assert found == pytest.approx(stated)
    assert line.seconds == pytest.approx(sum(stated.values()))


def digest() -> str:
    found = found_after_proposals("random", 4, "paths")
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_compiled_loops_find_the_same() -> None:
    same_in_plain_python(digest)
