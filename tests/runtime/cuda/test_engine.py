"""The CUDA engine compared with the NumPy engine, on the same programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tofu.dataflow.merging.merged import merged
from tofu.operators.cuda.launch.commands import Command, MemoryCopy
from tofu.runtime.executor import Executor

from .bench import Arrays, Bench, agree, learned, over, same, start
from .graphs import HOST, ZOO, graph
from .guards import intact

STEPS = 2
"""One issued, one launched as a graph; with more of them rounding grows in deep networks."""

TOLERANCE = {"host": 2e-5, "cards": 2e-3}
"""Relative to the largest element: cards add up in another order, which training amplifies."""

REPLAYS = {"host": 5, "cards": 100}
SEEDS = {"host": (1, 2, 3), "cards": (1, 2)}
ON_CARDS = [(name, workers) for name in (*HOST[:2], *ZOO) for workers in (1, 2, 4, 8)]
ON_HOST = [
    ("mlp-adam", 1), ("mlp-adam", 4), ("residual", 1), ("residual", 2), ("lstm", 2), ("gpt-1-16", 4),
    ("sum", 2),
]  # fmt: skip

CASES = [
    *(pytest.param("host", *case) for case in ON_HOST),
    *(pytest.param("cards", *case, marks=pytest.mark.gpu) for case in ON_CARDS),
]


@cache
def learned_by_the_processor(name: str) -> Arrays:
    """One worker of the NumPy engine."""
    with Executor(over(graph(name), 1)) as executor:
        return learned(executor, start(graph(name)), STEPS)


@pytest.mark.parametrize(("machine", "name", "workers"), CASES)
def test_learns_what_one_worker_of_the_processor_learns(
    machine: str, name: str, workers: int, benches: Callable[[str], Bench]
) -> None:
    """From memory full of NaN, and nothing is written next to it."""
    bench = benches(machine)
    partitioned = over(graph(name), workers)
    with bench.executor(partitioned) as executor:
        bench.poison()
        found = learned(executor, start(graph(name)), STEPS)
        assert executor.fetched_bytes == partitioned.planned_bytes
        assert intact(bench.machine)
    assert bench.machine.captures == 1
    agree(found, learned_by_the_processor(name), TOLERANCE[machine])


@pytest.mark.parametrize("workers", [1, 2])
def test_merged_operations_learn_what_one_worker_of_the_processor_learns(workers: int, bench: Bench) -> None:
    """Stacks, products with one index variable more, and slices."""
    found = merged(graph("lstm"))
    assert len(found.operations) < len(graph("lstm").operations)
    assert any(operation.bound.description.name == "stack" for operation in found.operations)
    program = over(found, workers)
    with bench.executor(program) as executor:
        bench.poison()
        values = learned(executor, start(graph("lstm")), STEPS)
        assert executor.fetched_bytes == program.planned_bytes
        assert intact(bench.machine)
    agree(values, learned_by_the_processor("lstm"), TOLERANCE[bench.name])


def test_eager_and_graph_give_the_same_bits(bench: Bench) -> None:
    partitioned, values = over(graph("residual"), 4), start(graph("residual"))
    found = []
    for eager in (True, False):
        with bench.executor(partitioned, eager=eager) as executor:
            found.append(learned(executor, values))
        assert bench.machine.captures == (0 if eager else 1)
    same(*found)


def test_replays_give_the_same_bits(bench: Bench) -> None:
    partitioned, values = over(graph("residual"), 4), start(graph("residual"))
    with bench.executor(partitioned) as executor:
        first = learned(executor, values)
        for _ in range(REPLAYS[bench.name]):
            same(learned(executor, values, steps=3), first)
    assert bench.machine.captures == 1


def test_delays_change_no_bit(bench: Bench) -> None:
    """On the host other interleavings, on cards kernels that spin before random commands."""
    partitioned, values = over(graph("residual"), 4), start(graph("residual"))
    with bench.executor(partitioned) as executor:
        expected = learned(executor, values)
    for seed in SEEDS[bench.name]:
        with bench.executor(partitioned, eager=seed % 2 == 1, seed=seed) as executor:
            bench.poison()
            same(learned(executor, values), expected)


def test_workers_that_reach_only_some_others_give_the_same_bits(bench: Bench) -> None:
    """Regions that they cannot read are copied into scratch first."""
    partitioned, values = over(graph("residual"), 4), start(graph("residual"))
    found, copies = [], []
    for islands in (None, (0, 0, 1, 1), (0, 1, 2, 3)):
        with bench.executor(partitioned, islands=islands) as executor:
            bench.poison()
            found.append(learned(executor, values))
            copies.append(sum(isinstance(command, MemoryCopy) for command in commands(bench)))
            assert intact(bench.machine)
    same(found[1], found[0])
    same(found[2], found[0])
    assert copies[0] < copies[1] < copies[2]


def commands(bench: Bench) -> list[Command]:
    """Those of an iteration of the newest engine."""
    return [
        command
        for prepared in bench.engine._prepared
        for instruction in prepared.commands
        for command in instruction
    ]
