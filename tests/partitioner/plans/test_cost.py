"""Costs in both units."""

from __future__ import annotations

from tofu.partitioner.plans.cost import Cost, CostUnit


def test_a_cost_has_a_value_in_its_own_unit_only():
    size, time = Cost(3, CostUnit.BYTES), Cost(2_500_000_000_000, CostUnit.PICOSECONDS)
    assert (size.bytes, size.seconds, str(size)) == (3, None, "3 bytes")
    assert (time.bytes, time.seconds, str(time)) == (None, 2.5, "2500000000000 picoseconds")
