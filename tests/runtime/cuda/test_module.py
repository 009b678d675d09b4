"""Training by a module on the CUDA engine: micro-batches, and checkpoints for either engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol import Symbol
from tofu.runtime import binding
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator
from tofu.runtime.module import Progress, TrainableModule
from tofu.runtime.run_settings import RunSettings

from .bench import Arrays, Bench, agree, over

WORKERS = 2
Engines = Callable[[str], None]


def network() -> Symbol:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.FullyConnected(net, num_hidden=4, name="fc2")
        return sym.SoftmaxOutput(net, name="softmax")


def batches() -> ArrayIterator:
    data = np.random.default_rng(1).standard_normal((48, 6)).astype(np.float32)
    return ArrayIterator(data, data[:, :4].argmax(axis=1), 16, shuffle=True, seed=5)


@pytest.fixture
def engines(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """`engines("cuda")` lets modules that are made from now on use the bench's machines."""
    processor = binding.engine_on

    def chosen(name: str) -> None:
        make = processor if name == "numpy" else (lambda devices, **options: bench.maker())
        monkeypatch.setattr(binding, "engine_on", make)

    return chosen


def trained(epochs: int, optimizer: str = "adam", **settings: Any) -> tuple[Arrays, list[float]]:
    """Return parameters and losses after some epochs."""
    steps: list[Progress] = []
    context = [cpu(worker) for worker in range(WORKERS)]
    with TrainableModule(network(), context, lower=over, settings=RunSettings(seed=2)) as module:
        module.fit(
            batches(),
            num_epoch=epochs,
            optimizer=optimizer,
            learning_rate=0.01,
            metric="cross-entropy",
            on_step=steps.append,
            **settings,
        )
        return module.parameters(), [step.metrics["cross-entropy"] for step in steps]


def test_micro_batches_have_a_graph_of_their_own(engines: Engines, bench: Bench) -> None:
    engines("numpy")
    expected, losses = trained(2, "sgd", accumulate=4)
    engines("cuda")
    found, own = trained(2, "sgd", accumulate=4)
    assert bench.machine.captures == 2
    agree(found, expected, 1e-4)
    np.testing.assert_allclose(own, losses, 1e-4)


@pytest.mark.parametrize(("first", "second"), [("numpy", "cuda"), ("cuda", "numpy")])
def test_one_engine_goes_on_from_the_other(
    first: str, second: str, engines: Engines, bench: Bench, tmp_path: Path
) -> None:
    """With every bit that was saved, and to where the first one would have come."""
    engines("numpy")
    expected, losses = trained(3)
    engines(first)
    _, before = trained(1, checkpoint=tmp_path)
    saved = CheckpointFolder(tmp_path).load().tensors
    engines(second)
    taken_up, none = trained(1, checkpoint=tmp_path, resume=True)
    assert none == []
    for name, values in taken_up.items():
        assert values.tobytes() == saved[name].tobytes(), name
    found, after = trained(3, checkpoint=tmp_path, resume=True)
    agree(found, expected, 1e-4)
    np.testing.assert_allclose(before + after, losses, 1e-4)
