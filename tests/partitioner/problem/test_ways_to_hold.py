"""The ways to hold a tensor, against enumeration, counted bytes, and the live bytes of lowered programs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tofu
from tofu.partitioner import lower, partition
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.methods.keeping import Keeping
from tofu.partitioner.problem.sequences import all_sequences
from tofu.partitioner.problem.ways_to_hold import COMPUTE, FETCH, PHASES, undominated
from tofu.plans import Layout
from tofu.programs.memory import plan_memory
from tofu.programs.program import Compute


def searched(data, draw_graph, operations=4):
    graph = data.draw(draw_graph(max_operations=operations))
    workers = data.draw(st.sampled_from([2, 3, 4]))
    method = data.draw(st.sampled_from(["recursive", "refine", "all-row"]))
    feed = data.draw(st.sampled_from(["batch", "anywhere"]))
    return graph, partition(graph, workers, method, feed=feed, keep=data.draw(st.booleans()))


def random_choice(data, offers):
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    chosen = np.zeros(offers.groups, np.int64)
    for batch in offers.batches:
        chosen[batch.numbers] = random.integers(len(batch.menu.ways), size=len(batch.numbers))
    return chosen


def moved_in_every_way(graph, plan, group):
    """Bytes of the plan for every home, stop, copy and set of readers of one group."""
    names = [graph.tensors[tensor].name for tensor in group.tensors]
    own = plan.layouts[names[0]]
    every = all_sequences(dict(enumerate(own.shape)), plan.factors, True)
    fed = plan.space.feed == "batch" and graph.tensors[group.tensors[0]].role == "data"
    homes = [own.dimensions] if fed else every
    for home, via in product(homes, (None, *every)):
        layouts = {**plan.layouts, **dict.fromkeys(names, Layout(own.shape, home, plan.factors, via))}
        yield replace(plan, layouts=layouts).count(graph)[-1]
        for member, name in enumerate(names):
            readers = [
                graph.operations[event.operation].name
                for event in group.events
                if event.reads and event.member == member
            ]
            for copy, some in product(every, product((False, True), repeat=len(readers))):
                reads = tuple(reader for reader, takes in zip(readers, some, strict=True) if takes)
                if reads:
                    held = replace(plan, layouts=layouts, copies={name: (Copy(copy, reads),)})
                    yield held.count(graph)[-1]


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_way_moves_fewer_bytes_than_the_least_of_a_menu(data, draw_graph):
    graph, plan = searched(data, draw_graph, operations=3)
    keeping = Keeping(graph, plan, beyond=True)
    offers = keeping.offers(least=True)
    group = data.draw(st.sampled_from(keeping.groups))
    assume(sum(bool(event.reads) for event in group.events) <= 4)
    (least,) = [
        int(batch.menu.moved[0]) for batch in offers.batches if keeping.groups.index(group) in batch.numbers
    ]
    others = plan.cost_bytes - own_bytes(graph, plan, group)
    assert min(moved_in_every_way(graph, plan, group)) == others + least


def own_bytes(graph, plan, group):
    """Bytes that move for the tensors of a group."""
    names = {graph.tensors[tensor].name for tensor in group.tensors}
    return sum(entry.bytes for entry in plan.contributions(graph) if entry.tensor in names)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_plans_of_any_ways_move_what_their_menus_say(data, draw_graph):
    graph, plan = searched(data, draw_graph, operations=6)
    for beyond in (False, True):
        keeping = Keeping(graph, plan, beyond)
        offers = keeping.offers(least=False)
        chosen = random_choice(data, offers)
        found = keeping.plan_of(offers, chosen)
        assert found.cost_bytes == offers.moved(chosen)
        found.verify(graph)
        tofu.verify(graph, found)
        assert beyond or found.cost_bytes >= plan.lower_bound_bytes or has_stops(found)


def has_stops(plan):
    return any(layout.via is not None for layout in plan.layouts.values())


def live_by_instant(graph, program):
    """The live bytes on all workers when each operation fetches, and when it computes."""
    memory = plan_memory(program)
    live = np.sum(memory.live_bytes, axis=0)
    ticks = {}
    for each in program.programs:
        for instruction in each.instructions:
            if isinstance(instruction, Compute):
                ticks.setdefault(instruction.operation, instruction.tick)
    return {operation: (live[tick - 1], live[tick]) for operation, tick in ticks.items()}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_live_bytes_are_at_most_those_of_the_program(data, draw_graph):
    graph, plan = searched(data, draw_graph, operations=6)
    keeping = Keeping(graph, plan, beyond=True)
    offers = keeping.offers(least=False)
    chosen = random_choice(data, offers)
    live = offers.live(chosen)
    for operation, found in live_by_instant(graph, lower(graph, keeping.plan_of(offers, chosen))).items():
        assert live[PHASES * operation + FETCH] <= found[0]
        assert live[PHASES * operation + COMPUTE] <= found[1]


@pytest.mark.parametrize("method", ["recursive", "exact"])
def test_live_bytes_of_a_model_are_nearly_those_of_the_program(method):
    graph = tofu.models.get("gpt-2-16", batch=4, steps=8, vocabulary=64).training_graph("adam")
    plan = partition(graph, 4, method, keep=False)
    keeping = Keeping(graph, plan, beyond=True)
    offers = keeping.offers(least=True)
    chosen = np.zeros(offers.groups, np.int64)
    program = lower(graph, keeping.plan_of(offers, chosen))
    live = offers.live(chosen)
    for operation, found in live_by_instant(graph, program).items():
        assert 0.98 * found[0] <= live[PHASES * operation + FETCH] <= found[0]


def test_rows_that_are_beaten_are_left_out():
    rows = np.array([[3, 1], [1, 3], [2, 2], [2, 2], [3, 3], [1, 4]])
    assert undominated(rows, np.array([3])).tolist() == [3, 0, 1]
    assert undominated(rows, np.array([], np.int64)).tolist() == [0, 1, 2]
