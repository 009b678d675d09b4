"""View arrays over index variables as matrices that BLAS accepts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .steps import DType, Steps, Value, copy, register

Axes = Sequence[int]


def as_matrix(value: Value, batch: Axes, rows: Axes, columns: Axes, dtype: DType) -> Value | None:
    """Return a view `[*batch, row, column]` of a value's memory, or None if BLAS could not read it."""
    row, column = (joined(value.shape, value.strides, axes) for axes in (rows, columns))
    if row is None or column is None or value.dtype != dtype:
        return None
    (height, row_step), (width, column_step) = row, column
    size = dtype.itemsize
    if (width == 1 or column_step == size) and (height == 1 or row_step >= width * size):
        row_step, column_step = (row_step if height > 1 else width * size), size
    elif (height == 1 or row_step == size) and (width == 1 or column_step >= height * size):
        row_step, column_step = size, (column_step if width > 1 else height * size)
    else:
        return None
    lengths = tuple(value.shape[axis] for axis in batch)
    steps = tuple(value.strides[axis] for axis in batch)
    return value.viewed((*lengths, height, width), (*steps, row_step, column_step))


def packed(steps: Steps, value: Value, batch: Axes, rows: Axes, columns: Axes, dtype: DType) -> Value:
    """Return a copy `[*batch, row, column]`; its longer runs of memory are along the source's own."""
    lengths = tuple(value.shape[axis] for axis in batch)
    height = prod(value.shape[axis] for axis in rows)
    width = prod(value.shape[axis] for axis in columns)
    turned = _finest(value, rows) < _finest(value, columns)
    count = len(lengths)
    order = (*range(count), count + 1, count) if turned else None
    matrix = register((*lengths, height, width), dtype, order)
    axes = [*batch, *columns, *rows] if turned else [*batch, *rows, *columns]
    contiguous = [value.shape[axis] for axis in axes]
    source = value.viewed(tuple(contiguous), tuple(value.strides[axis] for axis in axes))
    strides, step = [], dtype.itemsize
    for length in reversed(contiguous):
        strides.append(step)
        step *= length
    steps.add(copy, (source,), matrix.viewed(tuple(contiguous), tuple(reversed(strides))), inplace=False)
    return matrix


def spread(value: Value, batch: Axes, rows: Axes, columns: Axes, like: Value) -> Value:
    """Return a contiguous matrix `[*batch, row, column]` with the axes and the shape of `like` again."""
    strides = [0] * len(like.shape)
    step = value.dtype.itemsize
    for axis in reversed([*batch, *rows, *columns]):
        strides[axis] = step
        step *= like.shape[axis]
    return value.viewed(like.shape, tuple(strides))


def transposed(matrix: Value) -> Value:
    shape, strides = list(matrix.shape), list(matrix.strides)
    shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return matrix.viewed(tuple(shape), tuple(strides))


def joined(shape: Axes, strides: Axes, axes: Axes) -> tuple[int, int] | None:
    """Return length and step of several axes, slowest first, taken as one.

    None if they are not evenly spaced.
    """
    length, step = 1, 0
    for axis in reversed(axes):
        size, stride = shape[axis], strides[axis]
        if size == 1:
            continue
        if length == 1:
            length, step = size, stride
        elif stride == length * step:
            length *= size
        else:
            return None
    return length, step


def _finest(value: Value, axes: Axes) -> float:
    return min(
        (abs(value.strides[axis]) for axis in axes if value.shape[axis] > 1 and value.strides[axis]),
        default=float("inf"),
    )
