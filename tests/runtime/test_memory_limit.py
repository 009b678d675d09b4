"""A limit on what a worker may hold: both values, what takes the most, and nothing has run."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tofu
from tofu.cli import main
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol import Symbol
from tofu.errors import ExecutionError, MachineError, PlanError
from tofu.runtime import numpy_engine
from tofu.runtime.executor import Executor
from tofu.runtime.footprint import footprint
from tofu.runtime.memory_limit import MemoryLimit

BATCH = 32


def network() -> Symbol:
    with NameScope():
        net = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=64, name="fc1")
        net = tofu.sym.Activation(net, act_type="tanh", name="tanh1")
        net = tofu.sym.FullyConnected(net, num_hidden=10, name="fc2")
        return tofu.sym.SoftmaxOutput(net, name="softmax")


def batches(batch: int = BATCH) -> tofu.ArrayIterator:
    data = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32)
    return tofu.ArrayIterator(data, data[:, :10].argmax(axis=1), batch)


def needed() -> tuple[int, int]:
    """Bytes of the fullest worker in training, with and without the workspace of its kernels."""
    with tofu.Module(network(), [tofu.cpu(0), tofu.cpu(1)]) as module:
        executor = module.bind(batches().shapes)
        return executor.peak_bytes_per_worker, max(executor.memory.arena_bytes)


def figures(message: str) -> list[int]:
    return [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*\d|\d", message)]


def test_training_fits_its_peak_and_nothing_less() -> None:
    with_kernels, arena = needed()
    assert arena < with_kernels
    two = [tofu.cpu(0), tofu.cpu(1)]
    with tofu.Module(network(), two, memory=with_kernels) as module:
        module.fit(batches())
        [plan] = module.plans.values()
    for limit in (with_kernels - 1, arena, arena - 1):
        before = set(threading.enumerate())
        with tofu.Module(network(), two, memory=limit, plan=plan) as module:
            with pytest.raises(
                ExecutionError, match=r"worker \d needs .* may hold .* use more workers"
            ) as caught:
                module.fit(batches())
            assert module.parameters() == {}
        assert set(threading.enumerate()) <= before
        message = str(caught.value)
        assert (with_kernels if limit >= arena else arena) in figures(message)
        assert limit in figures(message)
        assert "fc1_weight" in message
        assert ("without the workspace of its kernels" in message) == (limit < arena)


def test_evaluation_beside_training_counts() -> None:
    with_kernels, _ = needed()
    with tofu.Module(network(), [tofu.cpu(0), tofu.cpu(1)], memory=with_kernels) as module:
        module.fit(batches())
        with pytest.raises(ExecutionError, match="that it holds already"):
            module.score(batches())
        learned = module.parameters()
        module.fit(batches())
        assert (module.parameters()["fc1_weight"] != learned["fc1_weight"]).any()


def test_a_plan_is_refused() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    plan = tofu.partition(graph, 2, memory="1GB")
    assert plan.cost_bytes == tofu.partition(graph, 2).cost_bytes
    with pytest.raises(PlanError, match=r"may hold 1,000; the largest tensors"):
        tofu.partition(graph, 2, memory="1kB")
    with pytest.raises(MachineError, match="write it with its unit, such as 12 GB; units are B, kB, MB, GB"):
        tofu.partition(graph, 2, memory="12")
    with pytest.raises(MachineError, match="memory is -5; it must be positive"):
        tofu.Module(network(), memory=-5)


def test_an_executor_is_refused_before_it_has_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    programs = tofu.lower(graph, tofu.partition(graph, 2))
    monkeypatch.setattr(numpy_engine, "allocate", None)
    with pytest.raises(ExecutionError, match="may hold 1,000"):
        Executor(programs, memory_limit=MemoryLimit(1000))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "mlp", "--workers", "2", "--memory", "100kB"),
        ("plan", "mlp", "--workers", "2", "--memory", "100kB", "--json"),
        ("train", "mlp", "--workers", "2", "--epochs", "1", "--memory", "100kB"),
    ],
)
def test_commands_refuse(command: tuple[str, ...], tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    result = run(*command, *(("--save", str(saved)) if command[0] == "plan" else ()))
    assert result.exit_code == 2
    assert "each worker may hold 100,000" in result.output
    assert not saved.exists()
    enough = [word.replace("100kB", "1GB") for word in command]
    assert run(*enough).exit_code == 0


def test_a_module_looks_for_a_plan_that_fits() -> None:
    """Replicated tensors take more than the limit, so they are split. The workspace of kernels counts."""
    model = tofu.models.get("lenet", batch=16)
    graph = model.training_graph()
    free, split = (tofu.partition(graph, 4, memory="unlimited", replicate=each) for each in (True, False))
    most, limit = (footprint(tofu.lower(graph, plan)).peak_bytes for plan in (free, split))
    fitting = tofu.partition(graph, 4, memory=limit)
    assert footprint(tofu.lower(graph, fitting)).peak_bytes <= limit < most
    shapes = {**model.data, **model.labels}
    with tofu.Module(model.symbol, [tofu.cpu(worker) for worker in range(4)], memory=limit) as module:
        assert module.bind(shapes).peak_bytes_per_worker <= limit
        (found,) = module.plans.values()
        assert found.cost_bytes == fitting.cost_bytes > free.cost_bytes
