"""Batches of several sizes in the life of one module: it plans again and continues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import adam, sgd
from tofu.errors import ShapeError
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator, Batch
from tofu.runtime.module import TrainableModule

from .lowering import lowered

SAMPLES = 24
OPTIMIZERS = {"momentum": sgd(momentum=0.5, rescale=0.125), "adam": adam(rescale=0.125)}


def module(workers: int) -> TrainableModule:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=12, name="fc1")
        net = sym.Activation(net, act_type="tanh", name="tanh1")
        net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")
    return TrainableModule(net, [cpu(worker) for worker in range(workers)], lower=lowered)


def batches(batch_size: int, samples: int = SAMPLES) -> ArrayIterator:
    data = np.random.default_rng(2).standard_normal((samples, 5)).astype(np.float32)
    return ArrayIterator(data, data[:, :3].argmax(axis=1), batch_size)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_a_fit_on_other_batches_goes_on(optimizer: str, workers: int) -> None:
    """Against a module for every size, parameters and the optimizer's state carried over by hand."""
    settings = OPTIMIZERS[optimizer]

    def learned(sizes: list[int]) -> dict[str, Any]:
        with module(workers) as trained:
            for size in sizes:
                trained.fit(batches(size), optimizer=settings, learning_rate=0.25)
            return trained.parameters()

    def by_hand(sizes: list[int]) -> dict[str, Any]:
        """Every epoch by a separate module, parameters and the optimizer's state carried over."""
        values: dict[str, Any] = {}
        state: dict[str, Any] = {}
        updates = 0
        for size in sizes:
            with module(workers) as trained:
                trained.set_parameters(values)
                executor = trained.bind(batches(size).shapes, settings)
                names = [t.name for t in executor.partitioned.graph.tensors if t.role.value == "state"]
                for name, value in state.items():
                    executor.write(name, value)
                for batch in batches(size).epoch():
                    rate = 0.25
                    if optimizer == "adam":
                        updates += 1
                        rate *= (1 - 0.999**updates) ** 0.5 / (1 - 0.9**updates)
                    trained.step(executor, batch, rate)
                values = trained.parameters()
                state = {name: executor.read(name) for name in names if not name.startswith("updated")}
        return values

    sizes = [8, 12, 8, 5]
    expected = by_hand(sizes)
    for name, value in learned(sizes).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    with module(workers) as trained:
        for size in sizes:
            trained.close()
            trained.fit(batches(size), optimizer=settings, learning_rate=0.25)
        afresh = trained.parameters()
    assert not np.allclose(afresh["fc1_weight"], expected["fc1_weight"], rtol=1e-3), "the state is not seen"


def test_another_optimizer_starts_again() -> None:
    with module(2) as trained:
        trained.fit(batches(8), optimizer=adam())
        executor = trained.bind(batches(8).shapes, adam(beta1=0.8))
        assert not executor.read("mean(fc1_weight)").any()


@pytest.mark.parametrize("size", [1, 5, 24])
def test_evaluation_takes_batches_of_any_size(size: int) -> None:
    with module(2) as trained:
        (epoch,) = trained.fit(batches(8), batches(size, samples=10), learning_rate=0.1)
        assert epoch.evaluation == trained.score(batches(8, samples=10))
        same = trained.predict(batches(8, samples=10))
        np.testing.assert_allclose(trained.predict(batches(size, samples=10)), same, rtol=1e-5)


def test_a_batch_of_another_size_within_an_epoch_is_refused() -> None:
    class Mixed(ArrayIterator):
        def epoch(self, number: int = 0) -> Any:
            for batch in super().epoch(number):
                yield Batch({n: a[:3] for n, a in batch.data.items()}, batch.label, 3)

    data = batches(8)
    with (
        module(2) as trained,
        pytest.raises(ShapeError, match=r"'data' has shape \(8, 5\), but its array has shape \(3, 5\)"),
    ):
        trained.fit(Mixed(data.data, data.label, 8))
