"""A chain finds the optimum of a small space."""

from __future__ import annotations

from itertools import product

import pytest

import tofu
from benchmarks import optimum

NETWORKS = {
    "lenet": {"batch": 16},
    "lstm": {"batch": 8, "steps": 2, "hidden": 64, "layers": 1},
}


@pytest.mark.parametrize("model", ["lstm", pytest.param("lenet", marks=pytest.mark.slow)])
def test_the_chain_ends_at_the_optimum(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimum, "CHOICES", 4)
    monkeypatch.setattr(optimum, "SECONDS", 30.0)
    small = optimum.Small(tofu.models.get(model, **NETWORKS[model]).training_graph())
    best, count = small.optimum()
    assert 0 < count <= 4 ** len(small.layers)
    costs = {small.walk(numbers).cost for numbers in product(range(4), repeat=len(small.layers))}
    assert best == min(costs)
    assert best < max(costs)
    assert small.search(best, seed=0)[0] == best
