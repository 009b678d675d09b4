"""Plans keep to constraints, and constraints that clash are named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.errors import PlanError
from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.methods.method import every_method
from tofu.partitioner.problem.classes import build_problem
from tofu.partitioner.problem.constraints import Forbid, Pin, parse_constraint
from tofu.partitioner.problem.restrictions import FREE

RANDOM = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def drawn_constraints(draw, graph, plan):
    """Pins that a plan keeps to, and prohibitions of what it does not use."""
    constraints = []
    problem = build_problem(graph)
    for operation in graph.operations:
        number = problem.operation_class[operation.index]
        tied = [o for o in graph.operations if problem.operation_class[o.index] == number]
        chosen = plan.strategies[operation.name]
        kind = draw(st.sampled_from(["nothing", "pin", "forbid"]))
        if kind == "pin":
            choice = tuple(draw(st.sampled_from([label, FREE])) for label in chosen)
            if any(label not in (None, FREE) for label in choice):
                constraints.append(Pin(operation.name, choice))
        elif kind == "forbid":
            used = {label for o in tied for label in plan.strategies[o.name]}
            unused = [s.variable for s in operation.bound.strategies if s.variable not in used]
            constraints += [Forbid(operation.name, label) for label in unused[:1]]
    for tensor in graph.tensors:
        chosen = plan.layouts[tensor.name].dimensions
        if draw(st.booleans()) and any(label is not None for label in chosen):
            constraints.append(Pin(tensor.name, chosen))
    return constraints


def assert_kept(graph, plan, constraints):
    for constraint in constraints:
        labels = constraint.choice if isinstance(constraint, Pin) else (constraint.label,)
        about_tensor = any(isinstance(label, int) for label in labels)
        sequence = (
            plan.layouts[constraint.name].dimensions if about_tensor else plan.strategies[constraint.name]
        )
        match constraint:
            case Pin(choice=choice):
                assert all(pin in (FREE, label) for pin, label in zip(choice, sequence, strict=True))
            case Forbid(label=label):
                assert label not in sequence


@RANDOM
@given(data=st.data())
def test_plans_keep_to_constraints_that_some_plan_keeps_to(data, draw_graph):
    """Pins taken from a plan leave that plan: what is found exactly costs no more."""
    graph = data.draw(draw_graph(max_operations=4))
    model = partition(graph, 4, method="all-row")
    constraints = drawn_constraints(data.draw, graph, model)
    for method in ("recursive", "refine", "exact"):
        plan = partition(graph, 4, method=method, constraints=constraints)
        plan.verify(graph)
        assert lower(graph, plan).planned_bytes == plan.cost_bytes
        assert_kept(graph, plan, constraints)
    assert partition(graph, 4, method="exact").cost_bytes <= plan.cost_bytes <= model.cost_bytes
    assert plan.lower_bound_bytes == plan.cost_bytes


@pytest.mark.parametrize("method", [n for n, m in every_method().items() if m.takes_constraints])
def test_every_method_that_can_keeps_to_constraints(toy, texts, method):
    builder = toy()
    a, b = builder.tensor(8, 8, name="a"), builder.tensor(8, 8, name="b")
    builder.apply(texts["RELU"], builder.apply(texts["MATMUL"], a, b))
    graph = builder.graph()
    constraints = ["pin a=1,*", "forbid b:0", "pin matmul0=j,*", "forbid relu1:i"]
    layouts = {} if method == "manual" else None
    plan = partition(graph, 4, method=method, constraints=constraints, layouts=layouts)
    plan.verify(graph)
    assert_kept(graph, plan, map(parse_constraint, constraints))


def test_methods_that_cannot_say_so(graph):
    unable = [name for name, method in METHODS.items() if not method.takes_constraints]
    assert unable
    for method in unable:
        with pytest.raises(PlanError, match=f"{method}' cannot take constraints"):
            partition(graph, 4, method=method, constraints=[Forbid(graph.tensors[0].name, 0)])


def test_replication_can_be_asked_for(toy, texts):
    builder = toy()
    a = builder.tensor(8, 8, name="a")
    builder.apply(texts["RELU"], a)
    graph = builder.graph()
    for method in ("recursive", "refine"):
        plan = partition(graph, 4, method=method, constraints=["pin a=-", "forbid relu0:i", "forbid relu0:j"])
        assert plan.layouts["a"].dimensions == plan.strategies["relu0"] == (None, None)
        plan.verify(graph)
    plan = partition(graph, 4, method="exact", constraints=["pin a=-"])
    assert plan.layouts["a"].dimensions == (None, None)
    forbidden = ["forbid relu0:i", "forbid relu0:j"]
    with pytest.raises(PlanError, match="does not replicate what can be split"):
        partition(graph, 4, method="exact", constraints=forbidden, replicate=False, keep=False)


def test_free_steps_leave_what_pinned_steps_need(toy, texts):
    builder = toy()
    a = builder.tensor(4, 64, name="a")
    builder.apply(texts["RELU"], a)
    graph = builder.graph()
    plan = partition(graph, 8, constraints=["pin a=*,0,0"], replicate=False)
    assert plan.layouts["a"].dimensions == (1, 0, 0)


def test_what_is_decided_together_is_constrained_together(toy, texts):
    builder = toy()
    weight, gradient = builder.tensor(4, 4, name="weight"), builder.tensor(4, 4)
    builder.apply(texts["UPDATE"], weight, gradient, builder.tensor(1), aliases=(weight,))
    graph = builder.graph()
    assert partition(graph, 2, constraints=["pin weight=1"]).layouts["t3"].dimensions == (1,)
    with pytest.raises(PlanError, match=r"'weight' \(decided together with t3\): pin weight=1; pin t3=0"):
        partition(graph, 2, constraints=["pin weight=1", "pin t3=0"])


def test_a_clash_is_named_by_a_smallest_set(toy, texts):
    builder = toy()
    a = builder.tensor(8, 2, name="a")
    builder.apply(texts["RELU"], a)
    graph = builder.graph()
    given_ = ["pin a=*,*,0", "forbid a:1", "pin a=1,*,*", "pin relu0=i", "pin a=*,0,0"]
    with pytest.raises(PlanError, match="cannot all hold") as raised:
        partition(graph, 8, constraints=given_)
    named = [text for text in given_ if text in str(raised.value)]
    assert named == ["forbid a:1", "pin a=1,*,*"]
    for left in itertools.combinations(named, len(named) - 1):
        partition(graph, 8, constraints=list(left))
    with pytest.raises(PlanError, match=r"this constraint cannot hold.*at step 2 only 1 are left along 1"):
        partition(graph, 8, constraints=["forbid relu0:j", "pin a=1,1,*"])


def test_patterns_reach_all_that_fit(toy, texts):
    builder = toy()
    a, b = builder.tensor(8, 8, name="a_weight"), builder.tensor(8, 8, name="b_weight")
    builder.tensor(8, name="c_weight")
    builder.apply(texts["MATMUL"], a, b)
    graph = builder.graph()
    plan = partition(graph, 4, constraints=["pin ?_weight=1"])
    assert plan.layouts["a_weight"].dimensions == plan.layouts["b_weight"].dimensions == (1, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hold a=0", "starts with pin or forbid"),
        ("pin a", "NAME=CHOICE"),
        ("pin a=0,,1", "NAME=CHOICE"),
        ("pin a=0;1", "not a dimension's number"),
        ("pin a=99999", "not a dimension's number"),
        ("forbid a", "NAME:LABEL"),
        ("forbid a:*", "NAME:LABEL"),
        ("pin a=0,0,0", "one for each of the 2 steps"),
        ("pin a=0,i", "both dimensions and index variables"),
        ("pin A=0", "no tensor 'A'"),
        ("pin relu0=0", "no tensor 'relu0'; the operator of that name is split along i, j"),
        ("forbid a:i", "no operator 'a'; the tensor of that name is split along 0, 1"),
        ("pin relu=i", "did you mean 'relu0'"),
        ("pin a=2", "cannot be split along 2; choose one of 0, 1"),
        ("forbid relu0:k", "cannot be split along 'k'; choose one of i, j"),
        ("pin *=-", "could be about operators or tensors"),
    ],
)
def test_mistakes_are_named(toy, texts, text, says):
    builder = toy()
    a = builder.tensor(8, 8, name="a")
    builder.apply(texts["RELU"], a)
    with pytest.raises(PlanError, match=says):
        partition(builder.graph(), 4, constraints=[text])


@pytest.mark.parametrize("text", ["pin a=0,-,*", "pin conv=n", "forbid data:1", "forbid x:10:k"])
def test_constraints_print_as_they_are_read(text):
    assert str(parse_constraint(text)) == text
