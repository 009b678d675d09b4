from __future__ import annotations

import pytest

from tofu import models
from tofu.dataflow.graph import Graph
from tofu.partitioner import partition

DEEP = {"char-crn-2", "e3d", "e3d-2", "trn", "trn-2", "word-rnn-2", "wresnet-304-28", "wresnet-610-14"}
"""Models of thousands of operations that differ, which take from 3 to 40 seconds each."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in DEEP else name for name in models.names()],
)
def test_every_model_plans_over_eight_workers(name: str) -> None:
    """At its default batch; all that are not deep are meant to take less than a minute together."""
    graph = models.get(name).training_graph()
    plan = partition(graph, workers=8)
    assert plan.workers == 8
    assert plan.lower_bound_bytes <= plan.cost_bytes
    assert 0 < plan.cost_bytes == sum(plan.step_cost_bytes)


def strategies(graph: Graph, operation: str) -> dict[str, str | None]:
    """The variables of an operation that can be split, each with its kind."""
    (found,) = (o for o in graph.operations if o.name == operation)
    return {s.variable: s.kind for s in found.bound.strategies}


def test_attention_is_split_over_heads() -> None:
    """No rule says so: the head is an index variable of each operator from the first product to the last."""
    graph = models.get("gpt-2-512", batch=1, steps=64, vocabulary=100, dropout=0).training_graph()
    assert strategies(graph, "layer0_attention_scores") == dict.fromkeys(("b1", "i", "j"), "concat") | {
        "k": "reduce"
    }
    plan = partition(graph, workers=8)
    for role, head in (("scores", "b1"), ("mask", "h"), ("softmax", "i1"), ("read", "b1"), ("query", "h")):
        assert plan.strategies[f"layer1_attention_{role}"] == (head,) * 3, role
    assert plan.strategies["layer1_attention_softmax.grad.projection"] == ("i1",) * 3


def test_a_causal_mask_can_be_split_anywhere() -> None:
    graph = models.get("gpt-1-64", batch=2, steps=8, vocabulary=10).training_graph()
    (mask,) = (o for o in graph.operations if o.name == "layer0_attention_mask")
    found = {s.variable: s.needs_offset for s in mask.bound.strategies}
    assert found == {"n": False, "i": True, "j": True}
