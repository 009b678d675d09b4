"""A user's layouts, scored, and plans written in full."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner import METHODS, lower, partition
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.partitioner.layouts.forms import Spread
from tofu.partitioner.plans.compose import compose


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 4, 6])
def test_the_layouts_of_any_plan_cost_no_more_than_that_plan(graph, method, workers):
    """Operations choose their best strategies, so none is worse than what the method chose."""
    plan = partition(graph, workers, method=method, keep=False)
    layouts = {name: layout.dimensions for name, layout in plan.layouts.items()}
    scored = partition(graph, workers, method="manual", layouts=layouts)
    assert scored.method == "manual"
    assert scored.layouts == plan.layouts
    scored.verify(graph)
    assert lower(graph, scored).planned_bytes == scored.cost_bytes
    if method != "icml18":  # which replicates what could be split
        assert scored.cost_bytes <= plan.cost_bytes


def test_strategies_are_the_best_of_all(toy, texts):
    builder = toy()
    a, b = builder.tensor(8, 4, name="a"), builder.tensor(4, 8, name="b")
    c = builder.apply(texts["MATMUL"], a, b)
    graph = builder.graph()
    name = graph.tensors[c].name
    for dimensions in itertools.product((0, 1), repeat=3):
        layouts = dict(zip(("a", "b", name), [(d, d) for d in dimensions], strict=True))
        plan = partition(graph, 4, method="manual", layouts=layouts)
        every = itertools.product("ijk", repeat=2)
        costs = [count_bytes(graph, plan.layouts, {"matmul0": s}, plan.factors)[-1] for s in every]
        assert plan.cost_bytes == min(costs)


def test_what_is_left_out_is_chosen_as_by_recursion(graph):
    free = partition(graph, 4, method="manual", layouts={})
    assert free.layouts == partition(graph, 4, keep=False).layouts


def test_names_come_before_patterns_and_one_entry_stands_for_all_steps(toy, texts):
    builder = toy()
    a, b = builder.tensor(8, 8, name="a"), builder.tensor(8, 8, name="b")
    builder.apply(texts["MATMUL"], a, b)
    layouts = {"?": 1, "a": [0, 1], "*": None}
    plan = partition(builder.graph(), 4, method="manual", layouts=layouts)
    chosen = {name: layout.dimensions for name, layout in plan.layouts.items()}
    assert chosen == {"a": (0, 1), "b": (1, 1), "t2": (None, None)}


def test_layouts_and_constraints_go_together(toy, texts):
    builder = toy()
    builder.apply(texts["RELU"], builder.tensor(8, 8, name="a"))
    graph = builder.graph()
    plan = partition(graph, 4, method="manual", layouts={"a": 0}, constraints=["pin relu0=j"])
    assert plan.strategies["relu0"] == ("j", "j")
    with pytest.raises(PlanError, match="cannot all hold"):
        partition(graph, 4, method="manual", layouts={"a": 0}, constraints=["forbid a:0"])


def test_operations_with_forms_are_composed(graph):
    written = {"operations": {"*": {"worker": 1}}, "tensors": {"*": {"worker": 1}}}
    plan = partition(graph, 4, method="manual", layouts=written)
    assert plan.method == "manual"
    assert plan.cost_bytes == 0
    assert plan.search_seconds is not None
    here = Spread((), (1,))
    assert plan == replace(compose(graph, 4, {"*": here}, {"*": here}), method="manual")
    plan.verify(graph)
    assert lower(graph, plan).planned_bytes == 0


def test_files_stand_for_what_they_hold(graph, tmp_path):
    for name, written in (
        ("layouts", {"*": None}),
        ("plan", {"operations": {"*": "everywhere"}, "tensors": {"*": "everywhere"}}),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(written))
        expected = partition(graph, 4, method="manual", layouts=written)
        for given in (path, str(path)):
            assert partition(graph, 4, method="manual", layouts=given) == expected


CONTRADICTIONS = [
    ({"operations": {"*": {"workers": [0, 0]}}}, "operation 'flatten': worker 0 has the part"),
    ({"operations": {"*": {"workers": []}}}, "is not a form"),
    ({"operations": {"*": {"along": "z", "workers": [0]}}}, "has no variable 'z'; choose one of i0, i1"),
    ({"operations": {"*": "follow"}}, "only a tensor that an operation makes can follow it"),
    ({"operations": {"*": [None]}}, "1 choice for 2 steps; give one for each"),
    ({"operations": {"*": [{"at": 2}, None]}}, "there is no group 2"),
    ({"operations": {"*": {"spread": [[None, 2]]}}}, "2 parts are spread over 4 workers"),
    ({"operations": {"fc*": None}}, "operation 'flatten' has no form"),
    ({"operations": {"*": None, "fc9": None}}, "'fc9' matches no operation; did you mean"),
    ({"tensors": {"data": {"cut": 0, "bounds": [9, 3], "workers": [0, 1, 2]}}}, "they must ascend"),
    ({"tensors": {"data": {"parts": [[0, [[0, 3], [0, 1], [0, 28], [0, 28]]]]}}}, "the parts cover 2352 of"),
    ({"tensors": {"data": {"parts": [[0, [[0, 3]]]]}}}, "every box needs 4 intervals"),
    ({"tensors": {"fc1_weight": [0, 9]}}, "tensor 'fc1_weight', step 2: a tensor of shape"),
    ({"tensors": {"updated(fc1_weight)": 0}}, "give 'fc1_weight' the form instead"),
    ({"order": ["flatten", "fc*"]}, "does not name each once"),
    ({"order": ["*", "flatten"]}, "the order runs 'fc1.product', which reads 'flatten_output', before"),
    ({"copies": {"data": [{"form": None, "readers": ["fc1"]}]}}, "operation 'fc1' does not read it"),
    ({"copies": {"data": [{"form": None, "readers": []}]}}, "has no readers"),
    ({"copies": {"data": [{"form": None, "readers": ["*"], "source": 1}]}}, "is made from version 1; choose"),
    (
        {
            "copies": {
                "fc2_weight": [
                    {"form": None, "readers": ["*.data"]},
                    {"form": {"worker": 0}, "readers": ["*.product"], "source": 1},
                ]
            }
        },
        "copy 2 of tensor 'fc2_weight' is made before version 1",
    ),
]


@pytest.mark.parametrize(("written", "says"), CONTRADICTIONS)
def test_plans_that_contradict_themselves_or_the_graph_are_refused(written, says):
    """All other entries of the file are right."""
    rest = {"operations": {"*": "everywhere"}, "tensors": {"*": "everywhere"}}
    merged = {**rest, **written}
    if "tensors" in written:
        merged["tensors"] = {**written["tensors"], **rest["tensors"]}
    graph = tofu.models.get("mlp", batch=4).training_graph()
    with pytest.raises(PlanError) as raised:
        partition(graph, 4, method="manual", layouts=merged)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "asked", [{"constraints": ["forbid *:0"]}, {"objective": "time", "machine": "pcie-8"}]
)
def test_nothing_is_asked_of_a_search_that_does_not_happen(graph, asked):
    written = {"operations": {"*": "everywhere"}, "tensors": {"*": "everywhere"}}
    with pytest.raises(PlanError, match="so nothing is searched; leave out"):
        partition(graph, 8, method="manual", layouts=written, **asked)


def test_mistakes_are_named(graph):
    name = graph.tensors[0].name
    for arguments, says in (
        ({"method": "manual"}, "needs layouts"),
        ({"method": "manual", "layouts": [name]}, "layouts are a list; give a dict"),
        ({"method": "manual", "layouts": {0: 0}}, "has the key 0, which is not a string"),
        ({"method": "manual", "layouts": {name: {"worker": 0}}}, 'add "operations" with a form for each'),
        ({"layouts": {}}, "layouts are for the method 'manual', not 'recursive'"),
        ({"method": "manual", "layouts": {name + "x": 0}}, f"did you mean '{name}'"),
        ({"method": "manual", "layouts": {name: 9}}, "cannot be split along 9"),
    ):
        with pytest.raises(PlanError, match=says):
            partition(graph, 4, **arguments)


@pytest.mark.parametrize("objective", ["time", "step-time"])
def test_time_is_counted_as_its_recount_does(objective):
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plan = partition(
        graph, 4, method="manual", layouts={"fc1_weight": 0}, machine="pcie-8", objective=objective
    )
    assert set(plan.layouts["fc1_weight"].dimensions) == {0}
    plan.verify(graph)
