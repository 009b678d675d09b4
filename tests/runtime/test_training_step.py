"""One iteration of an unrolled graph has the bits of its micro-batches in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.models import Model, zoo
from tofu.operators.kernels.kernel import Array
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator
from tofu.runtime.module import Progress, TrainableModule
from tofu.runtime.parameters import optimizer_state

from .lowering import lowered

STEPS = 5
CLASSES = 4


def lenet_with_batch_norm() -> Model:
    with NameScope():
        net = sym.Convolution(sym.Variable("data"), num_filter=4, kernel=(3, 3), name="conv1")
        net = sym.BatchNorm(net, fix_gamma=False, momentum=0.5, name="bn1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
        net = sym.FullyConnected(sym.Flatten(net, name="flat"), num_hidden=CLASSES, name="fc1")
        net = sym.SoftmaxOutput(net, name="softmax")
    return Model("lenet-bn", net, {"data": (8, 1, 8, 8)}, {"softmax_label": (8,)})


def model(name: str) -> Model:
    match name:
        case "mlp":
            return zoo.get(name, 8, image=(1, 6, 6), hidden=(12, 8), classes=CLASSES)
        case "lenet-bn":
            return lenet_with_batch_norm()
        case "lstm":
            return zoo.get(name, 8, hidden=8, steps=3, vocabulary=16, embedding=4)
        case _:
            return zoo.get(name, 8, steps=4, memory=3, vocabulary=16, heads=2)


MODELS = ("mlp", "lenet-bn", "lstm", "transformer-decoder-1-16")


def batches(trained: Model) -> ArrayIterator:
    """Tokens for samples of one dimension, numbers of both signs for others; the last batch is filled."""
    generator = np.random.default_rng(3)
    samples = STEPS * trained.batch - 3
    data: dict[str, Array] = {}
    for name, (_, *sample) in trained.data.items():
        tokens = generator.integers(0, 16, (samples, *sample)).astype(np.float32)
        numbers = generator.standard_normal((samples, *sample)).astype(np.float32)
        data[name] = tokens if len(sample) == 1 else numbers
    labels = {
        name: generator.integers(0, CLASSES, (samples, *sample)).astype(np.float32)
        for name, (_, *sample) in trained.labels.items()
    }
    return ArrayIterator(data, labels, trained.batch)


def fitted(name: str, workers: int, **settings: Any) -> tuple[dict[str, Array], list[Progress], int]:
    """Everything that is learned, the progress of each step, and the planned bytes."""
    trained, steps = model(name), list[Progress]()
    context = [cpu(worker) for worker in range(workers)]
    with TrainableModule(trained.symbol, context, lower=lowered) as module:
        data = batches(trained)
        module.fit(data, metric="cross-entropy", learning_rate=0.05, on_step=steps.append, **settings)
        bound = {key: settings[key] for key in ("optimizer", "accumulate", "unroll") if key in settings}
        executor = module.bind(data.shapes, **bound)
        learned = {**module.parameters(), **optimizer_state(executor)}
        return learned, steps, executor.partitioned.planned_bytes


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", MODELS)
def test_bits_are_those_of_micro_batches_in_turn(name: str, optimizer: str) -> None:
    expected, in_turn, _ = fitted(name, 1, optimizer=optimizer, accumulate=4)
    learned, together, _ = fitted(name, 1, optimizer=optimizer, accumulate=4, unroll=True)
    assert learned.keys() == expected.keys()
    assert [key for key in learned if learned[key].tobytes() != expected[key].tobytes()] == []
    assert [step.metrics for step in together] == [step.metrics for step in in_turn]
    assert len(together) == STEPS


@pytest.mark.parametrize("name", MODELS)
def test_fetched_bytes_are_planned(name: str) -> None:
    alone, _, _ = fitted(name, 1, accumulate=2, unroll=True)
    learned, steps, planned_bytes = fitted(name, 4, accumulate=2, unroll=True)
    assert planned_bytes > 0
    assert {step.fetched_bytes for step in steps} == {planned_bytes}
    for key, value in alone.items():
        np.testing.assert_allclose(learned[key], value, rtol=1e-3, atol=1e-4, err_msg=key)


def test_a_run_continues_with_micro_batches_in_turn(tmp_path: Path) -> None:
    """Checkpoints hold the same tensors, so a run may change between both."""
    expected, _, _ = fitted("mlp", 1, num_epoch=2, accumulate=4)
    fitted("mlp", 1, num_epoch=1, accumulate=4, unroll=True, checkpoint=tmp_path)
    resumed, steps, _ = fitted("mlp", 1, num_epoch=2, accumulate=4, checkpoint=tmp_path, resume=True)
    assert len(steps) == STEPS
    assert [key for key in expected if resumed[key].tobytes() != expected[key].tobytes()] == []
