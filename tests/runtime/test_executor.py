import gc
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tofu.dataflow.graph import Role
from tofu.errors import DataError, ExecutionError, ShapeError
from tofu.operators.kernels.kernel import KernelCall
from tofu.programs.program import PartitionedGraph
from tofu.runtime.executor import Executor


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("seed", range(12))
def test_partitioned_equals_whole(toys: Any, seed: int, threads: int) -> None:
    toy, partitioned, values = toys.random_toy(seed, workers=1 + seed % 7, operations=12)
    with Executor(partitioned, threads=threads) as executor:
        for name, value in values.items():
            executor.write(name, value)
        for _ in range(3):
            expected = toy.expected(values)
            executor.run()
            for name in values:
                np.testing.assert_array_equal(executor.read(name), expected[name])
                np.testing.assert_array_equal(executor.read(f"new_{name}"), expected[name])
            last = partitioned.graph.tensors[partitioned.graph.outputs[0]].name
            np.testing.assert_array_equal(executor.read(last), expected[last])
            assert executor.fetched_bytes == partitioned.planned_bytes
            values = {name: expected[name] for name in values}


@pytest.mark.parametrize("seed", range(6))
def test_slow_workers_change_nothing(toys: Any, seed: int) -> None:
    """Kernels that sleep at random make other interleavings than the usual ones."""
    toy, partitioned, values = toys.random_toy(seed, workers=4, operations=6)
    generator = np.random.default_rng(seed)

    def dawdling(prepare: Callable[[KernelCall], Callable[[], None]]) -> Any:
        def prepared(call: KernelCall) -> Callable[[], None]:
            run = prepare(call)

            def slow() -> None:
                time.sleep(float(generator.random()) * 0.004)
                run()

            return slow

        return prepared

    slow = replace_kernels(toys, partitioned, lambda operation, prepare: dawdling(prepare))
    expected = toy.expected(values)
    with Executor(slow, threads=4) as executor:
        for name, value in values.items():
            executor.write(name, value)
        executor.run()
        for name in values:
            np.testing.assert_array_equal(executor.read(name), expected[name])


def replace_kernels(toys: Any, partitioned: PartitionedGraph, change: Any) -> PartitionedGraph:
    """The same graph with `change(operation, prepare)` in place of every operation's `prepare`."""
    operations = []
    for o in partitioned.graph.operations:
        b = o.bound
        bound = toys.FakeBound(b.description, b.variables, b.in_place, change(o.index, b.prepare))
        operations.append(type(o)(o.index, o.name, bound, o.inputs, o.outputs, o.phase, o.tie))
    g = partitioned.graph
    graph = type(g)(g.name, g.tensors, tuple(operations), g.outputs)
    return PartitionedGraph(
        graph, partitioned.workers, partitioned.programs, partitioned.homes, partitioned.planned_bytes
    )


def ring(toys: Any, workers: int, operations: int = 6) -> PartitionedGraph:
    """A chain in which every worker fetches from its neighbour at every operation."""
    toy = toys.Toy(workers)
    value = toy.tensor("x", 8 * workers, Role.DATA)
    for number in range(operations):
        value = toy.apply(toys.SHIFT, [value], f"t{number}")
    lowered: PartitionedGraph = toy.lower([value])
    return lowered


def failing(
    toys: Any, partitioned: PartitionedGraph, operation: int, worker: int, act: Callable[[], None]
) -> Any:
    """`act` runs before the kernel of one operation on one worker."""

    def change(index: int, prepare: Any) -> Any:
        def prepared(call: KernelCall) -> Callable[[], None]:
            run = prepare(call)
            mine = call.box["i"][0] == worker * 8
            if index != operation or not mine:
                return run

            def both() -> None:
                act()
                run()

            return both

        return prepared

    return replace_kernels(toys, partitioned, change)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("worker", range(4))
def test_a_worker_that_raises_stops_all(toys: Any, worker: int, threads: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError("no such luck")

    partitioned = failing(toys, ring(toys, 4), operation=2, worker=worker, act=fail)
    with Executor(partitioned, threads=threads) as executor:
        message = rf"worker {worker}, operation 'make_t2' \(Compute\), iteration 0: ZeroDivisionError: no"
        with pytest.raises(ExecutionError, match=message) as caught:
            executor.run()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(ExecutionError, match=r"stopped earlier .*make_t2"):
            executor.run()


def test_a_worker_that_raises_while_its_peers_wait(toys: Any) -> None:
    def late() -> None:
        time.sleep(0.2)
        raise MemoryError

    partitioned = failing(toys, ring(toys, 4), operation=2, worker=1, act=late)
    with (
        Executor(partitioned, threads=4) as executor,
        pytest.raises(ExecutionError, match="worker 1, operation 'make_t2'"),
    ):
        executor.run()


def test_a_worker_that_hangs_is_named(toys: Any) -> None:
    release = threading.Event()
    partitioned = failing(toys, ring(toys, 4), operation=3, worker=2, act=release.wait)
    with Executor(partitioned, threads=4, watchdog_seconds=0.3) as executor:
        started = time.monotonic()
        with pytest.raises(ExecutionError, match=r"no progress for 0.3 s.*worker 2, operation 'make_t3'"):
            executor.run()
        assert time.monotonic() - started < 20
        release.set()


def test_an_interrupt_stops_the_workers(toys: Any) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    try:
        interrupted(toys)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(toys: Any) -> None:
    release = threading.Event()
    partitioned = failing(toys, ring(toys, 2), operation=1, worker=1, act=release.wait)
    with Executor(partitioned, threads=2) as executor:
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            executor.run()
        release.set()
        with pytest.raises(ExecutionError, match="interrupted in iteration 0"):
            executor.run()


def require_closed(executor: Executor) -> None:
    with pytest.raises(ExecutionError, match="was closed during run; close it afterwards, iteration 0"):
        executor.run()
    assert executor.failed
    with pytest.raises(ExecutionError, match=r"stopped earlier .*closed during run.*make a new one"):
        executor.run()


@pytest.mark.parametrize("operation", [1, 5])
def test_an_iteration_fails_that_another_thread_cuts_short(toys: Any, operation: int) -> None:
    """Also in its last operation, after which no thread has to stop."""
    entered = threading.Event()

    def act() -> None:
        entered.set()
        time.sleep(0.2)

    executor = Executor(failing(toys, ring(toys, 2), operation, worker=1, act=act), threads=2)

    def close() -> None:
        entered.wait()
        executor.close()

    thread = threading.Thread(target=close)
    thread.start()
    require_closed(executor)
    thread.join()


def test_an_iteration_fails_that_an_operation_or_a_signal_handler_cuts_short(toys: Any) -> None:
    partitioned = failing(toys, ring(toys, 2), operation=1, worker=1, act=lambda: executor.close())
    executor = Executor(partitioned, threads=2)
    require_closed(executor)
    main = threading.main_thread().ident
    assert main is not None

    def act() -> None:
        signal.pthread_kill(main, signal.SIGUSR1)
        time.sleep(0.2)

    executor = Executor(failing(toys, ring(toys, 2), operation=1, worker=1, act=act), threads=2)
    before = signal.signal(signal.SIGUSR1, lambda *_: executor.close())
    try:
        require_closed(executor)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_kernel_that_cannot_be_prepared_is_named(toys: Any) -> None:
    def refuse(call: KernelCall) -> Callable[[], None]:
        raise ValueError("strange strides")

    partitioned = replace_kernels(
        toys, ring(toys, 2), lambda index, prepare: refuse if index == 4 else prepare
    )
    with pytest.raises(ExecutionError, match=r"worker 0, operation 'make_t4'.*preparation.*strange strides"):
        Executor(partitioned)


@pytest.mark.usefixtures("only_new_garbage")
def test_threads_end_with_the_executor(toys: Any) -> None:
    before = set(threading.enumerate())
    with Executor(ring(toys, 4), threads=4) as executor:
        executor.run()
        assert len(set(threading.enumerate()) - before) == 4
    assert set(threading.enumerate()) <= before
    executor = Executor(ring(toys, 4), threads=4)
    executor.run()
    assert len(set(threading.enumerate()) - before) == 4
    del executor
    gc.collect()
    assert set(threading.enumerate()) <= before
    closed = Executor(ring(toys, 2))
    closed.close()
    closed.close()
    with pytest.raises(ExecutionError, match="closed"):
        closed.run()


def test_wrong_arrays_are_refused(toys: Any) -> None:
    with Executor(ring(toys, 2)) as executor:
        with pytest.raises(ShapeError, match=r"'x' has shape \(16,\).*\(3,\)"):
            executor.write("x", np.zeros(3))
        with pytest.raises(DataError, match=r"'x' holds float64.*complex128"):
            executor.write("x", np.zeros(16, complex))
        with pytest.raises(DataError, match=r"no tensor 't55'.*mean 't5'"):
            executor.write("t55", np.zeros(16))
        with pytest.raises(DataError, match=r"'t1' \(activation\) does not outlive"):
            executor.read("t1")
        executor.write("x", np.arange(16))
        np.testing.assert_array_equal(executor.read("x"), np.arange(16.0))


def test_replicated_tensors_are_written_everywhere(toys: Any) -> None:
    toy = toys.Toy(2)
    x = toy.tensor("x", 4, Role.SCALAR, [(0, 4), (0, 4)])
    y = toy.apply(toys.ADD, [x, x], "y", cuts=[(0, 2), (2, 4)])
    with Executor(toy.lower([y])) as executor:
        executor.write("x", np.arange(4))
        executor.run()
        np.testing.assert_array_equal(executor.read("y"), 2.0 * np.arange(4))
        np.testing.assert_array_equal(executor.read("x"), np.arange(4))
        assert executor.fetched_bytes == 0
