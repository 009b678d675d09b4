"""`Module` over several processes: the metrics, weights and checkpoints of one, and resuming in others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.distributed.processes import Processes

from .forked import results

EPOCHS = 2


def net() -> tofu.dataflow.symbol.Symbol:
    found = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=24, name="fc1")
    found = tofu.sym.Activation(found, act_type="relu", name="relu")
    found = tofu.sym.FullyConnected(found, num_hidden=12, name="fc2")
    return tofu.sym.SoftmaxOutput(found, name="softmax")


def batches(batch_size: int = 12) -> tofu.ArrayIterator:
    """Return data whose last batch is not full."""
    data = np.random.default_rng(3).standard_normal((40, 12)).astype(np.float32)
    return tofu.ArrayIterator(data, data.argmax(axis=1), batch_size=batch_size, shuffle=True, seed=5)


def fitted(context: Any, folder: Path | None = None, **options: Any) -> dict[str, Any]:
    """Return what a run reports and learns."""
    steps: list[Any] = []
    settings = {
        "num_epoch": EPOCHS,
        "optimizer": "adam",
        "learning_rate": 0.05,
        "metric": ["accuracy", "mse"],
    }
    with tofu.Module(net(), context, seed=7) as module:
        settings["metric"] = ["accuracy", "cross-entropy"]
        history = module.fit(
            batches(),
            batches(),
            checkpoint=folder,
            on_step=lambda step: steps.append((dict(step.metrics), step.fetched_bytes)),
            **{**settings, **options},
        )
        return {
            "steps": steps,
            "history": [(dict(epoch.training), dict(epoch.evaluation)) for epoch in history],
            "weights": {name: value.tobytes() for name, value in module.parameters().items()},
            "predictions": module.predict(batches()).tobytes(),
        }


def alone(workers: int, folder: Path | None = None, **options: Any) -> dict[str, Any]:
    return fitted([tofu.cpu(worker) for worker in range(workers)], folder, **options)


def kept(folder: Path) -> tuple[dict[str, bytes], Any]:
    """Return the contents of the newest checkpoint, without the durations of epochs."""
    found = CheckpointFolder(folder).load()
    for epoch in found.state["standing"]["history"]:
        del epoch["seconds"]
    del found.state["standing"]["seconds"]
    return {name: array.tobytes() for name, array in found.tensors.items()}, found.state


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("options", [{}, {"accumulate": 3}], ids=["whole", "accumulated"])
def test_several_learn_what_one_learns(count: int, options: dict[str, Any], tmp_path: Path) -> None:
    expected = alone(count, tmp_path / "alone", **options)

    def work(processes: Processes) -> dict[str, Any]:
        return fitted(processes, tmp_path / "several", **options)

    for found in results(count, work):
        assert found == expected
    assert kept(tmp_path / "several") == kept(tmp_path / "alone")


def test_runs_go_on_in_more_or_fewer_processes(tmp_path: Path) -> None:
    """Plans of three and of four workers have other sums, so each run is compared with one process."""
    many, one = tmp_path / "many", tmp_path / "one"
    for folder in (many, one):
        results(4, lambda processes, at=folder: fitted(processes, at, num_epoch=1))  # type: ignore[misc]
    expected = alone(3, one, resume=True)

    def work(processes: Processes) -> dict[str, Any]:
        return fitted(processes, many, resume=True)

    for found in results(3, work):
        assert found == expected
    assert kept(many) == kept(one)
    later = alone(1, one, resume=True, num_epoch=4)
    assert results(1, lambda processes: fitted(processes, many, resume=True, num_epoch=4)) == [later]


def test_a_folder_that_cannot_be_used_is_an_error_everywhere(tmp_path: Path) -> None:
    alone(2, tmp_path)

    def work(processes: Processes) -> str:
        with pytest.raises(tofu.DataError, match="already holds checkpoints"):
            fitted(processes, tmp_path)
        with pytest.raises(tofu.DataError, match="does not exist"):
            fitted(processes, tmp_path / "none", resume=True)
        return "done"

    assert results(2, work) == ["done"] * 2


def test_an_error_in_the_block_of_one_module_is_told_to_the_others() -> None:
    """The weights are not gathered, because the other process is within an iteration."""

    def work(processes: Processes) -> None:
        def on_step(done: tofu.Progress) -> None:
            if processes.number and done.step == 3:
                raise KeyError("lr")

        module = tofu.Module(net(), processes)
        try:
            with module:
                module.fit(batches(), on_step=on_step)
        finally:
            with pytest.raises(tofu.ExecutionError, match="are undefined"):
                module.parameters()

    told = results(2, work)
    assert told[1] == "KeyError: 'lr'"
    assert "process 1 (worker 1 on " in told[0]
    assert "ended with KeyError: 'lr'" in told[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"learning_rate": [0.1, 0.2]}, r"the learning rate: \[0.1, .* and \[0.2, "),
        (
            {"learning_rate": [0.1, tofu.optimizer.CosineRate(0.1, 8)]},
            r"the learning rate: .*0.1, .* and .*0.0",
        ),
        ({"metric": ["accuracy", "cross-entropy"]}, 'metrics: .*"accuracy".* and .*"cross-entropy"'),
        ({"optimizer": [tofu.optimizer.sgd(0.9), tofu.optimizer.sgd(0.5)]}, "momentum: 0.9 and 0.5"),
        ({"eval_data": [None, batches()]}, "eval_data: null and not stated"),
        ({"num_epoch": [1, 2]}, "num_epoch: 1 and 2"),
        ({"accumulate": [1, 2]}, "accumulate: 1 and 2"),
        ({"checkpoint": [None, "kept"]}, "checkpoint: false and true"),
    ],
)
def test_different_settings_are_named(options: dict[str, list[Any]], said: str) -> None:
    def work(processes: Processes) -> str:
        own = {name: values[processes.number] for name, values in options.items()}
        with tofu.Module(net(), processes) as module, pytest.raises(tofu.ExecutionError, match=said):
            module.fit(batches(), **own)
        return "done"

    assert results(2, work) == ["done"] * 2


def test_different_data_are_refused() -> None:
    def work(processes: Processes) -> str:
        said = "data.batch_size: 6 and 12"
        with tofu.Module(net(), processes) as module, pytest.raises(tofu.ExecutionError, match=said):
            module.fit(batches(6 + 6 * processes.number))
        with (
            tofu.Module(net(), processes) as module,
            pytest.raises(tofu.ExecutionError, match=r"the shapes of a batch: .*6, 12.* and .*12, 12"),
        ):
            module.bind(batches(6 + 6 * processes.number).shapes)
        return "done"

    assert results(2, work) == ["done"] * 2


def test_a_plan_that_one_is_given_is_named() -> None:
    shapes = {"data": (12, 12), "softmax_label": (12,)}
    plan = tofu.partition(tofu.training_graph(net(), shapes, "sgd"), 2)

    def work(processes: Processes) -> str:
        said = "differ in the plan: to be searched and given"
        own = plan if processes.number else None
        with (
            tofu.Module(net(), processes, plan=own) as module,
            pytest.raises(tofu.ExecutionError, match=said),
        ):
            module.fit(batches())
        return "done"

    assert results(2, work) == ["done"] * 2


@pytest.mark.parametrize("differs", ["initializer", "parameters"])
def test_different_start_values_are_refused(differs: str) -> None:
    def work(processes: Processes) -> str:
        number = processes.number
        values = {"initializer": tofu.runtime.initializer.Uniform(0.1 + number)}
        if differs == "parameters":
            values = {"parameters": {"fc1_bias": np.full(24, number, np.float32)}}
        said = "differ in the values of parameters"
        with (
            tofu.Module(net(), processes, **values) as module,
            pytest.raises(tofu.ExecutionError, match=said),
        ):
            module.fit(batches())
        return "done"

    assert results(2, work) == ["done"] * 2


def test_two_workers_of_each_process() -> None:
    expected = alone(4)
    for found in results(2, fitted, workers_each=2):
        assert found == expected


def test_facts_may_be_numbers_of_numpy() -> None:
    def work(processes: Processes) -> str:
        processes.agree({"the seed": np.int64(3), "shapes": {"data": (np.int64(2), 3)}})
        with pytest.raises(tofu.ExecutionError, match="differ in the seed: 0 and 1"):
            processes.agree({"the seed": np.int64(processes.number)})
        return "done"

    assert results(2, work) == ["done"] * 2
