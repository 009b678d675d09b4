"""Steps that are not proven: what is kept of a bound, and of a large table."""

from __future__ import annotations

from tofu.partitioner.plans.cost import Cost, CostUnit
from tofu.partitioner.plans.unproven import ENTRIES_COUNTED, UnprovenStep, too_wide, unbounded


def test_only_bounds_in_bytes_are_kept():
    assert too_wide(1, 100, Cost(7, CostUnit.BYTES)) == UnprovenStep(1, 100, 7)
    assert too_wide(1, 100, Cost(7, CostUnit.PICOSECONDS)) == UnprovenStep(1, 100, None)
    assert too_wide(None, 100, None) == UnprovenStep(None, 100, None)


def test_entries_are_capped():
    assert too_wide(0, ENTRIES_COUNTED + 1, None) == too_wide(0, ENTRIES_COUNTED, None)


def test_later_changes_take_the_bounds_away():
    steps = (UnprovenStep(0, 10, 3), UnprovenStep(2, 20, None))
    assert unbounded(steps) == (UnprovenStep(0, 10, None), UnprovenStep(2, 20, None))
