"""Plans of forms that a person writes, and what is said of those that cannot be."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.layouts.copies import Copy
from tofu.partitioner.layouts.forms import Cut, Follow, Form, Partial, Parts, Spread
from tofu.partitioner.plans.compose import compose
from tofu.partitioner.plans.plan import Plan

EVERYWHERE = Spread(((None, 2),), (0, 1))
HERE = Spread((), (1,))


@pytest.fixture(scope="module")
def graph() -> Any:
    return tofu.models.get("mlp", batch=4).training_graph()


def test_a_module_trains_with_a_written_plan(graph: Any) -> None:
    plan = compose(graph, 2, {"fc2*": Spread((), (0,)), "*": HERE}, {"*": HERE})
    assert plan.cost_bytes > 0
    drawn = np.random.default_rng(0)
    data, label = drawn.standard_normal((8, 1, 28, 28)).astype("f4"), drawn.integers(0, 10, 8)
    net = tofu.models.get("mlp", batch=4).symbol
    scores = []
    for settings in ({"plan": plan, "context": [tofu.cpu(0), tofu.cpu(1)]}, {}):
        with tofu.Module(net, **settings) as module:
            module.fit(tofu.ArrayIterator(data, label, 4))
            scores.append(module.parameters()["fc1_weight"])
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-4, atol=1e-6)


def test_tensors_without_a_form_follow_their_operations(graph: Any) -> None:
    plan = compose(graph, 2, {"*": HERE}, {"data": EVERYWHERE, "*": Follow()} | _held(graph))
    assert plan.layouts["fc1_output"].form == Parts(((1, ((0, 4), (0, 128))),))
    tofu.verify(graph, plan)


def _held(graph: Any) -> dict[str, Form]:
    made = {tensor for operation in graph.operations for tensor in operation.outputs}
    return {t.name: HERE for t in graph.tensors if t.index not in made and t.name != "data"}


@pytest.mark.parametrize("workers", [0, True, "2", 1 << 20])
def test_a_number_of_workers_that_cannot_be(graph: Any, workers: Any) -> None:
    with pytest.raises(PlanError, match=r"the number of workers must be|cannot partition over"):
        compose(graph, workers, {"*": HERE}, {"*": HERE})


@pytest.mark.parametrize(
    ("operations", "tensors", "more", "says"),
    [
        ({"fc1": HERE}, {}, {}, "operation 'flatten' has no form (28 in all)"),
        ({"*": HERE}, {}, {}, "no operation makes tensor 'data'; give it a form"),
        ({"*": HERE, "fc9": HERE}, {}, {}, "'fc9' matches no operation"),
        ({"*": HERE}, {"nothing*": HERE}, {}, "'nothing*' matches no tensor"),
        ({"*": Spread((), (2,))}, {"*": HERE}, {}, "there is no worker 2"),
        ({"*": HERE}, {"*": Spread((), (-1,))}, {}, "there is no worker -1"),
        ({"*": HERE}, {"fc1_weight": Cut(2, (1,), (0, 1)), "*": HERE}, {}, "has no dimension 2"),
        ({"fc1": Cut("k", (1,), (0, 1)), "*": HERE}, {"*": HERE}, {}, "has no variable 'k'"),
        (
            {"fc1.product": Cut("k", (9,), (0, 1)), "*": HERE},
            {"fc1.product": Follow(), "*": HERE},
            {},
            "operation 'fc1' reads 'fc1.product', which is 2 partial results; give 'fc1.product' a form",
        ),
        (
            {"fc1": ("k",), "*": HERE},
            {"fc1_output": Follow(), "*": HERE},
            {},
            "operation 'fc1': FullyConnected has no variable 'k'; choose one of n, h",
        ),
        ({"*": "n"}, {"*": HERE}, {}, "operation '*': n is not a form"),
        ({"*": (Partial(),)}, {"*": HERE}, {}, "'flatten' reads 2 terms, but its inputs have none"),
        ({"*": Spread(((None, 2),), [0, 1])}, {"*": HERE}, {}, "is not a form"),  # type: ignore[arg-type]
        ([HERE], {"*": HERE}, {}, "forms of operations are given by name, not as a list"),
        ({"*": HERE}, {"updated(fc1_weight)": HERE, "*": HERE}, {}, "give 'fc1_weight' the form instead"),
        ({"*": HERE}, {"softmax_label": Parts(((0, ((0, 2),)),)), "*": HERE}, {}, "cover 2 of"),
        ({"*": HERE}, {"*": HERE}, {"order": "fc1"}, "give a list of operation names"),
        ({"*": HERE}, {"*": HERE}, {"copies": {"data": Copy(HERE, ("fc1",))}}, "give a list of Copy"),
        ({"*": HERE}, {"*": HERE}, {"order": ["fc1"]}, "the order has 1 names for 29 operations"),
        ({"*": HERE}, {"*": HERE}, {"copies": {"no": [Copy(HERE, ("fc1",))]}}, "'no' matches no tensor"),
        (
            {"*": HERE},
            {"*": HERE},
            {"copies": {"data": [Copy(HERE, ("fc2",))]}},
            "operation 'fc2' does not read it",
        ),
        (
            {"*": HERE},
            {"*": HERE},
            {"copies": {"data": [Copy(HERE, ("flatten",), 1)]}},
            "is made from version 1; choose one of 0 to 0",
        ),
        (
            {"*": HERE},
            {"*": HERE},
            {"copies": {"data": [Copy(HERE, ())]}},
            "has no readers",
        ),
        (
            {"*": HERE},
            {"*": HERE},
            {"copies": {"softmax_label": [Copy(Parts(((1, ((0, 2),)),)), ("softmax.grad*",))]}},
            "copy 1 of tensor 'softmax_label', which 'softmax.grad.SoftmaxOutput_grad' reads: worker 1 needs",
        ),
        ({"*": HERE}, {"*": HERE}, {"copies": [HERE]}, "copies are given by tensor, not as a list"),
        (
            {"*": HERE},
            {"*": HERE},
            {"copies": {"fc?_weight": [Copy(HERE, ("fc2*",))]}},
            "copy 1 of tensor 'fc1_weight': 'fc2*' matches no operation that reads it",
        ),
        ({"*": HERE}, {"*": HERE}, {"order": ["*", "*"]}, "the order has '*' twice"),
        ({"*": HERE}, {"*": HERE}, {"order": ["*", "fc9*"]}, "'fc9*' matches no operation"),
        ({"*": HERE}, {"*": HERE}, {"order": ["fc*"]}, "and does not name each once, such as 'flatten'"),
    ],
)  # fmt: skip
def test_what_cannot_be(graph: Any, operations: Any, tensors: Any, more: Any, says: str) -> None:
    with pytest.raises(PlanError, match=re.escape(says)):
        compose(graph, 2, operations, tensors, **more)


def test_readers_and_orders_are_given_by_pattern(graph: Any) -> None:
    """They mean what they match, and a name in an order counts more than a pattern."""
    names = [operation.name for operation in graph.operations]
    last = ["update(fc3_bias)", "update(fc3_weight)"]
    short = compose(
        graph, 2, {"*": HERE}, {"*": Spread((), (0,))},
        copies={"fc[23]_weight": [Copy(HERE, ("fc?.product", "*.data"))]}, order=["*", *last],
    )  # fmt: skip
    readers = {
        "fc2_weight": ("fc2.product", "fc2.grad.FullyConnected_product.data"),
        "fc3_weight": ("fc3.product", "fc3.grad.FullyConnected_product.data"),
    }
    long = compose(
        graph, 2, {"*": HERE}, {"*": Spread((), (0,))},
        copies={name: [Copy(HERE, named)] for name, named in readers.items()},
        order=[name for name in names if name not in last] + last,
    )  # fmt: skip
    assert short == long
    tofu.verify(graph, short)


def test_parts_that_do_not_tile_are_refused(graph: Any) -> None:
    plan = compose(graph, 2, {"*": HERE}, {"*": HERE})
    gap = dataclasses.replace(plan.layouts["fc1_weight"], form=Parts(((0, ((0, 128), (0, 700))),)))
    layouts = plan.layouts | dict.fromkeys(("fc1_weight", "updated(fc1_weight)"), gap)  # type: ignore[operator]
    with pytest.raises(PlanError, match="of the 100352 elements"):
        tofu.verify(graph, dataclasses.replace(plan, layouts=layouts))


def test_plan_files_keep_all_of_it(graph: Any, tmp_path: Any) -> None:
    names = [operation.name for operation in graph.operations]
    copies = {"fc2_weight": [Copy(EVERYWHERE, ("fc2.product",))]}
    plan = compose(graph, 2, {"*": HERE}, {"*": HERE}, copies=copies, order=names)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    plan.verify(graph)


def test_equal_choices_are_checked_once_and_others_all(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16).training_graph()
    operations = {operation.name: Spread(((None, 2),), (0, 1)) for operation in graph.operations}
    tensors = {tensor.name: Spread(((None, 2),), (0, 1)) for tensor in graph.tensors if tensor.alias is None}
    plan = compose(graph, 2, operations, tensors)
    checked: list[Any] = []
    own = tofu.partitioner.plans.plan.check_strategies

    def check(bound: Any, form: Any, factors: Any, place: str) -> None:
        checked.append((bound, form))
        own(bound, form, factors, place)

    monkeypatch.setattr(tofu.partitioner.plans.plan, "check_strategies", check)
    plan.check_forms(graph)
    assert len(checked) == len({operation.bound for operation in graph.operations}) < len(graph.operations)
    last = next(
        o for o in reversed(graph.operations) if sum(p.bound == o.bound for p in graph.operations) > 1
    )
    bad = dataclasses.replace(plan, strategies={**plan.strategies, last.name: Spread((("no", 2),), (0, 1))})
    with pytest.raises(PlanError, match=re.escape(f"operation {last.name!r}")):
        bad.check_forms(graph)
