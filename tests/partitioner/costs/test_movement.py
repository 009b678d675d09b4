"""Who reads what from whom, for every operation of the toy graphs: against sets of elements."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tofu.errors import PlanError
from tofu.partitioner import partition
from tofu.partitioner.costs.movement import Movements
from tofu.partitioner.costs.plan_bytes import count
from tofu.partitioner.layouts.step_split import Layout


def element_set(region):
    return set(itertools.product(*(range(lower, upper) for lower, upper in region)))


def check(assembly, target, held, reader):
    """Assert that an assembly is the target, of what is `held`; return what comes from other workers."""
    pieces = [element_set(region) for _, region in assembly.parts]
    assert set().union(*pieces) == element_set(target)
    assert sum(map(len, pieces)) == len(element_set(target))
    for (source, _), piece in zip(assembly.parts, pieces, strict=True):
        assert piece <= element_set(held[source])
    away = [piece for (source, _), piece in zip(assembly.parts, pieces, strict=True) if source != reader]
    assert assembly.fetched_elements == sum(map(len, away))
    return assembly.fetched_elements


@pytest.mark.parametrize("workers", [2, 6])
def test_assemblies_are_what_workers_need_and_as_many_bytes_as_counted(graph, workers):
    plan = partition(graph, workers, keep=False)
    movements = Movements(workers, plan.factors)
    moved = 0
    for operation in graph.operations:
        operator = movements.operator(operation.bound, plan.strategies[operation.name])
        needs = dict.fromkeys(
            (tensor, operator.inputs[name])
            for name, tensor in zip(operation.bound.description.tensor_names, operation.inputs, strict=True)
            if name in operator.inputs
        )
        seen = set()
        for tensor, needed in needs:
            owned = movements.layout(plan.layouts[graph.tensors[tensor].name])
            for worker, assembly in enumerate(movements.fetches(needed, owned)):
                region = needed.regions[worker]
                if isinstance(assembly, int):
                    assert owned.workers[assembly] == worker
                    assert element_set(region) <= element_set(owned.regions[assembly])
                elif (tensor, worker, region) not in seen:
                    seen.add((tensor, worker, region))
                    fetched = check(assembly, region, owned.regions, worker)
                    moved += fetched * graph.tensors[tensor].itemsize
        for output, tensor in enumerate(operation.outputs):
            owned = movements.layout(plan.layouts[graph.tensors[tensor].name])
            for worker, terms in enumerate(movements.collections(operator.outputs[output], owned)):
                assert len(terms) == (operator.outputs[output].terms if owned.elements[worker] else 0)
                for term, assembly in enumerate(terms):
                    held = [
                        region if mine == term else ((0, 0),) * len(region)
                        for region, mine in zip(
                            operator.outputs[output].regions, operator.outputs[output].term, strict=True
                        )
                    ]
                    fetched = check(assembly, owned.regions[worker], held, worker)
                    moved += fetched * graph.tensors[tensor].itemsize
    assert moved == sum(c.bytes for c in count(graph, plan.layouts, plan.strategies, plan.factors))
    assert moved == plan.cost_bytes


def test_equal_regions_are_one_object():
    movements = Movements(4, (2, 2))
    first = movements.layout(Layout((4, 4), (0, 1), (2, 2)))
    assert movements.layout(Layout((4, 4), (0, 1), (2, 2))) is first
    assert movements.fetches(first, first) == (0, 1, 2, 3)


def test_a_layout_with_gaps_is_refused():
    movements = Movements(2, (2,))
    needed = movements.layout(Layout((4,), (None,), (2,)))
    owned = replace(needed, regions=(((0, 2),), ((3, 4),)), elements=(2, 1))
    with pytest.raises(PlanError, match=r"worker 0 needs \[0:4\], but no worker holds some of it"):
        movements.fetches(needed, owned)
