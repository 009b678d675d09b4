"""An explanation's figures are those of the plans that it talks about."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

import tofu
from tofu.dataflow.graph import Role
from tofu.errors import PlanError
from tofu.partitioner import METHODS, partition
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.explaining.explain import Explainer, explain
from tofu.partitioner.layouts.copies import Copy, versions_read
from tofu.partitioner.layouts.step_split import Layout
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.plan_choices import choices_of, copies_of
from tofu.partitioner.problem.problem import Chosen


def with_choice(graph, plan, explanation, choice):
    """The plan's layouts and strategies with another choice for everything under one decision."""
    layouts, strategies = dict(plan.layouts), dict(plan.strategies)
    for name in explanation.decided_together:
        if explanation.what == "operator":
            strategies[name] = choice
        else:
            layouts[name] = Layout(plan.layouts[name].shape, choice, plan.factors)
    return layouts, strategies


def explanations(graph, plan):
    explainer = Explainer(graph, plan)
    for operation in graph.operations:
        yield explainer.operator(operation.index)
    for tensor in graph.tensors:
        yield explainer.tensor(tensor.index)


def test_one_explainer_says_what_explain_says(graph):
    plan = partition(graph, 4)
    names = [*((o.name, "operator") for o in graph.operations), *((t.name, "tensor") for t in graph.tensors)]
    assert list(explanations(graph, plan)) == [explain(graph, plan, *name) for name in names]


@pytest.mark.parametrize("method", METHODS)
def test_every_alternative_costs_what_a_recount_says(graph, method):
    plan = partition(graph, 4, method=method, keep=False)
    for explanation in explanations(graph, plan):
        assert explanation.chosen.held_bytes == plan.cost_bytes
        assert explanation.bytes == sum(entry.bytes for entry in explanation.moved)
        for entry in explanation.alternatives:
            layouts, strategies = with_choice(graph, plan, explanation, entry.choice)
            assert entry.held_bytes == count_bytes(graph, layouts, strategies, plan.factors)[-1]
            assert entry.following_bytes <= entry.held_bytes


def test_alternatives_to_where_data_is_fed_are_copies_of_it():
    graph = tofu.models.get("lstm", batch=8).training_graph()
    copied = 0
    for workers in (1, 2, 4):
        plan = partition(graph, workers)
        assert bool(plan.copies) == (workers > 1)
        explainer = Explainer(graph, plan)
        for tensor in graph.tensors:
            if tensor.role not in (Role.DATA, Role.PARAMETER):
                continue
            explanation = explainer.tensor(tensor.index)
            assert explanation.fed == (tensor.role is Role.DATA)
            if not explanation.fed:
                continue
            assert explanation.chosen.held_bytes == plan.cost_bytes
            readers = tuple(o.name for o in graph.operations if tensor.index in o.inputs)
            for entry in explanation.alternatives:
                copies = {**plan.copies, tensor.name: (Copy(entry.choice, readers),)}
                versions = versions_read(graph, graph.operations, plan.layouts, copies)
                total = count_bytes(graph, plan.layouts, plan.strategies, plan.factors, versions)[-1]
                assert entry.held_bytes == total
                copied += 1
    assert copied


def test_neighbours_that_choose_again_are_brute_forced(graph):
    """For tensors that few operations touch: all combinations of their operations' strategies."""
    plan = partition(graph, 2, keep=False)
    problem = build_problem(graph)
    checked = 0
    for tensor in graph.tensors:
        explanation = explain(graph, plan, tensor.name, "tensor")
        classes = {
            link.operator for link in problem.links if link.tensor == problem.tensor_class[tensor.index]
        }
        if len(classes) > 3:
            continue
        members = [[o for o in graph.operations if problem.operation_class[o.index] == c] for c in classes]
        options = [
            sorted({plan.strategies[ops[0].name], *((s.variable,) for s in ops[0].bound.strategies)}, key=str)
            for ops in members
        ]
        for entry in explanation.alternatives:
            layouts, strategies = with_choice(graph, plan, explanation, entry.choice)
            costs = []
            for combination in itertools.product(*options):
                for ops, choice in zip(members, combination, strict=True):
                    strategies |= {op.name: choice for op in ops}
                costs.append(count_bytes(graph, layouts, strategies, plan.factors)[-1])
            assert entry.following_bytes == min(costs)
            checked += 1
    assert checked


def test_tied_operations_and_shared_storage_are_one_decision(toy, texts):
    builder = toy()
    weight, gradient = builder.tensor(4, 4, name="weight"), builder.tensor(4, 4)
    rate = builder.tensor(1)
    builder.apply(texts["UPDATE"], weight, gradient, rate, aliases=(weight,))
    for _ in range(2):
        builder.apply(texts["RELU"], gradient, tie="relu")
    graph = builder.graph()
    plan = partition(graph, 2)
    assert explain(graph, plan, "weight").decided_together == ("weight", "t3")
    assert explain(graph, plan, "relu1").decided_together == ("relu1", "relu2")


def test_unknown_names_get_the_nearest(graph):
    plan = partition(graph, 2)
    name = graph.operations[0].name
    with pytest.raises(PlanError, match=f"did you mean '{name}'"):
        explain(graph, plan, name + "x", "operator")
    with pytest.raises(PlanError, match="no tensor"):
        explain(graph, plan, name, "tensor")


def test_a_plan_for_another_graph_is_refused(graph):
    plan = dataclasses.replace(partition(graph, 2), fingerprint="0" * 64)
    with pytest.raises(PlanError, match="fingerprint"):
        explain(graph, plan, graph.tensors[0].name)


def test_many_steps_leave_the_nearest_alternatives(toy, texts):
    builder = toy()
    a, b = builder.tensor(64, 64, name="a"), builder.tensor(64, 64)
    builder.apply(texts["MATMUL"], a, b)
    graph = builder.graph()
    explanation = explain(graph, partition(graph, 64), "matmul0")
    assert not explanation.complete
    differing = {
        sum(x != y for x, y in zip(e.choice, explanation.choice, strict=True))
        for e in explanation.alternatives
    }
    assert 1 in differing


def test_prices_know_the_copies_of_what_many_operations_read(toy, texts):
    builder = toy()
    shared = builder.tensor(16, 16)
    for _ in range(4):
        builder.apply(texts["RELU"], shared)
    rate = builder.tensor(1, role=Role.SCALAR)
    builder.apply(texts["UPDATE"], shared, builder.tensor(16, 16), rate, aliases=(shared,))
    graph = builder.graph()
    pins = [f"pin {op.name}={v},*" for op, v in zip(graph.operations, "iijji", strict=True)]
    found = partition(graph, 4, "exact", constraints=pins, feed="anywhere")
    assert found.copies
    problem = build_problem(graph, space=found.space)
    strategies, dimensions = choices_of(problem, found)
    copied = copies_of(problem, found)
    for explanation in explanations(graph, found):
        assert not explanation.unpriced
        assert explanation.chosen.held_bytes == found.cost_bytes
        choices, classes, names = (
            (strategies, problem.operation_class, [op.name for op in graph.operations])
            if explanation.what == "operator"
            else (dimensions, problem.tensor_class, [tensor.name for tensor in graph.tensors])
        )
        number = classes[names.index(explanation.name)]
        for entry in explanation.alternatives:
            other = [entry.choice if n == number else own for n, own in enumerate(choices)]
            changed = (other, dimensions) if explanation.what == "operator" else (strategies, other)
            made = Chosen(problem, found.factors, *map(tuple, changed), copied)
            assert entry.held_bytes == made.moved_bytes[-1]
