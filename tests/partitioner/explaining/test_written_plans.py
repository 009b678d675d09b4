"""Plans of any form are explained and compared by their parts."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.explaining.copies import kept_copies
from tofu.partitioner.explaining.difference import difference
from tofu.partitioner.explaining.explain import Explainer, explain
from tofu.partitioner.explaining.weights import layers
from tofu.partitioner.layouts.order import in_order
from tofu.partitioner.plans.plan import contributors
from tofu.plans import Copy, Holding, Partial, Parts, Spread, Task, compose

from ...written_plans import COPY, FORMS, READERS, SWAPPED, mixed, placed, training_graph
from ..lowering.test_assignments import network, random_plan


@pytest.fixture(scope="module")
def graph() -> Any:
    return training_graph()


@pytest.fixture(scope="module")
def plan(graph: Any) -> tofu.Plan:
    return mixed(graph)


@pytest.mark.parametrize("seed", range(4))
def test_explanations_add_up_to_the_plan(seed: int) -> None:
    graph = network("lstm")
    plan = random_plan(graph, 3, seed)
    explainer = Explainer(graph, plan)
    operators = [explainer.operator(operation.index) for operation in graph.operations]
    assert sum(found.bytes for found in operators) == plan.cost_bytes
    tensors = {found.decided_together: found for t in graph.tensors for found in [explainer.tensor(t.index)]}
    assert sum(found.bytes for found in tensors.values()) == plan.cost_bytes
    assert {name for names in tensors for name in names} == plan.layouts.keys()
    for found in (*operators, *tensors.values()):
        assert found.bytes == sum(entry.bytes for entry in found.moved)
        assert found.alternatives == ()
        assert found.chosen is None
        assert "only for plans in steps" in found.unpriced
    order = [operation.name for operation in in_order(graph, plan.written_order)]
    if plan.written_order is not None:
        assert sorted(operators, key=lambda found: found.place or 0) == [
            explainer.operator(next(o.index for o in graph.operations if o.name == name)) for name in order
        ]
    for copy in kept_copies(plan, order):
        assert [order.index(reader) for reader in copy.readers] == sorted(map(order.index, copy.readers))
        assert copy in explainer.tensor(next(t.index for t in graph.tensors if t.name == copy.tensor)).copies
        for found in operators:
            assert (copy in found.copies) == (found.name in copy.readers)


def test_what_an_explanation_says(graph: Any, plan: tofu.Plan) -> None:
    found = explain(graph, plan, "fc2.product", "operator")
    assert found.choice == FORMS["fc2.product"]
    assert found.parts == (
        Task(0, ((0, 3), (0, 64), (0, 128))),
        Task(2, ((3, 7), (0, 64), (0, 128))),
        Task(0, ((7, 16), (0, 64), (0, 128))),
    )
    assert found.idle == (1, 3)
    assert found.place == 5
    (copy,) = found.copies
    assert (copy.tensor, copy.number, copy.source, copy.readers) == ("fc2_weight", 1, 0, READERS)
    assert {entry.kind for entry in found.moved} == {"copy", "fetch", "concat"}
    weight = explain(graph, plan, "fc2_weight")
    assert weight.decided_together == ("fc2_weight", "updated(fc2_weight)")
    assert weight.copies == (copy,)
    assert weight.place is None
    assert [part.term for part in explain(graph, plan, "fc3.product", "operator").parts] == [0, 1]
    assert explain(graph, placed(graph), "fc1").place is None


def test_terms_are_named(toy: Any, texts: dict[str, str]) -> None:
    builder = toy()
    product = builder.apply(texts["MATMUL"], builder.tensor(4, 6, name="a"), builder.tensor(6, 4, name="b"))
    builder.apply(texts["TRANSPOSE"], product)
    graph = builder.graph()
    both, split = Spread(((None, 2),), (0, 1)), Spread(((Partial(), 2),), (0, 1))
    forms = {"matmul0": Spread((("k", 2),), (0, 1)), "transpose1": split}
    plan = compose(graph, 2, forms, {"a": both, "b": both, graph.tensors[product].name: split, "t3": both})
    held = explain(graph, plan, graph.tensors[product].name, "tensor")
    assert [(part.worker, part.term) for part in held.parts] == [(0, 0), (1, 1)]
    reader = explain(graph, plan, "transpose1")
    assert [(part.worker, part.read, part.term) for part in reader.parts] == [(0, 0, 0), (1, 1, 1)]
    swapped = Parts(((1, ((0, 4), (0, 4)), 0), (0, ((0, 4), (0, 4)), 1)))
    other = compose(graph, 2, forms, {"a": both, "b": both, graph.tensors[product].name: swapped, "t3": both})
    assert [change.name for change in difference(graph, plan, other).tensors] == [graph.tensors[product].name]


def test_written_steps_are_priced_as_found_ones(graph: Any) -> None:
    found = tofu.partition(graph, 4, replicate=False, feed="anywhere")
    layouts = {t.name: found.layouts[t.name].form for t in graph.tensors if t.alias is None}
    written = compose(graph, 4, dict(found.strategies), layouts)
    for name in ("fc1_weight", "fc1.product"):
        assert explain(graph, written, name).alternatives == explain(graph, found, name).alternatives
    assert difference(graph, found, written).operators == ()


def test_what_is_not_priced_says_why(graph: Any, plan: tofu.Plan, toy: Any, texts: dict[str, str]) -> None:
    assert "operation 'flatten' is whole on worker 3" in explain(graph, placed(graph), "fc1").unpriced
    split = tofu.partition(graph, 4, replicate=False)
    kept = dataclasses.replace(
        split, copies={**split.copies, "fc2_weight": (Copy((None, None), ("fc2.product",)),)}
    )
    assert "keeps copies of 'fc2_weight'" in explain(graph, kept, "fc1").unpriced
    replicated = {t.name: (None, None) for t in graph.tensors if t.alias is None}
    allreduced = compose(graph, 4, {o.name: (None, None) for o in graph.operations}, replicated)
    assert "is reduced in two hops" in explain(graph, allreduced, "fc1").unpriced
    builder = toy()
    state = builder.tensor(4, 4, name="state")
    for _ in range(2):
        state = builder.apply(texts["RELU"], state, tie="relu")
    tied = builder.graph()
    choices = {"relu0": ("i",), "relu1": ("j",)}
    apart = compose(tied, 2, choices, {tensor.name: (0,) for tensor in tied.tensors})
    assert (
        "operations 'relu0' and 'relu1' are tied but have two choices"
        in explain(tied, apart, "relu0").unpriced
    )
    assert explain(tied, apart, "relu0").decided_together == ("relu0",)
    together = compose(tied, 2, {"*": ("i",)}, {tensor.name: (0,) for tensor in tied.tensors})
    assert explain(tied, together, "relu0").unpriced == ""


def test_forms_with_the_same_parts_are_the_same_choice(graph: Any) -> None:
    """The pipeline again, each form as a list of its boxes in another order."""
    plan = mixed(graph)

    def listed(parts: tuple[Task, ...] | tuple[Holding, ...]) -> Parts:
        return Parts(
            tuple(
                (part.worker, part.box if isinstance(part, Task) else part.region) for part in reversed(parts)
            )
        )

    explainer = Explainer(graph, plan)
    again = dataclasses.replace(
        plan,
        strategies={o.name: listed(explainer.operator(o.index).parts) for o in graph.operations},
        layouts={
            t.name: dataclasses.replace(plan.layouts[t.name], form=listed(explainer.tensor(t.index).parts))
            for t in graph.tensors
        },
        copies={"fc2_weight": (Copy(Parts(((2, ((0, 64), (0, 128))),)), READERS),)},
        written_order=tuple(plan.written_order or ()),
    )
    found = difference(graph, plan, again)
    assert found.operators == found.tensors == found.copies == found.order == ()


@pytest.mark.parametrize("seeds", list(pairwise(range(4))))
def test_differences_of_any_plans_add_up(seeds: tuple[int, int]) -> None:
    graph = network("mlp")
    first, second = (random_plan(graph, 2 + seed, seed) for seed in seeds)
    found = difference(graph, first, second)
    changes = [entry.bytes[1] - entry.bytes[0] for entry in found.operators]
    assert sum(changes) == second.cost_bytes - first.cost_bytes
    assert {entry.tensor for entry in found.copies} <= first.copies.keys() | second.copies.keys()
    orders = [[o.name for o in in_order(graph, plan.written_order)] for plan in (first, second)]
    moved = {name for name, other in zip(*orders, strict=True) if name != other}
    assert {entry.operation for entry in found.order} == moved
    for entry in found.order:
        assert [order[place - 1] for order, place in zip(orders, entry.places, strict=True)] == [
            entry.operation
        ] * 2


def test_copies_orders_and_ways_home_differ(graph: Any, plan: tofu.Plan) -> None:
    found = difference(graph, placed(graph), plan)
    assert {change.name for change in found.operators} >= FORMS.keys()
    assert {change.name for change in found.tensors} == {"fc1_weight", "updated(fc1_weight)"}
    (copies,) = found.copies
    assert (copies.tensor, copies.copies) == ("fc2_weight", ((), (COPY,)))
    assert [entry.operation for entry in found.order] == list(reversed(SWAPPED))
    fewer = dataclasses.replace(
        plan, copies={"fc2_weight": (dataclasses.replace(COPY, readers=READERS[:1]),)}
    )
    assert [entry.tensor for entry in difference(graph, plan, fewer).copies] == ["fc2_weight"]
    everywhere = {"*": Spread(((None, 2),), (0, 1))}
    hops = compose(graph, 2, everywhere, everywhere)
    direct = dataclasses.replace(
        hops,
        layouts={name: dataclasses.replace(layout, via=None) for name, layout in hops.layouts.items()},
    )
    changed = difference(graph, hops, direct).tensors
    assert {change.name for change in changed} == {n for n, layout in hops.layouts.items() if layout.via}
    assert all(change.via[0] is not None is change.via[1] for change in changed)


def test_layers_say_where_they_are(graph: Any, plan: tofu.Plan) -> None:
    rows = {row.weight: row for row in layers(graph, plan)}
    assert rows["fc1_weight"].weight_parts == (2, 2)
    assert rows["fc1_weight"].holders == (0, 2)
    assert dict(rows["fc1_weight"].variables) == {"n": 2, "h": 2}
    assert rows["fc1_weight"].workers == (0, 1, 2, 3)
    assert dict(rows["fc2_weight"].variables) == {"n": 3}
    assert (rows["fc2_weight"].holders, rows["fc2_weight"].workers) == ((1,), (0, 2))
    assert dict(rows["fc3_weight"].variables) == {"k": 2}


@pytest.mark.parametrize("name", ["mlp", "lenet"])
def test_layers_in_steps_count_factors(name: str) -> None:
    graph = tofu.models.get(name).training_graph()
    plan = tofu.partition(graph, 12)
    for row in layers(graph, plan):
        expected = [1] * len(row.shape)
        for dimension, factor in zip(plan.layouts[row.weight].dimensions, plan.factors, strict=True):
            if dimension is not None:
                expected[dimension] *= factor
        assert row.weight_parts == tuple(expected)
        parts: dict[str, int] = {}
        for variable, factor in zip(plan.split_along(row.operation), plan.factors, strict=True):
            if variable is not None:
                parts[variable] = parts.get(variable, 1) * factor
        assert row.variables == tuple(parts.items())


def test_plans_that_cannot_be_are_refused(graph: Any, plan: tofu.Plan) -> None:
    bad = dataclasses.replace(plan, copies={"fc2_weight": (Copy(COPY.form, ("nothing",)),)})
    for look in (lambda: explain(graph, bad, "fc1"), lambda: difference(graph, plan, bad)):
        with pytest.raises(PlanError, match="there is no operation 'nothing'"):
            look()


@pytest.mark.parametrize("look", [layers, contributors, lambda graph, plan: explain(graph, plan, "fc1")])
def test_choices_that_are_not_legal_are_refused(graph: Any, look: Any) -> None:
    plan = tofu.partition(graph, 4)
    bad = dataclasses.replace(plan, strategies={**plan.strategies, "fc1": ("nothing", "n")})
    with pytest.raises(PlanError, match=r"operation 'fc1'.*'nothing'"):
        look(graph, bad)
