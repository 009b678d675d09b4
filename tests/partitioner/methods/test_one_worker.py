"""Nearly every method plans for one worker, which does all."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner.methods.method import every_method

OTHERS = {"byteps", "wu-2016", "manual"}
"""Methods that need servers, recurrent layers or layouts."""


@pytest.mark.parametrize("method", sorted(every_method().keys() - OTHERS))
def test_nothing_moves(method: str) -> None:
    """Many operations have no dimension along which they can be split then, and there is no link."""
    graph = tofu.models.get("transformer-1-8", batch=2, steps=3, vocabulary=9).training_graph()
    known = every_method()[method]
    machine = {"machine": "p100-node"} if known.simulates else {}
    budget = {"proposals": 2} if known.draws else {}
    plan = tofu.partition(graph, 1, method, **machine, **budget)
    tofu.verify(graph, plan)
    assert plan.cost_bytes == 0
