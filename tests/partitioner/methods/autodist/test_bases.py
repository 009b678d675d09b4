"""Synchronisation on top of plans: everything but variables and their updates stays as it is."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Graph, Phase
from tofu.dataflow.rewrites.encoders import Cast, PowerSgd, Rewrite, TopK
from tofu.errors import PlanError
from tofu.partitioner import Plan
from tofu.partitioner.layouts.forms import Form
from tofu.partitioner.methods.autodist.builders import all_reduce, ps, ps_load_balancing
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.partitioner.methods.autodist.variables import find_variables
from tofu.partitioner.plans.compose import compose
from tofu.plans import Copy, Partial, Spread

from ....runtime.test_partitioned_training import single, training
from .test_compiling import STEPS, Array, parameter_shapes, require_bits, synchronisations, trained

METHODS = ("recursive", "refine", "exact", "data-parallel", "zero-3", "megatron:dp2-tp2", "megatron:tp4")
WORKERS = 4


@cache
def base(network: str, method: str) -> Plan:
    return tofu.partition(training(network), WORKERS, method)


def placed(graph: Graph, split: bool = False) -> Plan:
    """A pipeline: one layer on worker 0, or on 0 and 1, the other on 2, or on 2 and 3."""
    first = ("fc1", "relu1")

    def on(name: str) -> Spread:
        workers = (0, 1) if any(each in name for each in first) or name == "data" else (2, 3)
        return Spread(((None, 2),), workers) if split else Spread((), workers[:1])

    operations = {operation.name: on(operation.name) for operation in graph.operations}
    tensors = {tensor.name: on(tensor.name) for tensor in graph.tensors if tensor.alias is None}
    return compose(graph, WORKERS, operations, tensors)


PAIRS = [("perceptron", method) for method in METHODS] + [("convolutional", method) for method in METHODS[:5]]
"""The parameters of the convolutional network are too small for a mesh."""


@pytest.mark.parametrize(("network", "method"), PAIRS)
@pytest.mark.parametrize("build", [all_reduce, ps_load_balancing])
def test_any_plan_trains_the_bits_of_one_worker(network: str, method: str, build: object) -> None:
    graph = training(network)
    assert callable(build)
    plan = compile_strategy(graph, WORKERS, build(graph, WORKERS), base(network, method))
    require_bits(trained(graph, plan, STEPS[network]), single(network, STEPS[network]))
    kept = [each.name for each in graph.operations if each.phase is not Phase.UPDATE]
    assert {name: plan.strategies[name] for name in kept} == {
        name: base(network, method).strategies[name] for name in kept
    }


@settings(max_examples=15)
@given(st.data(), st.sampled_from(METHODS[:5]))
def test_any_mixture_on_any_plan_trains_the_bits_of_one_worker(data: st.DataObject, method: str) -> None:
    graph = training("perceptron")
    chosen = {
        name: data.draw(synchronisations(shape, WORKERS), name)
        for name, shape in parameter_shapes(graph).items()
    }
    plan = compile_strategy(graph, WORKERS, SyncStrategy(chosen), base("perceptron", method))
    require_bits(trained(graph, plan, 1), single("perceptron", 1))


def test_an_all_reduce_is_held_by_those_who_read_it() -> None:
    """Two groups of samples, each with halves of the features: each half is with two workers."""
    graph = tofu.models.get("mlp", batch=16).training_graph()
    mesh = tofu.partition(graph, 4, "megatron:dp2-tp2")
    plan = compile_strategy(graph, 4, all_reduce(graph, 4), mesh).of(graph)
    variables = {each.tensor.name: each for each in find_variables(graph)}
    assert "fc1_weight" in variables
    home = plan.versions["fc1_weight"][0].holdings
    assert len(home) == 4
    regions = {holding.worker: holding.region for holding in home}
    assert len(set(regions.values())) == 2
    read = {
        (task.worker, task.box[1]) for task in plan.tasks["fc1.product"]
    }  # the features of a task, whose worker holds the same rows
    assert {(worker, region[0]) for worker, region in regions.items()} == read
    updating = {task.worker for task in plan.tasks["update(fc1_weight)"]}
    assert updating == {0, 1, 2, 3}


@pytest.mark.parametrize("build", [all_reduce, ps])
def test_a_variable_in_one_place_stays(build: object) -> None:
    graph = training("perceptron")
    assert callable(build)
    pipeline = placed(graph)
    plan = compile_strategy(graph, WORKERS, build(graph, WORKERS), pipeline)
    assert (plan.layouts, plan.strategies) == (pipeline.layouts, pipeline.strategies)
    assert plan.cost_bytes == pipeline.cost_bytes


def test_variables_of_replicated_stages_are_synchronised_within_them() -> None:
    graph = training("perceptron")
    plan = compile_strategy(graph, WORKERS, all_reduce(graph, WORKERS), placed(graph, split=True)).of(graph)
    require_bits(trained(graph, plan, 2), single("perceptron", 2))
    assert {each.worker for each in plan.versions["fc1_weight"][0].holdings} == {0, 1}
    assert {each.worker for each in plan.versions["fc2_weight"][0].holdings} == {2, 3}
    served = compile_strategy(graph, WORKERS, ps(graph, WORKERS, proxy=True), placed(graph, split=True)).of(
        graph
    )
    require_bits(trained(graph, served, 2), single("perceptron", 2))
    (copy,) = served.versions["fc2_weight"][1:]
    assert {each.worker for each in copy.holdings} == {0, 2, 3}


def test_copies_and_the_order_of_a_base_stay() -> None:
    graph = training("perceptron")
    names = [each.name for each in graph.operations]
    stages = placed(graph)
    backward = next(n for n in names if n.startswith("fc2.grad") and n.endswith(".weight"))
    copies = {"relu1_output": [Copy(Spread((), (2,)), ("fc2.product", backward))]}
    replicated = {n: Spread(((None, 2),), (0, 2)) if "fc1" in n else f for n, f in stages.strategies.items()}
    homes = {n: layout.form for n, layout in stages.layouts.items() if _owned(graph, n)}
    pipeline = compose(graph, WORKERS, replicated, homes, copies=copies, order=names)
    plan = compile_strategy(graph, WORKERS, all_reduce(graph, WORKERS), pipeline)
    assert (plan.written_order, plan.copies) == (pipeline.written_order, pipeline.copies)
    require_bits(trained(graph, plan, 1), single("perceptron", 1))


def _owned(graph: Graph, name: str) -> bool:
    return next(t.alias is None for t in graph.tensors if t.name == name)


def delayed(strategy: SyncStrategy, delay: int) -> SyncStrategy:
    return SyncStrategy(
        {name: replace(how, rewrite=Rewrite(delay=delay)) for name, how in strategy.variables.items()},
        strategy.replicas,
    )


def late(graph: Graph, workers: int, strategy: SyncStrategy, started: Plan | None) -> dict[str, Array]:
    """Train a plan with delays for four iterations, and return all that it learned."""
    plan = compile_strategy(graph, workers, strategy, started)
    assert plan.graph is not None
    return trained(plan.graph, plan, 4)


@cache
def late_on_one_worker(delay: int) -> dict[str, Array]:
    graph = training("perceptron")
    return late(graph, 1, delayed(all_reduce(graph, 1), delay), None)


@pytest.mark.parametrize("method", ["recursive", "exact", "megatron:dp2-tp2", "zero-3"])
@pytest.mark.parametrize("build", [all_reduce, ps_load_balancing])
def test_gradients_are_delayed_on_any_plan(method: str, build: object) -> None:
    graph = training("perceptron")
    assert callable(build)
    strategy = delayed(build(graph, WORKERS), 2)
    found = late(graph, WORKERS, strategy, base("perceptron", method))
    require_bits(found, late_on_one_worker(2))
    now = single("perceptron", 4)
    assert any((value != now[name]).any() for name, value in found.items() if name in now)


def test_a_variable_in_one_place_is_delayed_there() -> None:
    """Gradients wait where the variable is, so nothing more moves. Workers that only serve are allowed."""
    graph = training("perceptron")
    pipeline = placed(graph)
    strategy = delayed(ps(graph, WORKERS), 1)
    plan = compile_strategy(graph, WORKERS, strategy, pipeline)
    assert plan.cost_bytes == pipeline.cost_bytes
    assert {each.worker for each in plan.versions["delayed_1(fc2_weight)"][0].holdings} == {2}
    require_bits(late(graph, WORKERS, strategy, pipeline), late_on_one_worker(1))
    ordered = replace(pipeline, written_order=tuple(pipeline.strategies))
    require_bits(late(graph, WORKERS, strategy, ordered), late_on_one_worker(1))
    apart = SyncStrategy(delayed(ps(graph, 3), 1).variables, ((1, 2),))
    require_bits(late(graph, 3, apart, None), late_on_one_worker(1))


REWRITES = (
    Synchronisation((AllReduce(),), rewrite=Rewrite(Cast("bfloat16", True), 1)),
    Synchronisation((AllReduce(),), rewrite=Rewrite(TopK(3))),
    Synchronisation((Server(2),), rewrite=Rewrite(PowerSgd(2))),
    Synchronisation((Server(2, by_arrival=True),)),
    Synchronisation(
        (Server(2), AllReduce()),
        Partition(0, (1,)),
        part_rewrites=(Rewrite(Cast("float16")), Rewrite(delay=1)),
    ),
)


@pytest.mark.parametrize("how", REWRITES)
@pytest.mark.parametrize("method", ["data-parallel", "zero-3"])
def test_encoders_go_with_bases_that_split_samples(how: Synchronisation, method: str) -> None:
    """The plan moves for the encoded variable what it moves without a base."""
    graph = training("perceptron")
    variables = {**all_reduce(graph, WORKERS).variables, "fc1_weight": how}
    started = base("perceptron", method)
    plan = compile_strategy(graph, WORKERS, SyncStrategy(variables), started)
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    alone = compile_strategy(graph, WORKERS, SyncStrategy(variables))
    assert plan.cost_bytes == alone.cost_bytes
    ordered = replace(started, written_order=tuple(started.strategies))
    in_order = compile_strategy(graph, WORKERS, SyncStrategy(variables), ordered)
    assert in_order.graph is not None
    tofu.verify(in_order.graph, in_order)
    assert in_order.cost_bytes == alone.cost_bytes


@pytest.mark.parametrize(("network", "method"), PAIRS)
def test_encoders_need_a_gradient_of_each_worker(network: str, method: str) -> None:
    """A variable whose gradient the base makes otherwise is refused, with what the base does instead."""
    graph = training(network)
    plain = all_reduce(graph, WORKERS).variables
    started = base(network, method)
    splits_samples = method in ("data-parallel", "zero-3")
    for name in plain:
        how = Synchronisation((AllReduce(),), rewrite=Rewrite(Cast("bfloat16"), 1))
        strategy = SyncStrategy({**plain, name: how})
        refused = ""
        try:
            plan = compile_strategy(graph, WORKERS, strategy, started)
        except PlanError as error:
            refused = str(error)
        if refused:
            assert not splits_samples
            assert re.search(f"variable '{name}' has an encoder, .*, but (the base|'.*' does not)", refused)
        else:
            assert method != "megatron:tp4"
            assert plan.graph is not None
            tofu.verify(plan.graph, plan)


def test_encoders_are_not_for_whole_operations_on_one_worker() -> None:
    graph = training("perceptron")
    encoded = Synchronisation((AllReduce(),), rewrite=Rewrite(Cast("bfloat16"), 1))
    strategy = SyncStrategy(dict.fromkeys(parameter_shapes(graph), encoded))
    with pytest.raises(PlanError, match=r"'fc1_weight' .* on worker 0 alone, so no gradient is exchanged"):
        compile_strategy(graph, WORKERS, replace(strategy, replicas=()), placed(graph))
    with pytest.raises(PlanError, match="all 4 workers must be replicas, but 2 are"):
        compile_strategy(graph, WORKERS, replace(strategy, replicas=((0, 2),)))


def test_factors_that_are_not_primes_stay() -> None:
    """A plan of any factors is a base: forms in steps go on meaning what they meant."""
    graph = training("perceptron")
    for workers in (3, 6):
        started = tofu.partition(graph, workers, "recursive")
        plan = compile_strategy(graph, workers, all_reduce(graph, workers), started)
        assert plan.factors == started.factors
        require_bits(trained(graph, plan, 1), single("perceptron", 1))


def test_bases_that_do_not_fit_are_refused() -> None:
    graph = training("perceptron")
    strategy = all_reduce(graph, 2)
    with pytest.raises(PlanError, match="the base is for 4 workers, not 2"):
        compile_strategy(graph, 2, strategy, base("perceptron", "recursive"))
    with pytest.raises(PlanError, match="the plan does not contain tensor"):
        compile_strategy(graph, WORKERS, all_reduce(graph, WORKERS), base("convolutional", "recursive"))
    with pytest.raises(PlanError, match=r"the base is 'plan\.json'; give a plan"):
        compile_strategy(graph, 2, strategy, "plan.json")  # type: ignore[arg-type]
    named = SyncStrategy(strategy.variables, base="refine")
    with pytest.raises(PlanError, match="the strategy has the base 'refine'"):
        compile_strategy(graph, 2, named)


def test_replicas_are_all_workers_that_a_base_runs_on() -> None:
    graph = training("perceptron")
    pipeline = placed(graph)
    strategy = SyncStrategy(all_reduce(graph, WORKERS).variables, ((0, 2),))
    assert compile_strategy(graph, WORKERS, strategy, pipeline).cost_bytes == pipeline.cost_bytes
    with pytest.raises(
        PlanError, match=r"the base runs operation '.*' on worker 1, but the replicas are \[0, 2"
    ):
        compile_strategy(graph, WORKERS, strategy, base("perceptron", "recursive"))


def test_a_group_that_reads_nothing_cannot_sum_first() -> None:
    graph = training("perceptron")
    how = Synchronisation((AllReduce(two_level=True),))
    strategy = SyncStrategy(dict.fromkeys(parameter_shapes(graph), how), ((0, 1), (2, 3)))
    with pytest.raises(PlanError, match="'fc1_weight' is summed in two levels, but group 1 of the replicas"):
        compile_strategy(graph, WORKERS, strategy, placed(graph, split=True))
    via = Synchronisation((Server(0, via=(0, 2)),))
    served = SyncStrategy(dict.fromkeys(parameter_shapes(graph), via), ((0, 1), (2, 3)))
    with pytest.raises(PlanError, match="its gradient is not made as partial results"):
        compile_strategy(graph, WORKERS, served, placed(graph, split=True))


def test_factors_that_the_base_leaves_in_terms_are_refused() -> None:
    net = tofu.sym.broadcast_add(
        tofu.sym.Variable("data"), tofu.sym.Variable("offset", shape=(1, 6)), name="x"
    )
    net = tofu.sym.FullyConnected(net, num_hidden=8, no_bias=True, name="fc")
    net = tofu.sym.LinearRegressionOutput(net, tofu.sym.Variable("label"), name="out")
    graph = tofu.training_graph(net, {"data": (8, 6), "label": (8, 8)})
    operations: dict[str, Form] = {each.name: (None, None) for each in graph.operations}
    operations["fc.grad.FullyConnected.data"] = ("h", "h")
    operations["x.grad.broadcast_add.rhs"] = (Partial(), Partial())
    lasting = (tensor.name for tensor in graph.tensors if tensor.role.persistent and tensor.alias is None)
    tensors: dict[str, Form] = dict.fromkeys((*lasting, "grad(offset)"), (None, None))
    tensors["grad(x_output)"] = (Partial(), Partial())
    plain = all_reduce(graph, WORKERS).variables
    strategy = SyncStrategy({name: replace(how, factors=True) for name, how in plain.items()})
    says = re.escape(
        "'offset' compute its gradient from whole tensors, but the base leaves terms of 'grad(x_output)'"
    )
    with pytest.raises(PlanError, match=says):
        compile_strategy(graph, WORKERS, strategy, compose(graph, WORKERS, operations, tensors))
