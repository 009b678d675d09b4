"""The parts of a plan are those that the checker, which shares no code, reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu.partitioner.checking.plain_forms import plain_parts
from tofu.partitioner.layouts.forms import Parts
from tofu.partitioner.layouts.parts import holdings, tasks, without_part
from tofu.partitioner.layouts.step_split import Layout
from tofu.plans import Task

from ..lowering.test_assignments import network, random_plan


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_those_of_the_checker(seed: int) -> None:
    workers = 2 + seed
    graph: Any = network("mlp")
    plan = random_plan(graph, workers, seed)
    for tensor in graph.tensors:
        layout = plan.layouts[tensor.name]
        whole = tuple((0, extent) for extent in tensor.shape)
        expected = plain_parts(layout.form, whole, range(len(whole)), plan.factors, workers, "")
        found = holdings(layout)
        assert sorted((p.worker, p.region, p.term or 0) for p in found) == sorted(expected)
        assert set(without_part(found, workers)) == set(range(workers)) - {worker for worker, *_ in expected}
    for operation in graph.operations:
        bound, form = operation.bound, plan.strategies[operation.name]
        whole = tuple((0, bound.extents[variable]) for variable in bound.variables)
        expected = plain_parts(form, whole, bound.variables, plan.factors, workers, "")
        found = tasks(bound, form, plan.factors)
        assert sorted((p.worker, p.box, p.read or 0) for p in found) == sorted(expected)
        assert len({part.term for part in found}) == len({term_key(bound, part) for part in found})


def term_key(bound: Any, part: Task) -> object:
    """The term that a task reads, and its part of the reduction: these tell partial results apart."""
    reduced = [at for at, variable in enumerate(bound.variables) if bound.kind(variable) == "reduce"]
    return part.read, tuple(part.box[at] for at in reduced)


def test_dimensions_are_cut_by_the_bounds_of_all_parts() -> None:
    for form, cuts in (
        ((0, 1, 0), (4, 2)),
        ((None, None, None), (1, 1)),
        (Parts(((0, ((0, 3), (0, 8))), (1, ((3, 8), (0, 2))), (1, ((3, 8), (2, 8))))), (2, 2)),
    ):
        assert Layout((8, 8), form, (2, 2, 2)).parts == cuts
    assert Layout((0, 4), (None,), (2,)).parts == (1, 1)
    assert Layout((), (None,), (2,)).parts == ()
    assert np.prod(Layout((9, 9), (0, 0, 1), (2, 2, 2)).parts) == 8
