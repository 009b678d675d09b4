"""Every move and start of `anneal` can be left out."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tofu
from benchmarks.anneal_moves import WITHOUT


@pytest.mark.parametrize("left_out", WITHOUT)
def test_a_plan_is_found_without_it(left_out: str) -> None:
    graph = tofu.models.get("mlp").training_graph()
    with ExitStack() as stack:
        for each in WITHOUT[left_out]():
            stack.enter_context(each)
        plan = tofu.partition(graph, 4, "anneal", machine="p100-node", proposals=2)
    tofu.verify(graph, plan)
    assert plan.method == "anneal"
