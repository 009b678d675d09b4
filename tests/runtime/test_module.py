from typing import Any

import numpy as np
import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol import Symbol
from tofu.errors import DataError, ExecutionError
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator
from tofu.runtime.learning_rate import CosineRate
from tofu.runtime.module import Epoch, Progress, TrainableModule
from tofu.runtime.run_settings import RunSettings

from .lowering import lowered


def network() -> Symbol:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, name="fc1")
        net = sym.BatchNorm(net, fix_gamma=False, name="bn1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.FullyConnected(net, num_hidden=4, name="fc2")
        return sym.SoftmaxOutput(net, name="softmax")


def samples(count: int) -> tuple[Any, Any]:
    data = np.random.default_rng(1).standard_normal((count, 12)).astype(np.float32)
    return data, data[:, :4].argmax(axis=1)


def module(workers: int = 4, **settings: Any) -> TrainableModule:
    return TrainableModule(
        network(), [cpu(i) for i in range(workers)], lower=lowered, settings=RunSettings(**settings)
    )


def test_learns_and_reports() -> None:
    data, label = samples(150)
    train = ArrayIterator(data[:118], label[:118], 16, shuffle=True)
    held_out = ArrayIterator(data[118:], label[118:], 16)
    steps: list[Progress] = []
    seen: list[Epoch] = []
    with module() as model:
        epochs = model.fit(
            train,
            held_out,
            num_epoch=20,
            learning_rate=CosineRate(0.2, 20 * len(train), warmup_steps=4),
            metric=["accuracy", "cross-entropy"],
            on_step=steps.append,
            on_epoch=seen.append,
        )
        assert epochs == seen
        assert epochs[-1].training["cross-entropy"] < 0.5 * epochs[0].training["cross-entropy"]
        assert epochs[-1].training["accuracy"] > 0.9
        assert epochs[-1].evaluation["accuracy"] > 0.7
        assert model.score(held_out) == {"accuracy": epochs[-1].evaluation["accuracy"]}
        predicted = model.predict(ArrayIterator(data[118:], batch_size=16))
        assert predicted.shape == (32, 4)
        assert (predicted.argmax(axis=1) == label[118:]).mean() == epochs[-1].evaluation["accuracy"]
        np.testing.assert_allclose(predicted.sum(axis=1), 1, rtol=1e-5)
    assert [step.step for step in steps] == list(range(1, 20 * 8 + 1))
    assert {step.steps for step in steps} == {160}
    assert sum(step.samples for step in steps) == 20 * 118
    assert steps[0].learning_rate == pytest.approx(0.05)
    assert all(step.fetched_bytes > 0 for step in steps)


def test_two_runs_are_bit_identical() -> None:
    data, label = samples(60)

    def run() -> tuple[list[Epoch], dict[str, Any]]:
        with module(4, seed=3) as model:
            epochs = model.fit(ArrayIterator(data, label, 16, shuffle=True), num_epoch=2, optimizer="adam")
            return epochs, model.parameters()

    (first, values), (second, again) = run(), run()
    assert [epoch.training for epoch in first] == [epoch.training for epoch in second]
    assert values.keys() >= {"fc1_weight", "bn1_gamma", "bn1_moving_mean"}
    assert all(values[name].tobytes() == again[name].tobytes() for name in values)


def test_a_rate_may_be_any_number() -> None:
    data, label = samples(16)
    seen: list[Progress] = []
    with module(1) as model:
        for rate in (1, 0.25, np.float32(0.25)):
            model.fit(ArrayIterator(data, label, 16), learning_rate=rate, on_step=seen.append)
    assert [step.learning_rate for step in seen] == [1, 0.25, 0.25]


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), np.ones(2), "fast", None])
def test_a_rate_that_is_not_a_finite_number_is_refused(rate: Any) -> None:
    data, label = samples(16)
    with module(1) as model, pytest.raises(DataError, match="give a finite number, or a function"):
        model.fit(ArrayIterator(data, label, 16), learning_rate=rate)


def test_rows_that_fill_the_last_batch_do_not_count() -> None:
    data, label = samples(20)
    with module(2) as model:
        assert model.score(ArrayIterator(data, label, 16)) == model.score(ArrayIterator(data, label, 10))
        assert len(model.predict(ArrayIterator(data, label, 16))) == 20


def test_an_output_without_rows_cannot_be_predicted() -> None:
    total = tofu.parse("def total(data): return lambda: Sum(lambda i, j: data[i, j])")
    with (
        TrainableModule(sym.apply(total, sym.Variable("data"), name="total"), lower=lowered) as model,
        pytest.raises(
            DataError, match=r"shape \(\) does not divide into equal numbers of rows for 16 samples"
        ),
    ):
        model.predict(ArrayIterator(samples(32)[0], batch_size=16))


def test_start_values_can_be_given_and_survive_rebinding() -> None:
    data, label = samples(32)
    weight = np.full((16, 12), 0.25, np.float32)
    with module(2, parameters={"fc1_weight": weight}) as model:
        model.score(ArrayIterator(data, label, 16))
        np.testing.assert_array_equal(model.parameters()["fc1_weight"], weight)
        model.fit(ArrayIterator(data, label, 16))
        learned = model.parameters()["fc1_weight"]
        assert (learned != weight).any()
        model.bind({"data": (8, 12), "softmax_label": (8,)})
        np.testing.assert_array_equal(model.parameters()["fc1_weight"], learned)
    np.testing.assert_array_equal(model.parameters()["fc1_weight"], learned)


def test_mistakes_are_named() -> None:
    data, label = samples(32)
    with pytest.raises(DataError, match=r"'fc9_weight', which is not a variable of the symbol"):
        module(parameters={"fc9_weight": data})
    with pytest.raises(ExecutionError, match=r"names no device"):
        TrainableModule(network(), [], lower=lowered)
    for threads in (0, -1):
        with pytest.raises(ExecutionError, match=rf"threads is {threads} .*an integer from 1 on"):
            module(threads=threads)
    with module(2) as model:
        with pytest.raises(DataError, match=r"no metric 'acc'"):
            model.fit(ArrayIterator(data, label, 16), metric="acc")
        model.bind({"data": (16, 12), "softmax_label": (16,)})
        with pytest.raises(DataError, match=r"'accuracy' needs labels"):
            model.score(ArrayIterator(data, batch_size=16))


def test_parameters_can_be_overwritten_at_any_time() -> None:
    """Before anything is bound, while training is, and seen by evaluation."""
    with NameScope():
        symbol = sym.SoftmaxOutput(
            sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc"), name="softmax"
        )
    shapes = {"data": (4, 5), "softmax_label": (4,)}
    zeros = {"fc_weight": np.zeros((3, 5), np.float32), "fc_bias": np.zeros(3, np.float32)}
    with TrainableModule(symbol, [cpu(0), cpu(1)], lower=lowered) as model:
        model.set_parameters(zeros)
        model.bind(shapes)
        assert not model.parameters()["fc_weight"].any()
        model.set_parameters({"fc_bias": [0.0, 0.0, 100.0]})
        for gradients in (None, ("fc_bias",)):
            executor = model.evaluator(shapes, gradients)
            executor.write("data", np.ones((4, 5), np.float32))
            if gradients is not None:
                executor.write("softmax_label", np.zeros(4, np.float32))
            executor.run()
            np.testing.assert_array_equal(executor.read("softmax_output")[:, 2], 1)
        np.testing.assert_allclose(executor.read("grad(fc_bias)"), [-4, 0, 4], atol=1e-6)
        with pytest.raises(
            DataError, match="'fc_bis', which is not a variable of the symbol; did you mean 'fc_bias'"
        ):
            model.set_parameters({"fc_bis": [0.0]})
