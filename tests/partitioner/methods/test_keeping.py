"""Copies and homes chosen for a plan, against enumeration, checkers, and training on one worker."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Role
from tofu.partitioner import least_memory, lighter, lower, partition, peak_bytes, within
from tofu.partitioner.layouts.forms import Partial
from tofu.partitioner.methods.keeping import Keeping
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.memory import plan_memory
from tofu.programs.schedule import schedule

LIMIT = 3000
"""The largest number of combinations of ways that are enumerated."""

models = pytest.mark.parametrize(
    ("model", "options"),
    [
        ("mlp", {"batch": 16}),
        ("gpt-1-16", {"batch": 4, "steps": 8, "vocabulary": 64}),
        pytest.param("gpt-2-16", {"batch": 4, "steps": 8, "vocabulary": 64}, marks=pytest.mark.slow),
        pytest.param("transformer-2-16", {"batch": 4, "steps": 8, "vocabulary": 64}, marks=pytest.mark.slow),
    ],
)


def drawn_plan(data, draw_graph, operations):
    graph = data.draw(draw_graph(max_operations=operations))
    workers = data.draw(st.sampled_from([2, 3, 4]))
    method = data.draw(st.sampled_from(["recursive", "refine", "all-row"]))
    keep, feed = data.draw(st.booleans()), data.draw(st.sampled_from(["batch", "anywhere"]))
    return graph, partition(graph, workers, method, keep=keep, feed=feed)


def check(graph, plan):
    plan.verify(graph)
    tofu.verify(graph, plan)
    program = lower(graph, plan)
    assert program.planned_bytes == plan.cost_bytes
    check_program(graph, plan.workers, plan.cost_bytes, program)
    memory = plan_memory(program)
    check_memory(program, memory.offsets, memory.arena_bytes, schedule(program, memory).waits)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_become_no_worse(data, draw_graph):
    graph, plan = drawn_plan(data, draw_graph, 8)
    peak = partial(peak_bytes, graph)
    for beyond in (False, True):
        for change in (lighter, least_memory):
            found = change(graph, plan, peak, beyond)
            check(graph, found)
            assert found.strategies == plan.strategies
            assert found.cost_bytes <= plan.cost_bytes
            if found.cost_bytes == plan.cost_bytes or change is least_memory:
                assert found == plan or peak(found) < peak(plan)


def combinations(keeping, offers):
    """Every choice of ways."""
    sizes = {n: len(batch.menu.ways) for batch in offers.batches for n in batch.numbers.tolist()}
    assume(np.prod([float(size) for size in sizes.values()]) <= LIMIT)
    return map(np.array, product(*(range(sizes[number]) for number in range(len(keeping.groups)))))


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bounds_hold_for_all_ways(data, draw_graph):
    graph, plan = drawn_plan(data, draw_graph, 4)
    keeping = Keeping(graph, plan, beyond=True)
    offers = keeping.offers(least=False)
    every = [keeping.plan_of(offers, chosen) for chosen in combinations(keeping, offers)]
    peaks = [peak_bytes(graph, each) for each in every]
    limit = data.draw(st.sampled_from(sorted(set(peaks))))
    found = within(graph, plan, limit, partial(peak_bytes, graph), beyond=True)
    fitting = [each.cost_bytes for each, peak in zip(every, peaks, strict=True) if peak <= limit]
    assert found.least_bytes <= min(fitting)
    assert found.peak_bytes == peak_bytes(graph, found.plan)
    if found.peak_bytes <= limit:
        assert found.plan.cost_bytes >= min(fitting)
    check(graph, found.plan)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_fullest_instant_is_nearly_the_least_of_all_ways(data, draw_graph):
    graph, plan = drawn_plan(data, draw_graph, 5)
    keeping = Keeping(graph, plan, beyond=True)
    offers = keeping.offers(least=True)
    found = lighter(graph, plan, partial(peak_bytes, graph), beyond=True)
    every = [keeping.plan_of(offers, chosen) for chosen in combinations(keeping, offers)]
    assert {each.cost_bytes for each in every} == {min(found.cost_bytes, every[0].cost_bytes)}
    assert peak_bytes(graph, found) <= 1.3 * min(peak_bytes(graph, each) for each in every)


@models
@pytest.mark.parametrize("method", [pytest.param("recursive", marks=pytest.mark.slow), "refine"])
def test_limits_are_met(model, options, method):
    graph = tofu.models.get(model, **options).training_graph("adam")
    plan = partition(graph, 4, method, keep=False)
    peak = partial(peak_bytes, graph)
    free, costs = peak(plan), []
    least = within(graph, plan, 0, peak, beyond=True).peak_bytes
    for limit in (free, (3 * free + least) // 4, (free + least) // 2):
        found = within(graph, plan, limit, peak, beyond=True)
        check(graph, found.plan)
        assert found.peak_bytes <= limit
        assert found.least_bytes <= found.plan.cost_bytes
        costs.append(found.plan.cost_bytes)
    assert costs[0] <= plan.cost_bytes
    assert costs == sorted(costs)


@models
def test_no_fewer_bytes_move_than_if_operations_read_homes(model, options):
    graph = tofu.models.get(model, **options).training_graph()
    plan = partition(graph, 4, "exact", keep=False)
    found = lighter(graph, plan, partial(peak_bytes, graph))
    beyond = lighter(graph, plan, partial(peak_bytes, graph), beyond=True)
    assert beyond.cost_bytes <= found.cost_bytes <= plan.cost_bytes
    assert found.lower_bound_bytes == plan.lower_bound_bytes <= found.cost_bytes
    assert beyond.lower_bound_bytes == plan.lower_bound_bytes * (beyond.cost_bytes >= plan.lower_bound_bytes)


def test_plans_that_are_not_in_steps_stay():
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plan = tofu.plans.compose(
        graph, 2, {"*": tofu.plans.Spread((), (0,))}, {"*": tofu.plans.Spread((), (0,))}
    )
    peak = partial(peak_bytes, graph)
    assert lighter(graph, plan, peak) is least_memory(graph, plan, peak) is plan
    assert within(graph, plan, 1, peak).plan is plan


def test_training_moves_what_the_plan_says_and_learns_what_one_worker_learns():
    model = tofu.models.get("mlp", batch=16)
    graph = model.training_graph()
    plan = partition(graph, 4, "recursive", replicate=False)
    kept = lighter(graph, plan, partial(peak_bytes, graph), beyond=True)
    assert kept.copies
    assert kept.cost_bytes < plan.cost_bytes
    drawn = np.random.default_rng(0)
    data, label = drawn.standard_normal((32, 1, 28, 28)).astype("f4"), drawn.integers(0, 10, 32)
    learned = []
    for settings_ in ({"plan": kept, "context": [tofu.cpu(i) for i in range(4)]}, {}):
        steps = []
        with tofu.Module(model.symbol, **settings_) as module:
            module.fit(tofu.ArrayIterator(data, label, 16), on_step=steps.append)
            learned.append(module.parameters())
        if settings_:
            assert {step.fetched_bytes for step in steps} == {kept.cost_bytes}
    for name, value in learned[1].items():
        np.testing.assert_allclose(learned[0][name], value, rtol=1e-4, atol=1e-6)


def summed_products(toy, texts, rows, columns, inner, last):
    builder = toy()
    products = [
        builder.apply(texts["MATMUL"], builder.tensor(rows, k, role=Role.DATA), builder.tensor(k, columns))
        for k in inner
    ]
    builder.apply(texts[last], builder.apply(texts["ADD"], *products))
    return builder.graph()


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_sums_stay_in_terms_and_inputs_in_copies(data, toy, texts):
    """Plans of the space that keeps what is made: menus leave terms as they are, and offer other copies."""
    small = st.sampled_from([1, 2, 3, 6])
    inner = data.draw(st.lists(st.sampled_from([4, 8, 9]), min_size=2, max_size=2))
    last = data.draw(st.sampled_from(["RELU", "TRANSPOSE", "COLUMN_SUM"]))
    graph = summed_products(toy, texts, data.draw(small), data.draw(small), inner, last)
    plan = partition(graph, data.draw(st.sampled_from([2, 4])), "exact")
    peak = partial(peak_bytes, graph)
    for found in (
        lighter(graph, plan, peak),
        least_memory(graph, plan, peak),
        within(graph, plan, peak(plan), peak).plan,
    ):
        check(graph, found)
        assert plan.lower_bound_bytes <= found.cost_bytes <= plan.cost_bytes
        for name, layout in plan.layouts.items():
            if Partial() in layout.form:
                assert found.layouts[name].form == layout.form


@pytest.mark.parametrize("share", [0.4, 0.7, 0.8])
def test_a_higher_limit_is_met_as_well(share):
    """Two instants of this plan fill up in turn: what one frees, the other must not take."""
    graph = tofu.models.get("lenet").training_graph()
    plan, peak = partition(graph, 8, "refine", memory="unlimited"), partial(peak_bytes, graph)
    fitting = 1_414_272
    limit = int(fitting + share * (peak(plan) - fitting))
    found = within(graph, plan, limit, peak)
    assert found.peak_bytes <= limit
    assert found.plan.cost_bytes <= 3_352_840
