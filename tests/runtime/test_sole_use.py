"""Modules are used by one thread of the process that made them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tofu
from tofu import sym
from tofu.errors import ExecutionError
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
        for method in (module.fit, module.score, module.predict):
            with pytest.raises(ExecutionError, match="another thread is using this module") as error:
                method(batches())
            refused.append(str(error.value))

    def on_step(_: object) -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert len(module.fit(batches(), on_step=on_step)) == 1
    assert len(refused) == 6


def test_callbacks_may_score(module: tofu.Module) -> None:
    scores: list[dict[str, float]] = []
    module.fit(batches(), num_epoch=2, on_epoch=lambda _: scores.append(module.score(batches())))
    assert len(scores) == 2


def test_a_module_closed_by_a_callback_says_so(module: tofu.Module) -> None:
    with pytest.raises(ExecutionError, match="closed while it was trained; close it after fit"):
        module.fit(batches(), on_step=lambda _: module.close())


def test_a_forked_process_is_refused_at_once(module: tofu.Module) -> None:
    module.fit(batches())
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
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
