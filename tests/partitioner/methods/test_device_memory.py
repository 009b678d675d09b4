"""Devices that differ in memory: each worker has the limit of its own, whatever method finds the plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.dataflow.graph import Graph
from tofu.errors import PlanError
from tofu.machines.machine import Machine
from tofu.machines.machine_file import decode_machine
from tofu.partitioner.lowering.arenas import Arenas
from tofu.partitioner.methods.limit import highest_limit, parse_limit, worker_limits
from tofu.programs.memory import plan_memory

LARGE, SMALL = 9_000_000, 2_000_000


def unequal(*memories: int) -> Machine:
    """Return a machine whose devices have the given bytes."""
    kind = {"rates": {"float32": "15 TFLOP/s"}, "memory_bandwidth": "900 GB/s", "kernel_start": "1 us"}
    return decode_machine(
        {
            "machine": "unequal",
            "levels": [{"name": "gpu", "bandwidth": "25 GB/s"}],
            "devices": [{"name": f"gpu{n}", "kind": f"of{nbytes}"} for n, nbytes in enumerate(memories)],
            "kinds": {f"of{nbytes}": {**kind, "memory": f"{nbytes} B"} for nbytes in memories},
        }
    )


def graph() -> Graph:
    return tofu.models.get("mlp", batch=64).training_graph()


def arenas(plan: tofu.Plan) -> tuple[int, ...]:
    return tuple(plan_memory(tofu.lower(plan.graph, plan)).arena_bytes)


def test_limits_are_those_of_the_devices() -> None:
    machine = unequal(LARGE, SMALL, LARGE)
    limit = parse_limit(None, "memory", machine)
    assert worker_limits(limit, 3) == (LARGE, SMALL, LARGE)
    assert highest_limit(limit, 3) == (LARGE, (0, LARGE - SMALL, 0))
    assert highest_limit(limit, 1) == (LARGE, ())
    given = parse_limit("5 MB", "memory", machine)
    assert worker_limits(given, 3) == (5_000_000,) * 3
    assert highest_limit(given, 3) == (5_000_000, ())
    assert worker_limits(parse_limit("unlimited", "memory", machine), 3) is None


@pytest.mark.parametrize("withheld", [(), (0, 500_000), (700_000, 0)])
def test_arenas_count_what_is_withheld(withheld: tuple[int, ...]) -> None:
    built = graph()
    plan = tofu.partition(built, 2, "pardnn", machine="dgx-1-v100")
    lacking = withheld or (0, 0)
    expected = max(sum(each) for each in zip(arenas(plan), lacking, strict=True))
    assert Arenas(built).largest(plan, withheld) == expected


@pytest.mark.parametrize("memories", [(LARGE, SMALL), (SMALL, LARGE)])
@pytest.mark.parametrize("method", ["pardnn", "place", "recursive"])
def test_each_worker_fits_its_own_device(method: str, memories: tuple[int, int]) -> None:
    machine = unequal(*memories)
    plan = tofu.partition(graph(), 2, method, machine=machine)
    assert all(needed <= has for needed, has in zip(arenas(plan), memories, strict=True))


def test_a_worker_that_does_not_fit_is_named() -> None:
    with pytest.raises(PlanError, match=r"worker 1 needs .* but that worker may hold 100,000;"):
        tofu.partition(graph(), 2, "data-parallel", machine=unequal(LARGE, 100_000))
    with pytest.raises(PlanError, match=r"worker 0 needs .* but each worker may hold 100,000;"):
        tofu.partition(graph(), 2, "data-parallel", machine=unequal(LARGE, SMALL), memory=100_000)


def test_workers_that_share_a_device_share_its_memory() -> None:
    machine = replace(unequal(LARGE, SMALL), worker_devices=(0, 0, 1))
    assert worker_limits(parse_limit(None, "memory", machine), 3) == (LARGE // 2, LARGE // 2, SMALL)


def test_groups_have_the_memory_of_their_smallest_device() -> None:
    """Two groups of two: what a group's workers share evenly must fit the smaller device of both."""
    plan = tofu.partition(graph(), 4, "place", machine=unequal(SMALL, LARGE, LARGE, SMALL), groups="2x2")
    limits = SMALL, LARGE, LARGE, SMALL
    assert all(needed <= has for needed, has in zip(arenas(plan), limits, strict=True))
