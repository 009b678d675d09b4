"""Sums over the product of two tensors as matrix products, found in the description alone.

The index variables of such a sum fall into four groups: those of both factors and the result (batch), of the
left one and the result (rows), of the right one and the result (columns), of the factors alone (summed). A
factor, or the result, is a batch of matrices if each group is evenly spaced in its memory. Otherwise it is
copied into scratch, dense, or back from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....analyzer.indices.region import Interval
from ....tdl.ast import Reducer
from ...derive.nodes.affine import AffineIndex, Ranges
from ...derive.nodes.ir import Apply, Constant, Load, Node, Reduction
from ...derive.pieces.pieces import pieces
from ...derive.steps.matrices import joined
from ...emit.datatypes import data_type
from ...kernels.kernel import KernelCall
from ..launch.commands import Command, Matrix, MatrixProduct
from ..launch.view import DeviceView
from ..launch.workspace import DeviceWorkspace
from ..transfers.transfers import fetch

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorContraction:
    """`result = scale * sum over summed of left * right`.

    All views have one axis for each index variable, of length 1 if the view does not depend on it.
    """

    left: DeviceView
    """The left factor."""

    right: DeviceView
    """The right factor."""

    result: DeviceView
    """The view that is written."""

    batch: Sequence[int]
    """The axes along which all three vary."""

    rows: Sequence[int]
    """The axes along which the left factor and the result vary."""

    columns: Sequence[int]
    """The axes along which the right factor and the result vary."""

    summed: Sequence[int]
    """The axes along which the two factors vary, and the result does not."""

    scale: float
    """The number that every sum is multiplied by."""


def product(call: KernelCall) -> TensorContraction | None:
    """Return the product that a call's box is; None if it is something else, or nothing for matrices."""
    if len(call.outputs) != 1:
        return None
    parts = pieces(call.bound, tuple([call.box[name] for name in call.bound.variables]))
    if len(parts) != 1 or parts[0].taken:
        return None
    (output,) = parts[0].lowered.outputs
    scale, node = _scaled(output.value)
    if not isinstance(node, Reduction) or node.reducer is not Reducer.SUM:
        return None
    match node.body:
        case Apply(function="*", arguments=(Load() as left, Load() as right)):
            pass
        case _:
            return None
    return _product(call, parts[0].ranges, output.variables, node, left, right, scale)


def _scaled(node: Node) -> tuple[float, Node]:
    match node:
        case Apply(function="*", arguments=(Constant(value=value), inner)):
            return float(value), inner
        case Apply(function="*", arguments=(inner, Constant(value=value))):
            return float(value), inner
        case Apply(function="negative", arguments=(inner,)):
            return -1.0, inner
        case _:
            return 1.0, node


def _product(
    call: KernelCall,
    ranges: Ranges,
    variables: Names,
    node: Reduction,
    left: Load,
    right: Load,
    scale: float,
) -> TensorContraction | None:
    summed = frozenset(node.variables)
    names = (*variables, *node.variables)
    both = left.free & right.free
    batch, rows, columns, inner = (
        [axis for axis, name in enumerate(names) if name in group]
        for group in (both - summed, left.free - both, right.free - both, both & summed)
    )
    varying = {name for name in names if _length(ranges[name]) != 1}
    if (left.free ^ right.free) & summed or left.free | right.free != varying:
        return None  # what one factor alone has must index the result, and somebody must have what varies
    if not inner or not (rows or columns):
        return None
    a, b = (_factor(call, ranges, load, names) for load in (left, right))
    result: Any = call.outputs[0]
    if a is None or b is None or 0 in (a.size, b.size, result.size):
        return None
    if {a.type, b.type} != {result.type} or data_type(result.type).integer:
        return None
    whole = DeviceView(
        result.address,
        (*result.shape, *(1 for _ in node.variables)),
        (*result.strides, *(0 for _ in node.variables)),
        result.type,
    )
    return TensorContraction(a, b, whole, batch, rows, columns, inner, scale)


def _factor(call: KernelCall, ranges: Ranges, load: Load, names: Names) -> DeviceView | None:
    """Return a factor with an axis for each variable; None if it is padded or its index is not affine."""
    if load.padding is not None or not load.affine:
        return None
    array: Any = call.inputs[load.tensor]
    lower = [interval[0] for interval in call.regions[load.tensor]]
    shape = {name: _length(ranges[name]) if name in load.free else 1 for name in names}
    strides = dict.fromkeys(names, 0)
    address = array.address
    for dimension, index in enumerate(load.indices):
        assert isinstance(index, AffineIndex)
        address += (index.constant - lower[dimension]) * array.strides[dimension]
        for name, coefficient in index.coefficients:
            address += coefficient * ranges[name][0] * array.strides[dimension]
            strides[name] += coefficient * array.strides[dimension]
    return DeviceView(address, tuple(shape.values()), tuple(strides.values()), array.type)


def _length(interval: Interval) -> int:
    return max(interval[1] - interval[0], 0)


def commands(product: TensorContraction, workspace: DeviceWorkspace) -> tuple[Command, ...]:
    """Return what computes it: the product, and copies of what lies unevenly."""
    batch = _slowest_first(product.result, product.batch)
    rows = _slowest_first(product.left, product.rows)
    columns = _slowest_first(product.right, product.columns)
    larger = max((product.left, product.right), key=lambda view: view.size)
    summed = _slowest_first(larger, product.summed)
    before: list[Command] = []
    matrices = []
    for view, groups in ((product.left, (batch, rows, summed)), (product.right, (batch, summed, columns))):
        matrix = as_matrix(view, *groups)
        if matrix is None:
            dense = _dense_like(view, groups, workspace)
            before += fetch([(view, dense)])
            matrix = as_matrix(dense, *groups)
        assert matrix is not None, "a dense array is a batch of matrices"
        matrices.append(matrix)
    groups = (batch, rows, columns)
    result = as_matrix(product.result, *groups)
    after: tuple[Command, ...] = ()
    if result is None:
        dense = _dense_like(product.result, groups, workspace)
        after = fetch([(dense, product.result)])
        result = as_matrix(dense, *groups)
    assert result is not None, "a dense array is a batch of matrices"
    return (*before, MatrixProduct(matrices[0], matrices[1], result, product.scale), *after)


def _slowest_first(view: DeviceView, axes: Sequence[int]) -> list[int]:
    return sorted(axes, key=lambda axis: -abs(view.strides[axis]))


def _dense_like(view: DeviceView, groups: Sequence[Sequence[int]], workspace: DeviceWorkspace) -> DeviceView:
    """Return scratch of a view's shape, its axes in memory in the order of the groups."""
    order = [axis for group in groups for axis in group]
    rest = [axis for axis in range(view.ndim) if axis not in order]
    return DeviceView.dense(workspace.take(view.nbytes), view.shape, view.type, [*rest, *order])


def as_matrix(
    view: DeviceView, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Matrix | None:
    """Return a view as a batch of matrices that a library can read; None if it lies otherwise."""
    groups = [_joined(view, axes) for axes in (batch, rows, columns)]
    if any(group is None for group in groups):
        return None
    (count, batch_step), (height, row_step), (width, column_step) = (group for group in groups if group)
    if height == 1:
        row_step = max(width, 1) if column_step == 1 or width == 1 else 1
    if width == 1:
        column_step = 1 if row_step != 1 or height == 1 else max(height, 1)
    row_major = column_step == 1 and row_step >= width
    if not row_major and not (row_step == 1 and column_step >= height):
        return None
    if count > 1 and batch_step < 0:
        return None
    return Matrix(view.address, height, width, row_step, column_step, count, batch_step, view.type)


def _joined(view: DeviceView, axes: Sequence[int]) -> tuple[int, int] | None:
    """Return length and step in elements of several axes, slowest first, taken as one; None if uneven."""
    found = joined(view.shape, view.strides, axes)
    if found is None or found[1] % view.itemsize:
        return None
    return found[0], found[1] // view.itemsize
