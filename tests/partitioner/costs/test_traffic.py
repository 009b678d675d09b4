"""Traffic by level is what the programs fetch, and the tables of the objective count the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.errors import MachineError, PlanError
from tofu.machines.machine import uniform
from tofu.machines.machine_file import load_machine
from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.costs.traffic import traffic
from tofu.partitioner.layouts.choices import operator_choices, tensor_choices
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.problem import Chosen
from tofu.partitioner.problem.transfer_time import TransferTime

BOX = uniform("box", [("socket", 2, 4.0), ("switch", 2, 8.0), ("gpu", 2, 16.0)])
RANDOM = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_levels_add_up_to_the_plans_bytes(graph, method, workers):
    plan = partition(graph, workers, method=method)
    found = traffic(lower(graph, plan), BOX)
    assert found.bytes == plan.cost_bytes
    assert found.transfer_seconds >= max(found.busiest_seconds) * (1 - 1e-9)
    assert found.levels == ("socket", "switch", "gpu")


def test_a_transfer_worked_out_by_hand(toy, texts):
    """Each of 4 workers owns a row of 4 floats and needs a column: 4 bytes from every other worker."""
    builder = toy()
    a = builder.tensor(4, 4, name="a")
    builder.apply(texts["RELU"], a)
    graph = builder.graph()
    constraints = ["pin a=0,0", "pin relu0=j,j", f"pin {graph.tensors[1].name}=1,1"]
    programs = lower(graph, partition(graph, 4, constraints=constraints))
    found = traffic(programs, uniform("quad", [("pair", 2, 4.0), ("gpu", 2, 16.0)]))
    assert found.crossing_bytes == (32, 16)
    assert found.busiest_bytes == (16, 12)
    assert found.busiest_seconds == (4.0, 0.75)
    assert found.transfer_seconds == 4.0


def test_transfers_follow_each_other(toy, texts):
    """Three operations that move the same take three times as long as one."""
    seconds = []
    for operations in (1, 3):
        builder = toy()
        a = builder.tensor(4, 4, name="a")
        for _ in range(operations):
            a = builder.apply(texts["TRANSPOSE"], a)
        graph = builder.graph()
        pins = [f"pin {tensor.name}=0,0" for tensor in graph.tensors]
        found = traffic(lower(graph, partition(graph, 4, constraints=pins)), BOX)
        assert found.crossing_bytes[0] == 0
        seconds.append(found.transfer_seconds)
    assert seconds[1] == pytest.approx(3 * seconds[0])


def predicted(graph, plan, timed):
    """Bytes that cross every level of a machine or one further out, by the objective's tables."""
    problem = build_problem(graph)
    totals = np.zeros(len(plan.factors))
    for link in problem.links:
        operation = graph.operations[problem.operation_class.index(link.operator)]
        tensor = graph.tensors[problem.tensor_class.index(link.tensor)]
        operator = operator_choices(operation.bound, [plan.strategies[operation.name]], plan.factors)
        layout = tensor_choices(tensor.shape, [plan.layouts[tensor.name].dimensions], plan.factors)
        for step in range(len(plan.factors)):
            totals[step] += link.weight * timed.crossing(operator, layout, link.use, step + 1).item()
    return totals


@RANDOM
@given(data=st.data())
def test_the_objective_counts_what_crosses_each_level(data, draw_graph):
    """Exactly where nothing is replicated; of several copies not the nearest one may be read."""
    graph = data.draw(draw_graph(max_operations=4))
    plan = partition(
        graph, 8, method=data.draw(st.sampled_from(["recursive", "refine", "all-row"])), keep=False
    )
    measured = np.cumsum(traffic(lower(graph, plan), BOX).crossing_bytes)
    expected = predicted(graph, plan, TransferTime(BOX, 8))
    choices = [*plan.strategies.values(), *(layout.dimensions for layout in plan.layouts.values())]
    if any(None in choice for choice in choices):
        assert (measured >= expected).all()
    else:
        assert measured.tolist() == expected.tolist()
    assert measured[-1] == expected[-1] == plan.cost_bytes


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_minimise_time(graph, method):
    plan = partition(graph, 8, method=method, machine=BOX, objective="time")
    plan.verify(graph)
    assert plan.lower_bound_bytes <= plan.cost_bytes


@RANDOM
@given(data=st.data())
def test_minimising_time_exactly_is_never_slower(data, draw_graph):
    """By the objective's own measure."""
    graph = data.draw(draw_graph(max_operations=4))
    timed = TransferTime(BOX, 8)

    def picoseconds(plan):
        problem = build_problem(graph)
        operations = [
            graph.operations[problem.operation_class.index(c)] for c in range(len(problem.operators))
        ]
        tensors = [graph.tensors[problem.tensor_class.index(c)] for c in range(len(problem.shapes))]
        strategies = tuple(plan.strategies[operation.name] for operation in operations)
        dimensions = tuple(plan.layouts[tensor.name].dimensions for tensor in tensors)
        return timed.total(Chosen(problem, plan.factors, strategies, dimensions))

    by_time = picoseconds(partition(graph, 8, method="exact", machine=BOX, objective="time"))
    assert by_time <= picoseconds(partition(graph, 8, method="exact", keep=False))
    assert by_time <= picoseconds(partition(graph, 8, method="recursive", machine=BOX, objective="time"))


def test_steps_follow_the_levels():
    machine = uniform("nodes", [("node", 2, 1e9), ("gpu", 6, 2e9)])
    assert TransferTime(machine, 12).factors(12) == (2, 3, 2)
    assert TransferTime(machine, 6).factors(6) == (3, 2)
    assert TransferTime(load_machine("dgx-1-v100"), 1).factors(1) == ()


def test_mistakes_are_named(graph):
    with pytest.raises(PlanError, match="needs a machine"):
        partition(graph, 8, objective="time")
    with pytest.raises(PlanError, match="there are: bytes, time"):
        partition(graph, 8, objective="money")
    with pytest.raises(MachineError, match="16 workers need 16 devices"):
        partition(graph, 16, machine=BOX, objective="time")
    with pytest.raises(MachineError, match="9 workers"):
        traffic(lower(graph, partition(graph, 9)), BOX)
