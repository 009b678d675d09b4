"""The budget of a random search, and what its watch is told."""

from __future__ import annotations

import time

from tofu.partitioner.methods.budget import Budget
from tofu.partitioner.methods.simulated import SearchProgress
from tofu.partitioner.plans.sampling import Sampling


def test_the_watch_is_told_of_each_better_plan_at_once_and_of_others_rarely() -> None:
    seen: list[SearchProgress] = []
    budget = Budget(Sampling(), seen.append)
    for found in (5_000, 4_000, 6_000, 4_000, 3_000):
        budget.show(found)
    assert [each.seconds for each in seen] == [5e-6, 4e-6, 3e-6]
    time.sleep(0.11)
    budget.show(7_000, 2, 5, 40, 8.0)
    assert seen[-1] == SearchProgress(3e-6, 2, 5, 40, 8.0), "the best plan so far, not the last one"
    assert len(seen) == 4


def test_seconds_count_from_the_start_and_no_limit_is_never_spent() -> None:
    free, short = Budget(Sampling(), None), Budget(Sampling(seconds=0.05), None)
    left = short.left
    assert left is not None
    assert 0 < left <= 0.05
    assert not short.spent
    time.sleep(0.06)
    assert short.left == 0.0
    assert short.spent
    assert free.left is None
    assert not free.spent
