"""Machines without one of their features."""

from __future__ import annotations

import pytest

from tofu.machines import load
from tofu.partitioner.methods.autodist.auto.reasons import (
    MACHINE_FEATURES,
    without_flow_limits,
    without_heterogeneity,
    without_hierarchy,
    without_latency,
)

from .stacked import star


def test_a_uniform_machine_has_none_of_them() -> None:
    uniform = star(4, slow=None, rails=1, latency=0)
    assert [name for name, change in MACHINE_FEATURES.items() if change(uniform) != uniform] == []


def test_each_feature_is_taken_away_alone() -> None:
    machine = star(4)
    slow, fast = machine.path(0, 3), machine.path(0, 1)
    assert (slow.bytes_per_second, fast.bytes_per_second) == (1.25e9, 2.5e9)
    assert without_latency(machine).path(0, 3).latency_seconds == 0
    assert without_latency(machine).path(0, 3).bytes_per_second == 1.25e9
    assert without_heterogeneity(machine).path(0, 3).bytes_per_second == 2.5e9
    assert without_flow_limits(machine).path(0, 1).bytes_per_second == 10e9
    assert without_flow_limits(machine).path(0, 3).bytes_per_second == 1.25e9
    assert without_hierarchy(machine) == machine


@pytest.mark.parametrize("name", ["2x-k80-node", "pcie-8"])
def test_devices_without_hierarchy_are_neighbours(name: str) -> None:
    machine = load(name)
    flat = without_hierarchy(machine)
    assert {len(flat.path(0, other).lanes) for other in range(1, 8)} == {2}
    assert {flat.path(0, other).bytes_per_second for other in range(1, 8)} == {15.75e9}
    assert without_heterogeneity(machine) == machine
