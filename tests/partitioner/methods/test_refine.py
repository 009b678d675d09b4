"""Refinement is never worse than what it starts from, and finds what recursion misses."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tofu.partitioner import partition

from .training_graphs import spaces

TOY = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@spaces
@TOY
@given(data=st.data())
def test_refining_never_makes_its_starts_worse(data, draw_graph, replicate):
    graph = data.draw(draw_graph(max_operations=5))
    workers = data.draw(st.sampled_from([4, 6, 8, 12]))
    refined = partition(graph, workers, method="refine", replicate=replicate, keep=False)
    assert refined.lower_bound_bytes <= refined.cost_bytes
    for start in ("recursive", "equal-chop"):
        assert (
            refined.cost_bytes
            <= partition(graph, workers, method=start, replicate=replicate, keep=False).cost_bytes
        )


def test_refining_finds_what_recursion_misses(toy, texts):
    """The best first step is not part of the best plan."""
    builder = toy()
    a, b, c = builder.tensor(16, 12), builder.tensor(12, 2), builder.tensor(2, 16)
    product = builder.apply(texts["MATMUL"], builder.apply(texts["MATMUL"], a, b), c)
    builder.apply(texts["RELU"], product)
    graph = builder.graph()
    costs = {
        m: partition(graph, 8, method=m, replicate=False, keep=False).cost_bytes
        for m in ("recursive", "refine")
    }
    assert costs["refine"] < costs["recursive"]
