"""A lower bound on the memory of plans in steps, with the scratch of kernels.

    k * memory  >=  max over i of live[i]                  +  sum over w of scratch[o, w]
    k * memory  >=  live[o]  +  sum over w of apart[o, w]  +  sum over w of scratch[o, w]

for the fullest of k workers w, and all operations i and o, since every worker holds its arena and the scratch
of its largest kernel at once. `live` is the least that is live while an operation computes (`live_bytes`). An
output that overwrites a tensor shares the memory of an input, or it has memory of its own, which does not
count in `live`: `apart`. The bound is the largest, over all o, of the least over the strategies of o. An
operation is known not to raise it as soon as one strategy needs little, so few kernels are prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import combinations
from math import prod

from ...analyzer.indices.region import Boxes, Region
from ...dataflow.graph import Graph, Operation
from ..layouts.choices import operator_choices, splittable
from .live_bytes import LiveBytes
from .sequences import all_sequences, sequence_count

SEQUENCE_LIMIT = 512
"""Operations with more strategies are left out."""

ELEMENT_LIMIT = 1 << 22
"""Operations on larger tensors are left out, because it takes seconds to prepare their kernels."""

Scratch = Callable[[Operation, Region, Mapping[str, Region], tuple[Region, ...], Collection[int]], int]
"""Returns the least scratch of an operation's kernel for a box, given the regions that it reads and makes,
and which outputs share memory with the tensors that they overwrite."""


def least_with_scratch(live_bytes: LiveBytes, workers: int, scratch: Scratch | None) -> int:
    """Return a lower bound on the memory of the fullest worker; without `scratch`, on its arena."""
    if scratch is None:
        return live_bytes.least_bytes(workers)
    problem = live_bytes.problem
    graph, factors = problem.graph, problem.objective.factors(workers)
    live = live_bytes.least_totals(workers)
    different: dict[tuple[object, ...], Operation] = {}
    for operation in sorted(graph.operations, key=lambda operation: live[operation.index]):
        dtypes = (graph.tensors[tensor].dtype for tensor in _used(operation))
        different[operation.bound, *dtypes] = operation
    fullest, most = max(live, default=0), 0
    for operation in sorted(different.values(), key=lambda operation: -_largest(graph, operation)):
        few = sequence_count(splittable(operation.bound), factors, True) <= SEQUENCE_LIMIT
        if few and _largest(graph, operation) <= ELEMENT_LIMIT:
            below = fullest - live[operation.index]
            most = max(most, _least(graph, operation, factors, below, most, scratch))
    return -(-(fullest + most) // workers)


def _used(operation: Operation) -> tuple[int, ...]:
    return *operation.inputs, *operation.outputs


def _largest(graph: Graph, operation: Operation) -> int:
    return max(prod(graph.tensors[tensor].shape) for tensor in _used(operation))


def _least(
    graph: Graph, operation: Operation, factors: tuple[int, ...], below: int, enough: int, scratch: Scratch
) -> int:
    """Return the least by which an operation raises the bound over its strategies, or any that is `enough`.

    While it computes, `below` bytes less are live than at the fullest operation.
    """
    bound = operation.bound
    choices = operator_choices(bound, all_sequences(splittable(bound), factors, True), factors)
    overwriting = [k for k, output in enumerate(operation.outputs) if graph.tensors[output].alias is not None]
    itemsizes = [graph.tensors[output].itemsize for output in operation.outputs]
    shared = [each for n in range(len(overwriting) + 1) for each in combinations(overwriting, n)]
    least: int | None = None
    for choice in range(len(choices.sequences)):
        kernels = both = 0
        for worker in range(choices.boxes.shape[1]):
            place = choice, worker
            inputs = {name: _region(regions, place) for name, regions in choices.inputs.items()}
            outputs = tuple(_region(regions, place) for regions in choices.outputs)
            sizes = [itemsize * _size(region) for itemsize, region in zip(itemsizes, outputs, strict=True)]
            box = _region(choices.boxes, place)
            needed = [scratch(operation, box, inputs, outputs, each) for each in shared]
            apart = [sum(sizes[k] for k in overwriting if k not in each) for each in shared]
            kernels += min(needed)
            both += min(map(sum, zip(needed, apart, strict=True)))
            if least is not None and max(kernels, both - below) >= least:
                break
        else:
            least = max(kernels, both - below)
            if least <= enough:
                return least
    return least or 0


def _size(region: Region) -> int:
    return prod(upper - lower for lower, upper in region)


def _region(boxes: Boxes, place: tuple[int, int]) -> Region:
    return tuple((int(lower), int(upper)) for lower, upper in boxes[place])
