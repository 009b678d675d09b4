"""Random assignments of tasks and holdings give the same values on the CUDA engine as on the NumPy engine."""

from __future__ import annotations

import pytest

from tofu.partitioner import lower
from tofu.runtime.executor import Executor

from ...partitioner.lowering.assignments import MODELS, network, random_plan
from .bench import Bench, agree, learned, start
from .guards import intact

STEPS = 2

CASES = [
    pytest.param(name, seed, marks=pytest.mark.slow if seed or name == "gpt-1-16" else ())
    for name in MODELS
    for seed in range(8)
]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_random_assignments(name: str, seed: int, bench: Bench) -> None:
    """From memory full of NaN, and nothing is written next to it."""
    graph = network(name)
    plan = random_plan(graph, 2 + seed % 4, seed)
    program = lower(graph, plan)
    with Executor(program) as executor:
        expected = learned(executor, start(graph), STEPS)
    with bench.executor(program) as executor:
        bench.poison()
        found = learned(executor, start(graph), STEPS)
        assert executor.fetched_bytes == plan.cost_bytes
        assert intact(bench.machine)
    agree(found, expected, 2e-3 if bench.on_cards else 5e-4)
