"""Sums over the product of two factors, by matrix products.

Every access is a strided view with one axis per index variable, windows included, so a contraction is a
matrix product after its axes are grouped: those of both factors and the result (batch), of one factor and
the result (rows, columns), of both factors alone (summed). A group whose memory is not evenly spaced is
copied first, in chunks that bound the workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ....tdl.ast import Reducer
from ...kernels.kernel import Array
from ..nodes.affine import Ranges
from ..nodes.blocks import blocks, length, volume
from ..nodes.ir import Apply, Node, Reduction
from ..steps.matrices import as_matrix, packed, spread, transposed
from ..steps.steps import Value, copy, fixed, register
from ..steps.views import narrow
from .open_program import OpenProgram

WORKSPACE_ELEMENTS = 1 << 20
"""Elements of one packed factor or result chunk: 4 MiB in single precision."""

REUSE = 4
"""A matrix product pays if every element of a factor is used at least this often."""


def contracts(node: Reduction, box: Ranges) -> bool:
    """Return whether matrix products should compute a reduction."""
    if node.reducer is not Reducer.SUM or not isinstance(node.body, Apply) or node.body.function != "*":
        return False
    left, right = node.body.arguments
    own = left.free - right.free, right.free - left.free
    if not all(names and names <= node.free for names in own) or not left.free & right.free & set(
        node.variables
    ):
        return False
    largest = max(volume(left.free, box), volume(right.free, box), volume(node.free, box))
    return volume(node.body.free, box) >= REUSE * max(largest, 1)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Axes by what they index, each group in the order that its factor has in memory."""

    batch: tuple[int, ...]
    """The axes of both factors and the result."""

    rows: tuple[int, ...]
    """The axes of the left factor and the result."""

    columns: tuple[int, ...]
    """The axes of the right factor and the result."""

    summed: tuple[int, ...]
    """The axes of both factors alone."""


def contract(program: OpenProgram, node: Reduction, target: Array) -> None:
    """Write steps that compute a contraction over the whole box into `target`, one axis per variable."""
    assert isinstance(node.body, Apply)
    left, right = node.body.arguments
    groups = _groups(program, node, left, right, target)
    lengths = _chunk_lengths(program, node, left, right, groups, target)
    names = program.lowered.variables
    outer = [names[axis] for axis in (*groups.batch, *groups.rows, *groups.columns)]
    inner = [names[axis] for axis in groups.summed]
    ready: dict[tuple[object, ...], Value] = {}
    for part in blocks(outer, program.box, lengths):
        chunk = fixed(narrow(target, program.axes, part, program.box))
        for number, terms in enumerate(blocks(inner, program.box, lengths)):
            ranges = {**program.box, **part, **terms}
            a = _matrix(program, left, ranges, groups.batch, groups.rows, groups.summed, ready)
            b = _matrix(program, right, ranges, groups.batch, groups.summed, groups.columns, ready)
            _multiply(program, a, b, chunk, groups, add=number > 0)


def _groups(program: OpenProgram, node: Reduction, left: Node, right: Node, target: Array) -> _Axes:
    def ordered(names: frozenset[str], strides: tuple[int, ...]) -> tuple[int, ...]:
        axes = [axis for axis in program.order if program.lowered.variables[axis] in names]
        return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))

    larger = max((left, right), key=lambda factor: volume(factor.free, program.box))
    shared = left.free & right.free
    return _Axes(
        ordered(shared & node.free, target.strides),
        ordered(left.free - shared, _strides(program, left)),
        ordered(right.free - shared, _strides(program, right)),
        ordered(shared - node.free, _strides(program, larger)),
    )


def _strides(program: OpenProgram, factor: Node) -> tuple[int, ...]:
    """Return how a factor will lie in memory, before anything is computed."""
    view = program.whole_view(factor)
    if view is not None:
        return view.strides
    return program.fresh(sorted(factor.free), program.box, program.number).strides


def _chunk_lengths(
    program: OpenProgram, node: Reduction, left: Node, right: Node, groups: _Axes, target: Array
) -> dict[str, int]:
    """Return chunks that keep every packed matrix within the workspace, cut along slow and shared
    axes first.
    """
    lengths = {name: max(length(interval), 1) for name, interval in program.box.items()}
    batch, rows, columns, summed = groups.batch, groups.rows, groups.columns, groups.summed
    limits = []
    for factor, first, second in ((left, rows, summed), (right, summed, columns)):
        view = program.whole_view(factor)
        if view is None or as_matrix(fixed(view), batch, first, second, program.number) is None:
            own = rows if factor is left else columns
            limits.append((factor.free, (*batch, *own, *summed)))
    if _direct(fixed(target), groups, program) is None:
        limits.append((node.free, (*batch, *rows, *columns)))
    for free, axes in limits:
        for axis in axes:
            name = program.lowered.variables[axis]
            size = prod(lengths[other] for other in free)
            if size <= WORKSPACE_ELEMENTS:
                break
            lengths[name] = max(1, lengths[name] * WORKSPACE_ELEMENTS // size)
    return lengths


def _matrix(
    program: OpenProgram,
    factor: Node,
    ranges: Ranges,
    batch: tuple[int, ...],
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    ready: dict[tuple[object, ...], Value],
) -> Value:
    key = (factor, *(ranges[name] for name in program.lowered.variables if name in factor.free))
    if (known := ready.get(key)) is None:
        value = program.array(factor, ranges)
        matrix = as_matrix(value, batch, rows, columns, program.number)
        known = matrix or packed(program.steps, value, batch, rows, columns, program.number)
        ready[key] = known
    return known


def _multiply(program: OpenProgram, a: Value, b: Value, chunk: Value, groups: _Axes, add: bool) -> None:
    steps, dtype = program.steps, program.number
    if not add and (direct := _direct(chunk, groups, program)) is not None:
        if direct.strides[-1] == dtype.itemsize:
            steps.add(np.matmul, (a, b), direct, inplace=False)
        else:
            steps.add(np.matmul, (transposed(b), transposed(a)), transposed(direct), inplace=False)
        return
    result = register((*a.shape[:-1], b.shape[-1]), dtype)
    steps.add(np.matmul, (a, b), result, inplace=False)
    values = spread(result, groups.batch, groups.rows, groups.columns, chunk)
    if add:
        steps.add(np.add, (chunk, values), chunk, inplace=True)
    else:
        steps.add(copy, (values,), chunk, inplace=False)


def _direct(chunk: Value, groups: _Axes, program: OpenProgram) -> Value | None:
    """Return the result's memory as a matrix a product can be written to."""
    return as_matrix(chunk, groups.batch, groups.rows, groups.columns, program.number)
