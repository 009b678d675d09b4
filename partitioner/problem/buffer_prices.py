"""Count the elements in the buffers that an operation needs besides homes, and add their price to tables.

While an operation computes, each worker holds

* the region that it reads of an input: in a buffer, unless it lies in the worker's part of the home;
* the region that it produces of an output: in a buffer, or in its part of the home;
* what it will read itself of its part of the home of another tensor; all workers together hold each tensor.

A plan of some of the steps is refined by later steps. Counts for it are at most those of all refinements: of
reads, they have at least the elements that lie outside of the parts of homes. So do counts if the order of
later steps is open (`any_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...analyzer.indices.region import Boxes, volume
from ..costs.box_counts import overlap
from ..costs.least_counts import least_outside
from ..layouts.choices import Counts, OperatorChoices, TensorChoices
from ..layouts.uses import Use
from ..solvers.elimination import CostTable
from .links import Link
from .problem import BufferPrice, BufferPrices, HeldPart


def buffer_elements(
    operator: OperatorChoices,
    tensor: TensorChoices,
    use: Use,
    held: HeldPart,
    steps: int,
    open_order: int | None = None,
) -> Counts:
    """Count the elements of a link that workers hold: `[operator choices, tensor choices]`.

    Of several reads of a tensor, which may share a buffer, the largest counts. `steps` are those of a whole
    plan. `open_order` is that of the problem.
    """
    shape = len(operator.sequences), len(tensor.sequences)
    if isinstance(use, int):
        return np.broadcast_to(volume(operator.outputs[use]).sum(axis=-1)[:, None], shape)
    if open_order is not None and held is not HeldPart.READ:
        return _held_in_any_order(operator, tensor, use, held, open_order)
    refined = len(tensor.sequences[0]) < steps
    largest = np.zeros(1, np.int64)
    for name in use:
        needed = operator.inputs[name][:, None]
        counts = _held_by_worker(needed, tensor.regions[None], held, refined)
        largest = np.maximum(largest, counts)
    total: Counts = largest.sum(axis=-1)
    least = prod(tensor.shape) if held is HeldPart.KEPT else 0
    return np.broadcast_to(np.maximum(total, least), shape)


def _held_in_any_order(
    operator: OperatorChoices, tensor: TensorChoices, use: tuple[str, ...], held: HeldPart, groups: int
) -> Counts:
    """Count the elements that are held at least, whatever the order of the steps after the groups."""
    if held is HeldPart.KEPT:
        return np.full((len(operator.sequences), len(tensor.sequences)), prod(tensor.shape))
    lacking = [least_outside(operator.inputs[name], tensor.regions, groups) for name in use]
    return np.asarray(np.maximum.reduce(lacking), np.int64)


def _held_by_worker(needed: Boxes, owned: Boxes, held: HeldPart, refined: bool) -> Counts:
    """Count the elements of one read: `[operator choices, tensor choices, workers]`."""
    if held is HeldPart.READ:
        return volume(needed)
    common = overlap(needed, owned)
    if held is HeldPart.KEPT:
        return common * (not refined)
    size = volume(needed)
    return size - common if refined else np.where(common == size, 0, size)


def with_buffer_prices(
    prices: BufferPrices,
    links: Sequence[Link],
    cost_tables: Sequence[CostTable],
    operators: Sequence[OperatorChoices],
    tensors: Sequence[TensorChoices],
    open_order: int | None,
) -> list[CostTable]:
    """Add the price of what workers hold of links to their tables. Equal tables stay one table."""
    priced = list(cost_tables)
    known: dict[tuple[int, int, int, Use, tuple[BufferPrice, ...]], CostTable] = {}
    for number, link in enumerate(links):
        found = prices.of.get((link.operator, link.tensor, link.use))
        if found is None:
            continue
        scope, table = cost_tables[number]
        operator, tensor = operators[link.operator], tensors[link.tensor]
        key = id(table), id(operator), id(tensor), link.use, found
        if key not in known:
            for held, price in found:
                elements = buffer_elements(operator, tensor, link.use, held, prices.steps, open_order)
                table = table + elements * price.numerator // price.denominator
            known[key] = CostTable(scope, table)
        priced[number] = CostTable(scope, known[key].table)
    return priced
