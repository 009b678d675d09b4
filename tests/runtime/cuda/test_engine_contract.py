"""The promises of every engine on the same programs; a new one is a case of `ENGINES`.

It moves the bytes that were planned, gives the same bits again, learns what one worker of the processor
learns, and keeps what is written to it until an iteration overwrites it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tofu.errors import ExecutionError
from tofu.programs.program import PartitionedGraph
from tofu.runtime.choose_engine import engine_on
from tofu.runtime.context import cpu
from tofu.runtime.executor import Executor

from .bench import Bench, agree, learned, over, same, start
from .conftest import CARDS
from .graphs import graph

MakeExecutor = Callable[[PartitionedGraph], Executor]
WORKERS = 4
TOLERANCE = {"cards": 2e-3}
"""Where it is not that of the others: cards add up in another order."""


def on_processor(threads: int, partitioned: PartitionedGraph) -> Executor:
    devices = [cpu(worker) for worker in range(partitioned.workers)]
    return Executor(partitioned, make_engine=engine_on(devices, threads=threads))


@pytest.fixture(params=["one thread", "four threads", "host", CARDS])
def engine(request: pytest.FixtureRequest, benches: Callable[[str], Bench]) -> tuple[str, MakeExecutor]:
    """An engine's name and how to make an executor on it."""
    name: str = request.param
    threads = {"one thread": 1, "four threads": 4}.get(name)
    if threads is not None:
        return name, partial(on_processor, threads)
    return name, benches(name).executor


def test_the_planned_bytes_move(engine: tuple[str, MakeExecutor]) -> None:
    partitioned = over(graph("mlp-adam"), WORKERS)
    with engine[1](partitioned) as executor:
        learned(executor, start(graph("mlp-adam")), 1)
        assert executor.fetched_bytes == partitioned.planned_bytes > 0


def test_it_learns_what_one_worker_learns(engine: tuple[str, MakeExecutor]) -> None:
    name, make = engine
    with make(over(graph("mlp-adam"), WORKERS)) as executor:
        found = learned(executor, start(graph("mlp-adam")), 2)
    with on_processor(1, over(graph("mlp-adam"), 1)) as executor:
        agree(found, learned(executor, start(graph("mlp-adam")), 2), TOLERANCE.get(name, 2e-5))


def test_two_runs_give_the_same_bits(engine: tuple[str, MakeExecutor]) -> None:
    found = []
    for _ in range(2):
        with engine[1](over(graph("mlp-adam"), WORKERS)) as executor:
            found.append(learned(executor, start(graph("mlp-adam")), 2))
    same(*found)


def test_what_is_written_is_read_back(engine: tuple[str, MakeExecutor]) -> None:
    with engine[1](over(graph("mlp-adam"), WORKERS)) as executor:
        value = np.arange(128 * 784, dtype="float32").reshape(128, 784)
        executor.write("fc1_weight", value)
        np.testing.assert_array_equal(executor.read("fc1_weight"), value)


def test_a_closed_executor_does_not_run(engine: tuple[str, MakeExecutor]) -> None:
    executor = engine[1](over(graph("mlp-adam"), WORKERS))
    executor.close()
    with pytest.raises(ExecutionError):
        executor.run()
