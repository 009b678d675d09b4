"""Placements of other systems, scored: bytes by formulas, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

import tofu
from tofu.partitioner import peak_bytes
from tofu.plans import Replicate, Shard

SAMPLES = {"data": {"dp": Shard(0)}, "softmax_label": {"dp": Shard(0)}}
WEIGHTS = [784 * 128, 128 * 64, 64 * 10]
PARAMETERS = sum(WEIGHTS) + 128 + 64 + 10


@pytest.fixture(scope="module")
def graph() -> Any:
    return tofu.models.get("mlp", batch=64).training_graph()


def test_data_parallelism_reduces_all_gradients(graph: Any) -> None:
    found = tofu.score(graph, SAMPLES, {"dp": 8})
    tofu.verify(graph, found.plan)
    assert found.cost_bytes == 2 * 7 * PARAMETERS * 4
    assert found.cost_bytes == sum(each.bytes for each in found.contributions)
    assert found.peak_bytes == peak_bytes(graph, found.plan)
    assert found.peak_bytes > 2 * PARAMETERS * 4, "parameters and momentum are whole on every worker"
    assert found.changed == ()
    assert found.step_seconds is None


def test_sharded_parameters_are_zero_3(graph: Any) -> None:
    sharded = {"*_weight": {"dp": Shard(0)}, "*_bias": [Shard(0)]}
    found = tofu.score(graph, {**SAMPLES, **sharded}, {"dp": 8}, machine="dgx-1-v100")
    zero = tofu.partition(graph, 8, "zero-3", memory="unlimited")
    assert found.cost_bytes == zero.cost_bytes
    assert found.peak_bytes == peak_bytes(graph, zero)
    assert found.plan.layouts["mom(fc1_weight)"].form == (0, 0, 0)
    assert found.step_seconds == pytest.approx(
        tofu.simulate(tofu.lower(graph, found.plan), "dgx-1-v100").seconds
    )
    assert [each.subject for each in found.changed] == ["tensor 'fc3_weight'", "tensor 'fc3_bias'"]
    assert "ms for an iteration" in str(found)
    assert "tensor 'fc3_weight': uneven" in str(found)


def test_columns_and_rows_are_those_of_megatron(graph: Any) -> None:
    layers = {"fc1": {"tp": "column"}, "fc2": {"tp": "row"}}
    found = tofu.score(graph, {**SAMPLES, **layers}, {"dp": 4, "tp": 2})
    forms = {name: found.plan.layouts[name].form for name in graph_parameters(graph)}
    assert forms == {
        "fc1_weight": (None, None, 0),
        "fc1_bias": (None, None, 0),
        "fc2_weight": (None, None, 1),
        "fc2_bias": (None, None, None),
        "fc3_weight": (None, None, None),
        "fc3_bias": (None, None, None),
    }
    split = [784 * 128 + 128, 128 * 64]
    of_gradients = 2 * 3 * (sum(split) + 2 * (64 + 64 * 10 + 10)) * 4
    of_sums = 2 * 4 * (64 // 4) * 64 * 4
    assert of_gradients < found.cost_bytes < 1.1 * (of_gradients + of_sums)


def graph_parameters(graph: Any) -> list[str]:
    return [t.name for t in graph.tensors if t.role == "parameter" and t.alias is None]


def test_an_axis_of_another_prime_is_a_step_of_its_own(graph: Any) -> None:
    found = tofu.score(graph, {**SAMPLES, "fc1": {"tp": "column"}}, {"dp": 2, "tp": 3})
    assert found.plan.factors == (3, 2)
    assert found.plan.layouts["data"].form == (None, 0)
    assert found.plan.layouts["fc1_weight"].form == (0, None)
    assert [each.reason.kind for each in found.changed] == ["uneven", "uneven", "workers"]


@pytest.mark.parametrize(
    ("placements", "message"),
    [
        ({"fc9_weight": [Shard(0)]}, "'fc9_weight' matches no parameter or input; did you mean 'fc3_weight'"),
        ({"fc9": {"dp": "row"}}, "'fc9' matches no parameter"),
        ({"fc1_weight": [Shard(2)]}, r"cuts dimension 2 of 'fc1_weight', whose shape is \(128, 784\)"),
        ({"fc1_weight": [Shard(0), Replicate()]}, "give one for each axis of dp=8"),
        ({"fc1_weight": "S(0)"}, "give one for each axis of dp=8"),
        ({"fc1_weight": {"tp": Shard(0)}}, "name the axis 'tp'"),
        ({"fc1_weight": [tofu.plans.Unreduced()]}, r"has Shard\(dim\), Replicate"),
        ({"fc1_weight": [0]}, r"has Shard\(dim\), Replicate"),
        ([], "placements are a list; give a dict"),
    ],
)
def test_placements_that_cannot_be_are_refused(graph: Any, placements: Any, message: str) -> None:
    with pytest.raises(tofu.PlanError, match=message):
        tofu.score(graph, placements, {"dp": 8})


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(tofu.GraphError, match="the model is a str; give a graph, a symbol, or a module"):
        tofu.score("mlp", {}, {"dp": 8})


def test_a_symbol_takes_the_shapes_of_its_inputs() -> None:
    net = tofu.sym.FullyConnected(tofu.sym.Variable("x"), num_hidden=16, name="fc")
    net = tofu.sym.SoftmaxOutput(net, name="softmax")
    placements = {"x": [Shard(0)], "softmax_label": [Shard(0)]}
    found = tofu.score(net, placements, {"dp": 4}, shapes={"x": (32, 64), "softmax_label": (32,)})
    assert found.cost_bytes == 2 * 3 * (16 * 64 + 16) * 4


@pytest.mark.torch
def test_a_module_takes_the_placements_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from torch.distributed import tensor

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 8)

        def forward(self, x: Any, y: Any) -> Any:
            return torch.nn.functional.mse_loss(self.down(torch.relu(self.up(x))), y)

    placements = {
        "x": [tensor.Shard(0), tensor.Replicate()],
        "y": [tensor.Shard(-2), tensor.Replicate()],
        "up.weight": [tensor.Replicate(), tensor.Shard(0)],
        "up.bias": [tensor.Replicate(), tensor.Shard(-1)],
        "down": {"tp": "row"},
    }
    inputs = torch.zeros(32, 16), torch.zeros(32, 8)
    found = tofu.score(Network(), placements, {"dp": 2, "tp": 2}, example_inputs=inputs)
    forms = {name: found.plan.layouts[name].form for name in ("up.weight", "down.weight", "down.bias")}
    assert forms == {"up.weight": (None, 0), "down.weight": (None, 1), "down.bias": (None, None)}
    by_name = {"up": {"tp": "column"}, "down": {"tp": "row"}, "[xy]": {"dp": Shard(0)}}
    assert tofu.score(Network(), by_name, {"dp": 2, "tp": 2}, example_inputs=inputs).plan == found.plan
