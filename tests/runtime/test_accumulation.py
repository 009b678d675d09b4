"""A batch in several micro-batches, whose gradients are summed, is the batch in one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tofu.cli import main
from tofu.dataflow import sym
from tofu.dataflow.graph import Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import Optimizer, adam, sgd
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import training_graph
from tofu.errors import DataError
from tofu.partitioner import METHODS, lower, partition
from tofu.programs.memory import plan_memory
from tofu.runtime.context import cpu
from tofu.runtime.data import ArrayIterator, Batch
from tofu.runtime.module import Progress, TrainableModule
from tofu.runtime.run_settings import RunSettings

from .lowering import lowered

BATCH = 16
SHAPES = {"data": (BATCH, 6), "label": (BATCH, 4)}


def network(hidden: int = 8) -> Symbol:
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=hidden, name="fc1")
        net = sym.Activation(net, act_type="relu", name="relu1")
        net = sym.FullyConnected(net, num_hidden=4, name="fc2")
        return sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")


def whole_numbers(samples: int) -> ArrayIterator:
    generator = np.random.default_rng(3)
    data = generator.integers(-2, 3, (samples, 6)).astype(np.float32)
    label = {"label": generator.integers(-2, 3, (samples, 4)).astype(np.float32)}
    return ArrayIterator({"data": data}, label, BATCH)


def start(hidden: int = 8) -> dict[str, Any]:
    generator = np.random.default_rng(4)
    shapes = {"fc1_weight": (hidden, 6), "fc1_bias": (hidden,), "fc2_weight": (4, hidden), "fc2_bias": (4,)}
    return {n: generator.integers(-2, 3, shape).astype(np.float32) for n, shape in shapes.items()}


def fitted(
    accumulate: int, workers: int, optimizer: Optimizer, data: ArrayIterator, epochs: int = 1
) -> tuple[dict[str, Any], list[Progress]]:
    steps: list[Progress] = []
    context = [cpu(worker) for worker in range(workers)]
    with TrainableModule(
        network(), context, lower=lowered, settings=RunSettings(parameters=start())
    ) as module:
        module.fit(
            data,
            num_epoch=epochs,
            optimizer=optimizer,
            learning_rate=2.0**-6,
            metric="mse",
            accumulate=accumulate,
            on_step=steps.append,
        )
        return module.parameters(), steps


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("accumulate", [2, 4, 16])
def test_bit_equal_on_whole_numbers(accumulate: int, workers: int) -> None:
    """One step, in which every product and sum is exact whatever its order."""
    plain = sgd(momentum=0, rescale=1)
    expected, _ = fitted(1, 1, plain, whole_numbers(BATCH))
    learned, _ = fitted(accumulate, workers, plain, whole_numbers(BATCH))
    for name, value in expected.items():
        np.testing.assert_array_equal(learned[name], value, err_msg=name)
        assert (value != start()[name]).any(), "nothing was learned"


@pytest.mark.parametrize("optimizer", [sgd(weight_decay=0.01), adam()])
def test_curves_agree(optimizer: Optimizer) -> None:
    """Four epochs whose last batch is filled: by fewer rows than a micro-batch has, and by more."""
    data = whole_numbers(3 * BATCH - 6)
    expected, whole = fitted(1, 2, optimizer, data, epochs=4)
    learned, parts = fitted(4, 2, optimizer, data, epochs=4)
    for name, value in expected.items():
        np.testing.assert_allclose(learned[name], value, rtol=2e-4, atol=1e-5, err_msg=name)
    losses = [[step.metrics["mse"] for step in steps] for steps in (parts, whole)]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert [step.samples for step in parts] == [step.samples for step in whole]


def test_bytes_of_every_micro_batch_are_counted() -> None:
    _, whole = fitted(1, 4, sgd(), whole_numbers(BATCH))
    _, parts = fitted(4, 4, sgd(), whole_numbers(BATCH))
    graph = training_graph(network(), {n: (4, *s[1:]) for n, s in SHAPES.items()}, micro_batches=4)
    planned = lowered(graph, 4).planned_bytes
    assert planned < parts[0].fetched_bytes <= 4 * planned
    assert whole[0].fetched_bytes > 0


@pytest.mark.parametrize("method", sorted(METHODS))
def test_planned_by_every_method(method: str) -> None:
    graph = training_graph(network(), SHAPES, "adam", micro_batches=2)
    sums = [tensor for tensor in graph.tensors if tensor.role is Role.ACCUMULATOR and tensor.alias is None]
    assert [tensor.name for tensor in sums] == [f"total(grad({name}))" for name in start()]
    plan = partition(graph, 4, method)
    plan_memory(lower(graph, plan))


def test_memory_is_that_of_a_micro_batch() -> None:
    """Beside it only the sums are held: as many bytes as parameters."""

    def peak(batch: int, micro_batches: int) -> int:
        shapes = {"data": (batch, 6), "label": (batch, 4)}
        graph = training_graph(network(64), shapes, micro_batches=micro_batches)
        return max(plan_memory(lowered(graph, 2)).arena_bytes)

    parameters = sum(value.nbytes for value in start(64).values())
    assert peak(128, 8) <= peak(128, 1) + parameters
    assert peak(128, 8) < peak(1024, 1) / 4


def test_what_cannot_be_cut_is_refused() -> None:
    with TrainableModule(network(), cpu(), lower=lowered) as module:
        with pytest.raises(
            DataError, match=r"'data' has shape \(16, 6\) does not split into 3 micro-batches"
        ):
            module.fit(whole_numbers(BATCH), accumulate=3)
        with pytest.raises(DataError, match=r"accumulate is 0 .*an integer from 1 on"):
            module.fit(whole_numbers(BATCH), accumulate=0)


def test_parts_of_a_batch() -> None:
    rows = np.arange(12).reshape(6, 2)
    parts = list(Batch({"data": rows}, {"label": rows[:, 0]}, 3).parts(3))
    assert [part.valid for part in parts] == [2, 1, 0]
    np.testing.assert_array_equal(np.concatenate([part.data["data"] for part in parts]), rows)
    np.testing.assert_array_equal(parts[1].label["label"], rows[2:4, 0])


def test_on_the_command_line() -> None:
    summaries = []
    for parts in ("1", "4"):
        asked = ("train", "mlp", "--workers", "2", "--epochs", "1", "--accumulate", parts, "--json")
        summaries.append(json.loads(CliRunner().invoke(main, asked).output.splitlines()[-1]))
    whole, parts = summaries
    assert parts["final_loss"] == pytest.approx(whole["final_loss"], rel=1e-3)
    assert parts["steps"] == whole["steps"]
    assert CliRunner().invoke(main, ("train", "mlp", "--accumulate", "7")).exit_code == 2
