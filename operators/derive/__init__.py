"""Kernels derived from descriptions: for any operator, any box, with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Interval, even_cuts
from ...support.memory import require_memory
from ..kernels.kernel import Array, KernelCall, Run, in_turn, view_of
from .nodes.affine import Ranges
from .pieces.cutting import Taken, whole
from .pieces.pieces import BoxPiece, pieces
from .program.outputs import write_outputs
from .program.program import KernelProgram
from .steps.box_at_zero import at_zero
from .steps.layout import CallLayout, layout_of, template_call
from .steps.recipe import Recipe, recipe

__all__ = ["derive"]


def derive(call: KernelCall) -> Run:
    """Return the function that computes one box of the call's operator from its description.

    Raises `OperatorError` for opaque functions and for inputs that do not cover what the box reads.
    """
    box = tuple([call.box[name] for name in call.bound.variables])
    recipes = _recipes(call.bound, *at_zero(call.bound, box, layout_of(call)))
    arrays = [*call.inputs.values(), *call.outputs]
    need = max([each.scratch_bytes for each in recipes])
    scratch = call.workspace.array((need,), np.uint8) if need else NO_SCRATCH
    for each in recipes:
        if each.constants:
            call.workspace.keep(each.constants)
        call.calls.extend(each.calls)
    return in_turn([each.bind(arrays, scratch) for each in recipes])


LARGEST_TEMPORARY = 4
"""Bytes beyond a call's inputs and outputs, as a multiple of theirs, above which its box is cut."""

SMALL_TEMPORARY_BYTES = 1 << 20
"""Bytes that every call may use, however small it is."""

SMALLER = 0.75
"""Parts of a box are computed one after the other only if each needs at most this share of memory."""

NO_SCRATCH: Array = np.empty(0, np.uint8)

INDEX_BYTES = 8
"""The size of a value of an index variable, which is kept if it is computed with."""


@lru_cache(maxsize=4096)
def _recipes(bound: Bound, box: tuple[Interval, ...], layout: CallLayout) -> tuple[Recipe, ...]:
    """Return the recipes of a box's pieces, which run one after the other in the same scratch.

    Raises ExecutionError if the machine has no memory for the values of index variables.
    """
    of_values = {strategy.variable for strategy in bound.strategies if strategy.needs_offset}
    kept = sum(
        end - start for name, (start, end) in zip(bound.variables, box, strict=True) if name in of_values
    )
    require_memory(kept * INDEX_BYTES, f"the values of index variables in '{bound.description.name}'")
    templates = layout.templates()
    call = template_call(bound, dict(zip(bound.variables, box, strict=True)), layout, templates)
    limit = max(LARGEST_TEMPORARY * sum([array.nbytes for array in templates]), SMALL_TEMPORARY_BYTES)
    return tuple(_bounded(call, templates, limit))


def _bounded(call: KernelCall, templates: list[Array], limit: int) -> list[Recipe]:
    """Return recipes that need at most `limit` bytes beyond the call's arrays, if parts of the
    box need less.
    """
    box = tuple([call.box[name] for name in call.bound.variables])
    at_once = [_derived(piece, call, templates) for piece in pieces(call.bound, box)]
    needed = _temporary_bytes(at_once)
    variable = _most_values(call)
    if needed <= limit or variable is None:
        return at_once
    length = -(-(call.box[variable][1] - call.box[variable][0]) // -(-needed // limit))
    parts = [
        _bounded(_part(call, variable, interval), templates, limit)
        for interval in even_cuts(call.box[variable], max(length, 1))
    ]
    if max(map(_temporary_bytes, parts)) > SMALLER * needed:
        return at_once
    return [each for part in parts for each in part]


def _temporary_bytes(recipes: Sequence[Recipe]) -> int:
    constants = {id(array): array.nbytes for each in recipes for array in each.constants}
    return max([each.scratch_bytes for each in recipes]) + sum(constants.values())


def _most_values(call: KernelCall) -> str | None:
    """Return the variable of all outputs that takes most values in the box, the first such; at least two."""
    shared = set[str]().union(call.bound.variables)
    for output in call.bound.description.outputs:
        shared &= {binder.name for binder in output.variables}
    lengths = {name: call.box[name][1] - call.box[name][0] for name in call.bound.variables if name in shared}
    longest = max(lengths, key=lambda name: lengths[name], default=None)
    return longest if longest is not None and lengths[longest] > 1 else None


def _part(call: KernelCall, variable: str, interval: Interval) -> KernelCall:
    """Return the part of a call in which a variable of all outputs is in an interval."""
    taken = {variable: whole(variable, *interval)}
    return replace(call, box={**call.box, variable: interval}, outputs=_taken(call, taken))


def _derived(piece: BoxPiece, call: KernelCall, templates: list[Array]) -> Recipe:
    outputs = _taken(call, piece.taken)
    program = KernelProgram(piece.lowered, replace(call, box=piece.ranges, outputs=outputs))
    program.reduce_ahead()
    write_outputs(program)
    return recipe(program.steps, templates)


def _taken(call: KernelCall, taken: Mapping[str, Taken]) -> tuple[Array, ...]:
    """Return the elements of a call's outputs at the values taken of variables, a dimension for each axis."""
    return tuple(
        _elements(array, [binder.name for binder in output.variables], taken, call.box)
        for array, output in zip(call.outputs, call.bound.description.outputs, strict=True)
    )


def _elements(array: Array, variables: list[str], taken: Mapping[str, Taken], box: Ranges) -> Array:
    first: list[int] = []
    shape: list[int] = []
    strides: list[int] = []
    for dimension, name in enumerate(variables):
        values = taken.get(name) or whole(name, *box[name])
        first.append(values.start - box[name][0])
        shape.extend(axis.count for axis in values.axes)
        strides.extend(axis.step * array.strides[dimension] for axis in values.axes)
    if 0 in shape:
        return np.empty(shape, array.dtype)
    corner = view_of(array, (slice(start, start + 1) for start in first))
    return np.lib.stride_tricks.as_strided(corner, shape, strides)
