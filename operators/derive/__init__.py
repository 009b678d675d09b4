"""Kernels derived from descriptions: for any operator, any box, with NumPy alone."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...analyzer.region import Interval
from ..kernel import Array, KernelCall, Run, in_turn, view_of
from .layout import CallLayout, layout_of, template_call
from .outputs import write_outputs
from .pieces import Piece, pieces
from .program import Program
from .recipe import Recipe, recipe

if TYPE_CHECKING:
    from ..bound import BoundOperator

__all__ = ["derive"]


def derive(call: KernelCall) -> Run:
    """The function that computes one box of the call's operator from its description.

    Raises `OperatorError` for opaque functions and for inputs that do not cover what the box reads.
    """
    box = tuple([call.box[name] for name in call.bound.variables])
    recipes = _recipes(call.bound, box, layout_of(call))
    arrays = [*call.inputs.values(), *call.outputs]
    need = max([each.scratch_bytes for each in recipes])
    scratch = call.workspace.array((need,), np.uint8) if need else NO_SCRATCH
    for each in recipes:
        if each.constants:
            call.workspace.keep(each.constants)
    return in_turn([each.bind(arrays, scratch) for each in recipes])


NO_SCRATCH: Array = np.empty(0, np.uint8)


@lru_cache(maxsize=4096)
def _recipes(bound: BoundOperator, box: tuple[Interval, ...], layout: CallLayout) -> tuple[Recipe, ...]:
    """The recipes of a box's pieces, which run one after the other in the same scratch."""
    templates = layout.templates()
    call = template_call(bound, dict(zip(bound.variables, box, strict=True)), layout, templates)
    return tuple(_derived(piece, call, templates) for piece in pieces(bound, box))


def _derived(piece: Piece, call: KernelCall, templates: list[Array]) -> Recipe:
    outputs = tuple(
        _taken(array, output.variables, piece, call)
        for array, output in zip(call.outputs, piece.lowered.outputs, strict=True)
    )
    program = Program(piece.lowered, replace(call, box=piece.ranges, outputs=outputs))
    program.reduce_ahead()
    write_outputs(program)
    return recipe(program.steps, templates)


def _taken(array: Array, variables: tuple[str, ...], piece: Piece, call: KernelCall) -> Array:
    """The elements of an output that belong to a piece."""
    slices = [slice(None)] * len(variables)
    for dimension, name in enumerate(variables):
        if (part := piece.taken.get(name)) is not None:
            first = part.start - call.box[name][0]
            slices[dimension] = slice(first, first + part.step * (part.count - 1) + 1, part.step)
    return view_of(array, slices)
