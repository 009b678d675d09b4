"""The promises of every form of a layout; a new one is a case of `LAYOUTS`.

Regions lie in the tensor and together cover it, replicas aside, and whatever layouts and strategies are
chosen, lowering makes programs that an independent checker accepts and that fetch what was counted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tofu.analyzer.indices.region import to_region
from tofu.partitioner import Layout, lower, partition
from tofu.partitioner.checking.check_plan import verify
from tofu.partitioner.costs.plan_bytes import count_bytes
from tofu.programs.check_memory import check_memory
from tofu.programs.check_program import check_program
from tofu.programs.memory import plan_memory
from tofu.programs.plain_regions import check_tiling
from tofu.programs.schedule import schedule

FACTORS = (2, 2)


def replicated(shape):
    return Layout(shape, (None, None), FACTORS)


def on_one_axis(shape):
    axis = next((axis for axis, extent in enumerate(shape) if extent >= 4), None)
    return Layout(shape, (axis, axis), FACTORS)


def half_replicated(shape):
    axis = next((axis for axis, extent in enumerate(shape) if extent >= 2), None)
    return Layout(shape, (axis, None), FACTORS)


def on_a_mesh(shape):
    axes = [axis for axis, extent in enumerate(shape) if extent >= 2][:2]
    return Layout(shape, (*axes, None, None)[:2], FACTORS)


LAYOUTS = {
    "replicated": replicated,
    "on one axis": on_one_axis,
    "half replicated": half_replicated,
    "on a mesh": on_a_mesh,
}

layouts = pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)


@layouts
@pytest.mark.parametrize("shape", [(4,), (5, 7), (8, 1, 3), (2, 2), (1,), ()])
def test_regions_cover_the_tensor_once_or_in_whole_replicas(make, shape):
    layout = make(shape)
    layout.check("here")
    regions = [to_region(box) for box in layout.regions]
    assert len(regions) == 4
    check_tiling(tuple((0, extent) for extent in shape), regions, "here")


@layouts
def test_any_layout_lowers_to_programs_that_fetch_what_is_counted(graph, make):
    found = partition(graph, 4, keep=False)
    chosen = {tensor.name: make(tensor.shape) for tensor in graph.tensors}
    totals = count_bytes(graph, chosen, found.strategies, FACTORS)
    plan = replace(
        found,
        layouts=chosen,
        cost_bytes=totals[-1],
        step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
        lower_bound_bytes=0,
        unproven=(),
    )
    plan.verify(graph)
    verify(graph, plan)
    programs = lower(graph, plan)
    check_program(graph, 4, totals[-1], programs)
    memory = plan_memory(programs)
    check_memory(programs, memory.offsets, memory.arena_bytes, schedule(programs, memory).waits)


def test_layouts_differ_in_what_they_move(graph):
    """Otherwise the test above would say little."""
    found = partition(graph, 4, keep=False)
    moved = {
        name: count_bytes(
            graph, {tensor.name: make(tensor.shape) for tensor in graph.tensors}, found.strategies, FACTORS
        )[-1]
        for name, make in LAYOUTS.items()
    }
    assert len(np.unique(list(moved.values()))) > 1
