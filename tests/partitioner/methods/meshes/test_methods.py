"""Plans of data parallelism, ZeRO and Megatron: their bytes by formula, and what they compute."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import tofu
from tofu import PlanError, search
from tofu.dataflow.graph import Phase, Role
from tofu.partitioner.layouts.forms import Partial
from tofu.partitioner.methods.meshes import search as of_meshes
from tofu.partitioner.plans.plan import decode_plan
from tofu.partitioner.plans.plan_file import encode_plan
from tofu.programs import plan_memory
from tofu.programs.check_program import check_program

MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"batch": 8},
    "lenet": {"batch": 8},
    "lstm": {"batch": 8, "steps": 3, "hidden": 8},
    "gpt-1-16": {"batch": 8, "steps": 4, "vocabulary": 11, "heads": 2, "dropout": 0.0},
    "wresnet-10-1": {"batch": 8, "image": (3, 16, 16)},
}


def network(name: str, optimizer: str = "sgd") -> Any:
    return tofu.models.get(name, **MODELS[name]).training_graph(optimizer)


def parameters(graph: Any) -> list[Any]:
    return [t for t in graph.tensors if t.role is Role.PARAMETER and t.alias is None]


def size(tensor: Any) -> int:
    return int(prod(tensor.shape) * tensor.itemsize)


def read_in(graph: Any, phase: Phase) -> set[int]:
    return {
        operation.inputs[place]
        for operation in graph.operations
        if operation.phase is phase
        for place, _ in operation.bound.read_places
    }


def perceptron(layers: int = 2, width: int = 32, batch: int = 16) -> Any:
    value = tofu.sym.Variable("data")
    for layer in range(layers):
        value = tofu.sym.FullyConnected(value, num_hidden=width, name=f"fc{layer}", no_bias=True)
        value = tofu.sym.relu(value, name=f"relu{layer}")
    loss = tofu.sym.LinearRegressionOutput(value, tofu.sym.Variable("label"), name="out")
    return tofu.training_graph(loss, {"data": (batch, width), "label": (batch, width)}, "sgd")


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
@pytest.mark.parametrize("name", ["mlp", "lstm"])
def test_data_parallelism_moves_every_parameter_twice(name, workers):
    graph = network(name, "adam")
    plan = tofu.partition(graph, workers, "data-parallel")
    assert plan.cost_bytes == 2 * (workers - 1) * sum(map(size, parameters(graph)))


def test_data_parallelism_splits_the_state_and_nothing_of_the_parameters():
    graph = network("gpt-1-16", "adam")
    plan = tofu.partition(graph, 4, "data-parallel")
    for tensor in graph.tensors:
        form = plan.layouts[tensor.name].form
        if tensor.role is Role.PARAMETER:
            assert form == (None, None)
        elif tensor.role is Role.STATE:
            assert None not in form


@pytest.mark.parametrize("name", ["mlp", "gpt-1-16"])
def test_zero_fetches_a_parameter_once_in_every_phase_that_reads_it(name):
    graph, workers = network(name, "adam"), 4
    plan = tofu.partition(graph, workers, "zero-3")
    moved = 0
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        reads = read_in(graph, phase)
        moved += sum(size(tensor) for tensor in parameters(graph) if tensor.index in reads)
    moved += sum(map(size, parameters(graph)))
    assert plan.cost_bytes == (workers - 1) * moved
    for tensor in parameters(graph):
        assert None not in plan.layouts[tensor.name].form
        for copy in plan.copies.get(tensor.name, ()):
            phases = {o.phase for o in graph.operations if o.name in copy.readers}
            assert copy.form == (None, None)
            assert len(phases) == 1


def test_a_pair_of_layers_needs_an_all_reduce_forward_and_none_backward():
    """The first layer's data needs no gradient. A third layer adds an all-reduce of its gradient."""
    activation = 16 * 32 * 4
    for layers, reductions in ((2, 1), (3, 2), (4, 3)):
        plan = tofu.partition(perceptron(layers), 4, "megatron:tp4", feed="anywhere")
        assert plan.cost_bytes == reductions * 2 * (4 - 1) * activation


def test_a_mesh_reduces_activations_in_groups_and_gradients_between_them():
    graph, activation = perceptron(), 16 * 32 * 4
    plan = tofu.partition(graph, 4, "megatron:dp2-tp2", feed="anywhere")
    gradients = 2 * (2 - 1) * sum(map(size, parameters(graph)))
    assert plan.cost_bytes == gradients + 2 * (2 - 1) * activation


def test_sequence_parallelism_repeats_nothing_that_has_samples():
    graph = network("gpt-1-16")
    repeated, split = (tofu.partition(graph, 2, f"{name}:tp2") for name in ("megatron", "megatron-sp"))
    samples = {o.name for o in graph.operations if "norm.var" in o.name or o.name.endswith("plus")}
    assert any(repeated.strategies[name] == (None,) for name in samples)
    assert not any(split.strategies[name] == (None,) for name in samples)
    one, other = (max(plan_memory(tofu.lower(graph, plan)).arena_bytes) for plan in (split, repeated))
    assert one < other


def test_gradients_of_one_value_are_added_before_they_are_reduced():
    graph = network("gpt-1-16")
    plan = tofu.partition(graph, 2, "data-parallel")
    assert plan.layouts["grad(embed_weight)#1"].form == (Partial(),)
    assert plan.strategies["grad(embed_weight).sum"] == (Partial(),)


def test_the_best_mesh_is_taken_and_named():
    graph = network("mlp")
    plan = tofu.partition(graph, 4, "megatron")
    each = [tofu.partition(graph, 4, f"megatron:{mesh}") for mesh in ("dp4", "dp2-tp2", "tp4")]
    assert plan.cost_bytes == min(each, key=lambda other: other.cost_bytes).cost_bytes
    assert plan.method in [other.method for other in each]


@pytest.mark.parametrize("method", ["zero-3", "megatron:dp2-tp3", "megatron-sp:dp3-tp2", "megatron-sp:tp6"])
@pytest.mark.parametrize("name", MODELS)
def test_the_least_sum_of_the_tables_is_what_the_plan_moves(name, method, monkeypatch):
    sums = []

    def least_cost(domains, tables):
        solved = search.least_cost(domains, tables)
        ticks = 1 + 2 * len(domains) * len(tofu.search.prime_factors(6))
        sums.append(solved.cost // ticks)
        return solved

    monkeypatch.setattr(of_meshes, "least_cost", least_cost)
    assert [tofu.partition(network(name), 6, method).cost_bytes] == sums


FED = (
    (3, "data-parallel", "batch"),
    (4, "zero-3", "anywhere"),
    (4, "megatron:dp2-tp2", "batch"),
    (6, "megatron:dp2-tp3", "anywhere"),
    (4, "megatron-sp:tp4", "anywhere"),
    (6, "megatron-sp:dp3-tp2", "batch"),
)

OTHER_FEED = {"batch": "anywhere", "anywhere": "batch"}


@pytest.mark.parametrize(
    ("workers", "method", "feed"),
    [
        *FED,
        *(
            pytest.param(workers, method, OTHER_FEED[feed], marks=pytest.mark.slow)
            for workers, method, feed in FED
        ),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_plans_hold_and_train_as_one_worker_does(name, workers, method, feed):
    graph = network(name)
    plan = tofu.partition(graph, workers, method, feed=feed)
    assert (plan.method, plan.space.feed) == (method, feed)
    assert decode_plan(encode_plan(plan).encode()) == plan
    plan.verify(graph)
    tofu.verify(graph, plan)
    program = tofu.lower(graph, plan)
    check_program(graph, workers, plan.cost_bytes, program)
    found, fetched = trained(program)
    assert fetched == plan.cost_bytes
    expected, _ = trained(tofu.lower(graph, tofu.partition(graph, 1)))
    for tensor, value in expected.items():
        largest = float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[tensor], value, rtol=1e-3, atol=2e-4 * largest, err_msg=tensor)


def trained(program: Any) -> tuple[dict[str, Any], int]:
    """The persistent tensors after two steps, and the bytes fetched in one."""
    drawn = np.random.default_rng(0)
    with tofu.Executor(program) as executor:
        lasting = [t for t in program.graph.tensors if t.role.persistent and t.alias is None]
        for tensor in lasting:
            value = drawn.uniform(0.1, 0.4, tensor.shape) * drawn.choice([-1, 1], tensor.shape)
            executor.write(tensor.name, np.zeros_like(value) if "label" in tensor.name else value)
        for _ in range(2):
            executor.run()
        return {tensor.name: executor.read(tensor.name) for tensor in lasting}, executor.fetched_bytes


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (
            "megatron:dp3-tp2",
            "'dp3-tp2' has 3 x 2 = 6 workers, but the plan is for 4; choose one of dp4, dp2",
        ),
        ("megatron-sp:pp4", "there is no mesh 'pp4'"),
        ("zero-3:dp4", "'zero-3' takes no mesh, but 'dp4' follows it; choose one of megatron, megatron-sp"),
        ("refine:dp4", "the method 'refine' takes no mesh"),
        ("megatrom:dp4", "there is no search method 'megatrom:dp4'; did you mean 'megatron'"),
    ],
)
def test_other_meshes_are_refused(method, says):
    with pytest.raises(PlanError, match=says):
        tofu.partition(network("mlp"), 4, method)


def test_models_without_the_layers_are_refused():
    with pytest.raises(
        PlanError, match=r"batch over 16 workers .* 'mlp' has 8 samples; choose a larger batch"
    ):
        tofu.partition(network("mlp"), 16, "data-parallel")
    plain = tofu.inference_graph(tofu.sym.relu(tofu.sym.Variable("data"), name="relu"), {"data": (8, 8)})
    for method in ("megatron", "megatron:tp2"):
        with pytest.raises(
            PlanError, match=r"but 'relu' has none of several rows and columns; choose another method$"
        ):
            tofu.partition(plain, 2, method)


@pytest.mark.parametrize("model", ["mlp", "gpt-1-16"])
def test_parameters_that_are_read_in_a_smaller_type_are_split_as_others(model):
    split, moved = {}, {}
    for dtype in ("float32", "float16"):
        graph = tofu.models.get(model, **MODELS[model]).training_graph(dtype=dtype)
        plan = tofu.partition(graph, 2, "megatron:tp2")
        moved[dtype] = plan.cost_bytes
        split[dtype] = {t.name for t in parameters(graph) if plan.layouts[t.name].form != (None,)}
    assert split["float16"] == split["float32"]
    assert moved["float32"] / 2 <= moved["float16"] < moved["float32"]


def test_refusals_name_the_meshes_that_fit():
    narrow = "over 8 workers, but those of .* at most 4 rows or columns; choose another method"
    with pytest.raises(PlanError, match=rf"{narrow}, or one of the meshes dp8, dp4-tp2, dp2-tp4$"):
        tofu.partition(perceptron(width=4), 8, "megatron:tp8")
    with pytest.raises(PlanError, match=r"has 2 samples; .* fewer workers, or one of the meshes dp2-tp4$"):
        tofu.partition(perceptron(width=4, batch=2), 8, "megatron:dp8")
    with pytest.raises(PlanError, match=r"has 2 samples; choose a larger batch or fewer workers$"):
        tofu.partition(perceptron(width=4, batch=2), 16, "megatron")


@pytest.mark.parametrize("method", ["data-parallel", "zero-3", "megatron:dp6-tp1"])
def test_sums_over_fewer_samples_than_workers_are_reduced_where_they_are_made(method):
    weight = tofu.sym.Variable("weight", shape=(4, 5))
    shared = {"weight": weight, "num_hidden": 4, "no_bias": True}
    data = tofu.sym.Variable("data")
    few = tofu.sym.FullyConnected(tofu.sym.slice_axis(data, axis=0, begin=0, end=4), **shared)
    every = tofu.sym.FullyConnected(data, **shared)
    losses = [tofu.sym.MakeLoss(tofu.sym.sum(tofu.sym.square(each))) for each in (every, few)]
    graph = tofu.training_graph(tofu.sym.Group(losses), {"data": (9, 5)}, dtype="float64")
    plan = tofu.partition(graph, 6, method)
    tofu.verify(graph, plan)
    found, fetched = trained(tofu.lower(graph, plan))
    assert fetched == plan.cost_bytes
    expected, _ = trained(tofu.lower(graph, tofu.partition(graph, 1)))
    np.testing.assert_allclose(found["weight"], expected["weight"], rtol=1e-12)


def test_nothing_is_left_to_constraints():
    for asked in ({"constraints": ["pin fc1_weight=0"]}, {"objective": "time", "machine": "pcie-8"}):
        with pytest.raises(
            PlanError, match="the method 'megatron' makes a whole plan, so nothing is searched"
        ):
            tofu.partition(network("mlp"), 8, "megatron", **asked)


def residual(width: int) -> Any:
    """A graph of 60 residual layers, in which sums may stay terms up to a reshape."""
    x = tofu.sym.Variable("data")
    for layer in range(60):
        y = tofu.sym.FullyConnected(x, num_hidden=width, no_bias=True, name=f"up{layer}")
        y = tofu.sym.FullyConnected(tofu.sym.relu(y), num_hidden=width, no_bias=True, name=f"down{layer}")
        x = tofu.sym.Reshape(y, shape=(-1, width), name=f"shaped{layer}") + x
    shapes = {"data": (width, width), "softmax_label": (width,)}
    return tofu.training_graph(tofu.sym.SoftmaxOutput(x, name="softmax"), shapes)


def test_impossible_pairs_stay_dearer_than_any_bytes() -> None:
    small, large = (
        tofu.partition(residual(w), 8, "megatron:dp2-tp4", memory="unlimited") for w in (1 << 12, 1 << 20)
    )
    assert (1 << 16) * 0.99 < large.cost_bytes / small.cost_bytes < (1 << 16) * 1.01
