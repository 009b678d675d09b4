"""Ties between layouts go to the one that holds less, at no byte."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tofu
from tofu.analyzer.indices.region import volume
from tofu.dataflow.graph import Role
from tofu.partitioner import partition
from tofu.partitioner.methods.recursive import recursive
from tofu.partitioner.plans.space import Space
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.lightest import lightest
from tofu.partitioner.problem.problem import Chosen
from tofu.partitioner.problem.sequences import all_sequences


def held(shape, dimensions, factors):
    layout = tofu.plans.Layout(shape, dimensions, factors)
    return int(volume(layout.regions).sum())


def cost(problem, plan):
    return problem.objective.total(Chosen(problem, plan.factors, plan.strategies, plan.dimensions))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_tensor_can_hold_less_at_the_same_cost(data, draw_graph):
    problem = build_problem(data.draw(draw_graph(max_operations=3)), space=Space(True))
    plan = lightest(problem, recursive(problem, data.draw(st.sampled_from([4, 6]))))
    assert cost(problem, plan) == plan.cost.value
    for number, shape in enumerate(problem.shapes):
        own = held(shape, plan.dimensions[number], plan.factors)
        for other in all_sequences(dict(enumerate(shape)), plan.factors, True):
            dimensions = (*plan.dimensions[:number], other, *plan.dimensions[number + 1 :])
            changed = Chosen(problem, plan.factors, plan.strategies, dimensions)
            if problem.objective.total(changed) == plan.cost.value:
                assert held(shape, other, plan.factors) >= own


def test_state_of_optimizers_is_split():
    graph = tofu.models.get("mlp").training_graph("adam")
    for method in ("recursive", "refine", "exact"):
        plan = partition(graph, 8, method, replicate=True)
        state = [t for t in graph.tensors if t.role is Role.STATE and max(t.shape) >= 8]
        assert state
        assert all(None not in plan.layouts[tensor.name].dimensions for tensor in state)
