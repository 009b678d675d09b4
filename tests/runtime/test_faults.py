"""Whatever fails, wherever: workers stop, the error says where, and the last checkpoint is as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.errors import ExecutionError
from tofu.programs.clock import writes
from tofu.programs.program import PartitionedGraph
from tofu.runtime import binding, numpy_engine
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator
from tofu.runtime.executor import Executor
from tofu.runtime.module import TrainableModule
from tofu.runtime.preparation import PreparedSteps, place_of, prepare
from tofu.runtime.run_settings import RunSettings

from .lowering import lowered

WORKERS = 3
BATCH, SAMPLES = 8, 24
STEPS = SAMPLES // BATCH
FAILS_AT = STEPS + 1
"""The iteration that fails, counted from 0: the second of the second epoch."""
WATCHDOG_SECONDS = 0.25
KINDS = ("raises", "nan", "out of memory", "hangs")


@dataclass
class Fault:
    """A fault in one instruction of one worker."""

    worker: int
    index: int
    kind: str

    def __post_init__(self) -> None:
        self.calls = 0
        self.place = ""
        self.release = threading.Event()

    def prepare(
        self, partitioned: PartitionedGraph, buffers: Any, worker: int, guard_scratch: bool, scratch: Any
    ) -> PreparedSteps:
        """In place of the runtime's own: the worker's steps, one of them faulty."""
        prepared = prepare(partitioned, buffers, worker, guard_scratch, scratch)
        if worker != self.worker:
            return prepared
        self.place = place_of(partitioned, worker, self.index)
        steps = list(prepared.steps)
        targets = [
            buffers[worker][target]
            for target in writes(partitioned.programs[worker].instructions[self.index])
        ]
        steps[self.index] = partial(self.run, steps[self.index], targets)
        return replace(prepared, steps=tuple(steps))

    def run(self, step: Callable[[], None], targets: list[Any]) -> None:
        self.calls += 1
        if self.calls == FAILS_AT + 1:
            match self.kind:
                case "raises":
                    raise ZeroDivisionError("no such luck")
                case "out of memory":
                    raise MemoryError
                case "hangs":
                    self.release.wait(30)
        step()
        if self.calls == FAILS_AT + 1 and self.kind == "nan":
            targets[0][...] = np.nan


def trained(folder: Path | None, epochs: int = 2) -> dict[str, Any]:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=6, name="fc1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")
    data = np.random.default_rng(1).standard_normal((SAMPLES, 5)).astype(np.float32)
    batches = ArrayIterator(data, data[:, :3].argmax(axis=1), BATCH, shuffle=True, seed=2)
    context = [cpu(worker) for worker in range(WORKERS)]
    with TrainableModule(
        net, context, lower=lowered, settings=RunSettings(threads=WORKERS, detect_nan=True)
    ) as module:
        module.fit(batches, num_epoch=epochs, learning_rate=0.1, checkpoint=folder)
        return module.parameters()


def instructions() -> list[int]:
    """How many instructions each worker has."""
    counts: list[int] = []

    def count(
        partitioned: PartitionedGraph, buffers: Any, worker: int, guard_scratch: bool, scratch: Any
    ) -> PreparedSteps:
        counts.append(len(partitioned.programs[worker].instructions))
        return prepare(partitioned, buffers, worker, guard_scratch, scratch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_engine, "prepare", count)
        trained(None, epochs=1)
    return counts


def places() -> Iterator[tuple[int, int]]:
    for worker, count in enumerate(instructions()):
        for index in range(count):
            yield worker, index


@pytest.fixture(scope="module")
def after_one_epoch() -> dict[str, Any]:
    return trained(None, epochs=1)


def check(fault: Fault, folder: Path, expected: dict[str, Any], patch: pytest.MonkeyPatch) -> None:
    """Training with the fault stops with an error that names its place, and leaves the checkpoint alone."""
    before = set(threading.enumerate())
    patch.setattr(numpy_engine, "prepare", fault.prepare)
    patch.setattr(binding, "Executor", partial(Executor, watchdog_seconds=WATCHDOG_SECONDS))
    reasons = {
        "raises": "ZeroDivisionError: no such luck",
        "nan": "is not a number",
        "out of memory": "MemoryError",
        "hangs": f"no progress for {WATCHDOG_SECONDS} s",
    }
    # a thread that hangs is let go once the error is there, so that closing need not wait for it
    closing = Executor.close

    def released(executor: Executor) -> None:
        fault.release.set()
        closing(executor)

    patch.setattr(Executor, "close", released)
    with pytest.raises(ExecutionError) as caught:
        trained(folder)
    assert f"{fault.place}, iteration {FAILS_AT}" in str(caught.value)
    assert reasons[fault.kind] in str(caught.value)
    assert set(threading.enumerate()) <= before, "no thread of this run is left"
    found = CheckpointFolder(folder).load()
    for name, value in expected.items():
        np.testing.assert_array_equal(found.tensors[name], value)


@pytest.mark.parametrize("kind", KINDS)
def test_some_places(
    kind: str, tmp_path: Path, after_one_epoch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (worker, index) in enumerate(list(places())[KINDS.index(kind) :: 11]):
        with monkeypatch.context() as patch:
            check(Fault(worker, index, kind), tmp_path / str(number), after_one_epoch, patch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_place(
    kind: str, tmp_path: Path, after_one_epoch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (worker, index) in enumerate(places()):
        with monkeypatch.context() as patch:
            check(Fault(worker, index, kind), tmp_path / str(number), after_one_epoch, patch)
