"""An executor says where the time of an iteration went."""

from __future__ import annotations

from typing import Any

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from tofu.errors import ExecutionError
from tofu.programs.program import Compute
from tofu.runtime.executor import Executor


@pytest.mark.parametrize("threads", [1, 3])
def test_every_operator_is_measured(toys: Any, threads: int) -> None:
    _, partitioned, _ = toys.random_toy(4, workers=3, operations=8)
    with Executor(partitioned, threads=threads, timed=True) as executor:
        assert set(executor.operator_seconds.values()) == {0.0}
        executor.run()
        seconds = executor.operator_seconds
    expected = set()
    for program in partitioned.programs:
        for instruction in program.instructions:
            operation = partitioned.graph.operations[instruction.operation]
            computes = isinstance(instruction, Compute)
            expected.add(operation.bound.description.name if computes else type(instruction).__name__)
    assert set(seconds) == expected
    assert all(value > 0 for value in seconds.values())
    assert list(seconds.values()) == sorted(seconds.values(), reverse=True)


def test_nothing_is_measured_unasked(toys: Any) -> None:
    _, partitioned, _ = toys.random_toy(0, workers=1, operations=2)
    with Executor(partitioned) as executor, pytest.raises(ExecutionError, match="timed=True"):
        executor.operator_seconds  # noqa: B018


def test_fewer_blas_threads_than_processors_stay_fewer(toys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who holds BLAS to one thread is not given two."""
    _, partitioned, _ = toys.random_toy(0, workers=1, operations=2)
    seen: list[int] = []
    blas = ThreadpoolController().select(user_api="blas")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    with threadpool_limits(1, user_api="blas"):
        executor = Executor(partitioned)
        monkeypatch.setattr(
            executor._engine._team, "run", lambda: seen.extend(each["num_threads"] for each in blas.info())
        )
        executor.run()
        executor.close()
    assert seen
    assert set(seen) == {1}
