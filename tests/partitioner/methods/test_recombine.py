"""Recombined plans: what the tables say is what the plans cost, and nothing among the choices is better."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.training import gradient_graph
from tofu.partitioner import partition, peak_bytes
from tofu.partitioner.methods.recombine import recombined
from tofu.partitioner.methods.search import prepared
from tofu.partitioner.methods.settings import SearchSettings
from tofu.partitioner.methods.within_memory import memory_front
from tofu.partitioner.problem.factor_graph import joint_choices
from tofu.partitioner.problem.live_bytes import LiveBytes
from tofu.partitioner.problem.plan_choices import choices_of
from tofu.partitioner.problem.problem import Chosen
from tofu.partitioner.problem.sequences import all_sequences

TIMED = SearchSettings("recursive", machine="dgx-1-v100", objective="step-time")


def tiny():
    with NameScope():
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=8, no_bias=True, name="fc1")
        return gradient_graph(net, {"data": (8, 16)}, ["fc1_weight"])


def measured(problem, workers, plan, fullest):
    """Return the time and the live bytes of a plan, counted without tables."""
    strategies, dimensions = choices_of(problem, plan)
    factors = problem.objective.factors(workers)
    time = problem.objective.total(Chosen(problem, factors, tuple(strategies), tuple(dimensions)))
    return time, LiveBytes.of(problem).totals(strategies, dimensions, factors)[fullest]


def test_the_frontier_of_all_choices_is_found(monkeypatch):
    monkeypatch.setattr("tofu.partitioner.methods.recombine.EVERY", 0)
    graph = tiny()
    problem, method = prepared(graph, 2, TIMED)
    start = partition(graph, 2, keep=False)
    factors = problem.objective.factors(2)
    live = LiveBytes.of(problem)
    totals = live.totals(*choices_of(problem, start), factors)
    fullest = totals.index(max(totals))
    operators, tensors = joint_choices(problem, factors, all_sequences)
    pairs = set()
    for chosen in product(*(range(len(each.sequences)) for each in (*operators, *tensors))):
        strategies = tuple(c.sequences[n] for c, n in zip(operators, chosen, strict=False))
        dimensions = tuple(c.sequences[n] for c, n in zip(tensors, chosen[len(operators) :], strict=True))
        time = problem.objective.total(Chosen(problem, factors, strategies, dimensions))
        pairs.add((time, live.totals(strategies, dimensions, factors)[fullest]))
    expected = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
    found = {measured(problem, 2, plan, fullest) for plan in recombined(problem, 2, [start], method)}
    assert found == expected
    assert len(found) > 1


@pytest.mark.parametrize("workers", [2, 8])
def test_recombined_plans_are_legal_and_no_worse(workers):
    graph = tofu.models.get("mlp", batch=64).training_graph()
    problem, method = prepared(graph, workers, TIMED)
    plans = [point.plan for point in memory_front(graph, workers, TIMED, partial(peak_bytes, graph))][::-1]
    totals = LiveBytes.of(problem).totals(*choices_of(problem, plans[0]), plans[0].factors)
    fullest = totals.index(max(totals))
    found = list(recombined(problem, workers, plans, method))
    for plan in found:
        plan.verify(graph)
    pairs = [measured(problem, workers, plan, fullest) for plan in found]
    for plan in plans:
        time, live = measured(problem, workers, plan, fullest)
        assert min(t for t, _ in pairs) <= time
        assert min(m for _, m in pairs) <= live


def test_plans_of_other_steps_are_left_out():
    graph = tofu.models.get("mlp", batch=64).training_graph()
    problem, method = prepared(graph, 4, TIMED)
    assert not list(recombined(problem, 4, [partition(graph, 2)], method))
    assert not list(recombined(problem, 4, [], method))
