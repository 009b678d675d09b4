"""The parts of tensors and operations that a plan gives its workers, as far as they can be drawn."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes
from ...partitioner.layouts.forms import Form, Workers
from ...partitioner.layouts.step_split import Layout, OperationParts, is_stepped, split_operation
from .marks import Drawing
from .tensor import caption, tensor_drawing
from .tiles import plane_of_parts

DRAWN_WORKERS = 64
"""If there are more workers than this, groups of workers are drawn: those that the first steps make."""


def drawn_steps(factors: tuple[int, ...]) -> int:
    """Return how many steps leave no more groups than are drawn."""
    groups, steps = 1, 0
    for factor in factors:
        groups *= factor
        if groups > DRAWN_WORKERS:
            break
        steps += 1
    return steps


def drawn_holdings(layout: Layout) -> tuple[Workers, Boxes]:
    """Return who holds which regions of a tensor, by groups of workers if there are too many to draw."""
    steps = drawn_steps(layout.factors)
    form, factors = layout.form, layout.factors
    if isinstance(form, tuple) and is_stepped([form]):
        layout = Layout(layout.shape, form[:steps], factors[:steps])
        return layout.workers, layout.regions
    return layout.workers // prod(factors[steps:]), layout.regions


def drawn_tasks(bound: Bound, form: Form, factors: tuple[int, ...]) -> OperationParts:
    """Return the tasks of an operation, by groups of workers if there are too many to draw."""
    steps = drawn_steps(factors)
    if isinstance(form, tuple) and is_stepped([form]):
        return split_operation(bound, form[:steps], factors[:steps])
    found = split_operation(bound, form, factors)
    return replace(found, workers=found.workers // prod(factors[steps:]))


def layout_drawing(layout: Layout) -> Drawing:
    """Return the tiles of a layout."""
    workers = prod(layout.factors[: drawn_steps(layout.factors)])
    drawn = plane_of_parts(layout.shape, *drawn_holdings(layout), workers)
    return tensor_drawing(drawn, caption(drawn))
