"""The choice of servers against brute force: the optimum, or a bound below it and a load above it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.autodist.auto.servers import Items, choose


@st.composite
def instances(draw: st.DrawFn) -> tuple[list[Items], np.ndarray]:
    """Return up to six items of up to three kinds, with up to three options and four lanes."""
    lanes = draw(st.integers(1, 4))
    load = st.integers(0, 20)
    kinds = []
    for _ in range(draw(st.integers(1, 3))):
        options = draw(st.integers(1, 3))
        row = st.lists(load, min_size=lanes, max_size=lanes)
        loads = draw(st.lists(row, min_size=options, max_size=options))
        kinds.append(Items(draw(st.integers(1, 2)), np.array(loads, float)))
    return kinds, np.array(draw(st.lists(load, min_size=lanes, max_size=lanes)), float)


def least(kinds: list[Items], base: np.ndarray) -> float:
    """Return the least load of the busiest lane over all choices."""
    items = [kind.loads for kind in kinds for _ in range(kind.count)]
    return min(
        float((base + sum(loads[option] for loads, option in zip(items, chosen, strict=True))).max())
        for chosen in product(*(range(len(loads)) for loads in items))
    )


@settings(max_examples=150, deadline=None)
@given(instances())
def test_the_optimum_is_found_and_proven(instance: tuple[list[Items], np.ndarray]) -> None:
    kinds, base = instance
    found, optimum = choose(kinds, base), least(kinds, base)
    assert found.load == pytest.approx(optimum)
    assert found.lower_bound == pytest.approx(optimum)
    loads = base + sum(k.loads[list(o)].sum(axis=0) for k, o in zip(kinds, found.options, strict=True))
    assert found.load == pytest.approx(loads.max())
    assert [len(chosen) for chosen in found.options] == [kind.count for kind in kinds]


@settings(max_examples=150, deadline=None)
@given(instances(), st.integers(0, 3))
def test_the_gap_is_stated_if_the_search_is_cut_short(
    instance: tuple[list[Items], np.ndarray], nodes: int
) -> None:
    kinds, base = instance
    found, optimum = choose(kinds, base, nodes), least(kinds, base)
    assert found.lower_bound <= optimum * (1 + 1e-9) <= found.load * (1 + 1e-8)
    assert found.nodes <= nodes
    assert found.gap == pytest.approx(1 - found.lower_bound / found.load if found.load else 0)


def machines(count: int, sizes: list[float]) -> list[Items]:
    """Return jobs of these sizes for equal machines."""
    return [Items(1, size * np.eye(count)) for size in sizes]


def test_jobs_on_equal_machines() -> None:
    """Longest first gives 11; the optimum is 9."""
    found = choose(machines(3, [5.0, 5, 4, 4, 3, 3, 3]), np.zeros(3))
    assert found.load == found.lower_bound == 9


def test_the_bound_is_at_least_the_average_and_the_largest_job() -> None:
    for sizes in ([3.0, 3, 3, 3, 3], [9.0, 1, 1]):
        found = choose(machines(2, sizes), np.zeros(2), nodes=0)
        assert found.lower_bound >= max(sum(sizes) / 2, max(sizes)) - 1e-9
        assert found.load >= max(sizes)


def test_equal_items_are_collapsed() -> None:
    """Forty equal jobs on four machines have 4 ** 40 placements."""
    found = choose([Items(40, np.eye(4))], np.array([0.0, 0, 0, 5]))
    assert found.load == found.lower_bound == 12
    assert found.nodes < 20_000
