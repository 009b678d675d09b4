"""The benchmark of accuracy has valid plans, and says whether what must hold does."""

from __future__ import annotations

from typing import Any

import tofu
from benchmarks.accuracy import PLANS, WORKERS, summary


def test_plans_are_valid_and_differ() -> None:
    graph = tofu.models.get("lenet", batch=8).training_graph()
    plans = {name: make(graph) for name, make in PLANS.items()}
    for plan in plans.values():
        assert plan.workers == WORKERS
        tofu.verify(graph, plan)
    halves = tofu.lower(graph, plans["halves"])
    assert all(program.instructions for program in halves.programs)
    assert len({plan.cost_bytes for plan in plans.values()}) > 2


def row(model: str, plan: str, seconds: float, error: float, spread: float = 0.01) -> dict[str, Any]:
    return {
        "model": model,
        "plan": plan,
        "seconds": seconds,
        "simulated_seconds": seconds * (1 + error),
        "error": error,
        "spread": spread,
        "unseen_error": 2 * error,
    }


def test_what_must_hold() -> None:
    good = [row("a", "one", 1.0, 0.19), row("a", "two", 1.5, -0.05), row("b", "one", 9.0, 0.01)]
    found = summary(good, {"error": 0.01})
    assert found["holds"]
    assert (found["pairs"], found["largest_error"], found["median_error"]) == (1, 0.19, 0.05)
    assert found["median_unseen_error"] == 0.1
    assert not summary(good, {"error": 0.06})["holds"]
    assert not summary([*good, row("c", "one", 1.0, -0.21)], {"error": 0.0})["holds"]
    assert not summary([row("a", "one", 1.0, 0.09), row("b", "one", 1.0, 0.1)], {"error": 0.0})["holds"]


def test_pairs_in_the_wrong_order_are_named_unless_they_are_noise() -> None:
    wrong = [row("a", "one", 1.0, 0.07), row("a", "two", 1.05, -0.07)]
    found = summary(wrong, {"error": 0.0})
    assert found["pairs_out_of_order"] == ["a: one, two"]
    assert not found["holds"]
    noise = [row("a", "one", 1.0, 0.07, spread=0.06), row("a", "two", 1.05, -0.07)]
    assert summary(noise, {"error": 0.0})["holds"]
