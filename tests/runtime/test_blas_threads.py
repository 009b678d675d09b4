"""Limits of NumPy's BLAS hold for the whole process, so executors that run at once share them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from tofu.programs.program import PartitionedGraph
from tofu.runtime.blas_threads import limited, loaded_blas, threads_of
from tofu.runtime.executor import Executor


class Iteration(threading.Thread):
    """An iteration in a thread, from when it is made until `end` is called."""

    def __init__(self, partitioned: PartitionedGraph, kernel_threads: int) -> None:
        super().__init__(daemon=True)
        self._begun, self._ended = threading.Event(), threading.Event()
        self._executor = Executor(partitioned)
        self._executor._engine.kernel_threads = kernel_threads
        self._executor._engine._team.run = self._run_team
        self.start()
        self._begun.wait()

    def run(self) -> None:
        with self._executor:
            self._executor.run()

    def _run_team(self) -> None:
        self._begun.set()
        self._ended.wait()

    def end(self) -> None:
        self._ended.set()
        self.join()


@pytest.fixture
def before() -> Iterator[int]:
    """The number of threads that all libraries have, 3."""
    found = numbers()
    change(3)
    try:
        if set(numbers()) != {3}:
            pytest.skip(
                "another thread cannot set the number of threads of this BLAS, such as one with OpenMP"
            )
        yield 3
    finally:
        change(min(found, default=1))


def change(threads: int) -> None:
    """In a thread that ends: threadpoolctl ignores others while the one that sets a limit lives."""
    thread = threading.Thread(target=threadpool_limits, args=(threads, "blas"))
    thread.start()
    thread.join()


def numbers() -> list[int]:
    return [each["num_threads"] for each in loaded_blas().info()]


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_the_last_iteration_restores_what_the_first_found(
    toys: Any, before: int, first_ends_first: bool
) -> None:
    _, partitioned, _ = toys.random_toy(0, workers=1, operations=2)
    first, second = Iteration(partitioned, 2), Iteration(partitioned, 1)
    assert set(numbers()) == {1}
    assert set(threads_of(loaded_blas())) == {before}
    if first_ends_first:
        first.end()
        assert set(numbers()) == {1}
        second.end()
    else:
        second.end()
        assert set(numbers()) == {2}
        first.end()
    assert set(numbers()) == {before}


def test_an_error_restores_as_well(before: int) -> None:
    with pytest.raises(KeyboardInterrupt), limited(loaded_blas(), 1):
        raise KeyboardInterrupt
    assert set(numbers()) == {before}
