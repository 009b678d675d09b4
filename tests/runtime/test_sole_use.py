"""Modules are used by one thread of the process that made them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import tofu
from tofu import sym
from tofu.errors import ExecutionError
from tofu.runtime.executor import Executor
from tofu.runtime.sole_use import SoleUse

DATA = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


@pytest.fixture
def module() -> Iterator[tofu.Module]:
    body = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    with tofu.Module(sym.SoftmaxOutput(body, name="softmax"), [tofu.cpu(0), tofu.cpu(1)]) as module:
        yield module


def batches() -> tofu.ArrayIterator:
    return tofu.ArrayIterator({"data": DATA}, {"softmax_label": np.zeros(8, np.int64)}, 4)


def test_the_thread_inside_may_enter_again() -> None:
    use = SoleUse("this")
    with use, use:
        pass


def test_fit_of_two_threads_is_refused(module: tofu.Module) -> None:
    refused: list[str] = []

    def other() -> None:
        for method in (
            partial(module.fit, batches()),
            partial(module.score, batches()),
            partial(module.predict, batches()),
            partial(module.bind, batches().shapes),
            partial(module.evaluator, batches().shapes),
            partial(module.set_parameters, {}),
            module.parameters,
        ):
            with pytest.raises(ExecutionError, match="another thread is using this module") as error:
                method()
            refused.append(str(error.value))

    def on_step(_: object) -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert len(module.fit(batches(), on_step=on_step)) == 1
    assert len(refused) == 14


def test_callbacks_may_score(module: tofu.Module) -> None:
    scores: list[dict[str, float]] = []

    def on_epoch(_: object) -> None:
        scores.append(module.score(batches()))
        module.set_parameters(module.parameters())

    module.fit(batches(), num_epoch=2, on_epoch=on_epoch)
    assert len(scores) == 2


def test_a_module_closed_by_a_callback_says_so(module: tofu.Module) -> None:
    with pytest.raises(ExecutionError, match="closed while it was trained; close it after fit"):
        module.fit(batches(), on_step=lambda _: module.close())


def test_a_module_bound_by_a_callback_says_so(module: tofu.Module) -> None:
    def on_step(_: object) -> None:
        module.bind(batches().shapes, "adam")

    with pytest.raises(ExecutionError, match="bound to other shapes or settings while it was trained"):
        module.fit(batches(), on_step=on_step)


def test_a_module_closed_by_another_thread_says_so(module: tofu.Module) -> None:
    """Its values may be those of half an iteration, so they are not kept."""

    def on_step(_: object) -> None:
        thread = threading.Thread(target=module.close)
        thread.start()
        thread.join()

    with pytest.raises(ExecutionError, match="closed while it was trained; close it after fit"):
        module.fit(batches(), on_step=on_step)
    with pytest.raises(ExecutionError, match=r"another thread closed this module, so .* are undefined"):
        module.parameters()


@contextmanager
def iterating(module: tofu.Module) -> Iterator[Executor]:
    """An executor that is within an iteration, in another thread."""
    executor, entered, leave = module.bind(batches().shapes), threading.Event(), threading.Event()
    run = executor._engine.run

    def waiting(updates: bool = True) -> None:
        entered.set()
        leave.wait()
        run(updates)

    executor._engine.run = waiting  # type: ignore[method-assign]
    thread = threading.Thread(target=executor.run)
    thread.start()
    entered.wait()
    try:
        yield executor
    finally:
        leave.set()
        thread.join()


def test_tensors_of_an_iteration_in_another_thread_are_refused(module: tofu.Module) -> None:
    weight = np.zeros((2, 4), np.float32)
    with iterating(module) as executor:
        form = executor.form("fc_weight")
        for use in (
            executor.run,
            partial(executor.read, "fc_weight"),
            partial(executor.write, "fc_weight", weight),
            partial(executor.write_parts, "fc_weight", form, lambda regions: [weight] * len(regions)),
            partial(module.evaluator, batches().shapes),
            module.parameters,
        ):
            with pytest.raises(ExecutionError, match="another thread is using this executor"):
                use()
    executor.write("fc_weight", weight)
    np.testing.assert_array_equal(executor.read("fc_weight"), weight)


def test_tensors_of_an_iteration_are_refused_in_a_signal_handler(module: tofu.Module) -> None:
    executor = module.bind(batches().shapes)
    run, refused = executor._engine.run, []

    def handler(*_: object) -> None:
        for use in (executor.run, module.parameters):
            with pytest.raises(ExecutionError, match="this executor runs an iteration; a signal handler"):
                refused.append(use())
        module.close()

    def interrupted(updates: bool = True) -> None:
        signal.raise_signal(signal.SIGUSR1)
        run(updates)

    executor._engine.run = interrupted  # type: ignore[method-assign]
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(ExecutionError, match="this executor is closed"):
            executor.run()
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ExecutionError, match=r"stopped halfway, so .* are undefined"):
        module.parameters()
    assert not refused


def test_a_forked_process_is_refused_at_once(module: tofu.Module) -> None:
    module.fit(batches())
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            module.close()
            module.fit(batches())
        except ExecutionError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    assert f"this module was made in process {os.getpid()}, and a fork does not have its threads" in said
