"""The results of vendor libraries, computed with NumPy on addresses of the host's memory.

As strict as the libraries: what they refuse fails here.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from tofu.operators.cuda.launch.commands import Convolution, Matrix, MatrixProduct
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.emit.datatypes import data_type
from tofu.operators.kernels.convolution.library_form import Pass

from .arrays import decode, encode

Array = npt.NDArray[Any]


def view_of(array: Array, type: str) -> DeviceView:
    """An array of the host as if it were a device's; that of bfloat16 holds uint16."""
    assert array.dtype == data_type(type).numpy
    return DeviceView(array.ctypes.data, array.shape, array.strides, type)


def memory(view: DeviceView) -> Array:
    """The elements of a view, as they lie in the host's memory."""
    extents = [(length - 1) * stride for length, stride in zip(view.shape, view.strides, strict=True)]
    if not view.size:
        return np.empty(view.shape, view.dtype)
    first = sum(extent for extent in extents if extent < 0)
    last = sum(extent for extent in extents if extent > 0) + view.itemsize
    block = (ctypes.c_char * (last - first)).from_address(view.address + first)
    return np.ndarray(view.shape, view.dtype, block, -first, view.strides)


def values(view: DeviceView) -> Array:
    """The elements of a view as float64."""
    return decode(memory(view), view.type).astype(np.float64)


def run_product(product: MatrixProduct) -> None:
    """`result = scale * left @ right`."""
    left, right, result = map(_matrices, (product.left, product.right, product.result))
    batch, rows, columns = result.shape
    assert (left.shape, right.shape) == ((batch, rows, right.shape[1]), (batch, left.shape[2], columns))
    computed = product.scale * (values(left) @ values(right))
    memory(result)[...] = encode(computed, product.result.type)


def _matrices(matrix: Matrix) -> DeviceView:
    assert 1 in (matrix.row_step, matrix.column_step)
    size = data_type(matrix.type).numpy.itemsize
    steps = (matrix.batch_step, matrix.row_step, matrix.column_step)
    shape = (matrix.batch, matrix.rows, matrix.columns)
    return DeviceView(matrix.address, shape, tuple(step * size for step in steps), matrix.type)


def run_convolution(command: Convolution) -> None:
    """The convolution or gradient, tap by tap."""
    geometry, data, weight, output = command.geometry, command.data, command.weight, command.output
    checked(command)
    padded_shape = [
        before + rows + max(after, 0)
        for before, rows, after in zip(geometry.before, data.shape[2:], geometry.after, strict=True)
    ]
    inner = (..., *(slice(b, b + rows) for b, rows in zip(geometry.before, data.shape[2:], strict=True)))
    padded = np.zeros((*data.shape[:2], *padded_shape))
    match command.computes:
        case Pass.FORWARD:
            padded[inner] = values(data)
            total = np.zeros(output.shape)
            for tap, rows in _taps(command):
                total += np.einsum("nc...,fc->nf...", padded[rows], values(weight)[tap])
            memory(output)[...] = encode(total, output.type)
        case Pass.DATA_GRADIENT:
            for tap, rows in _taps(command):
                padded[rows] += np.einsum("nf...,fc->nc...", values(output), values(weight)[tap])
            memory(data)[...] = encode(padded[inner], data.type)
        case Pass.WEIGHT_GRADIENT:
            padded[inner] = values(data)
            found = np.zeros(weight.shape)
            for tap, rows in _taps(command):
                share = np.einsum("nfp,ncp->fc", *map(_flat, (values(output), padded[rows])))
                found[tap] = share
            memory(weight)[...] = encode(found, weight.type)


def _taps(command: Convolution) -> list[tuple[Any, Any]]:
    """For every tap, its index in the weight and the padded rows that the places meet there."""
    geometry, places = command.geometry, command.output.shape[2:]
    found = []
    for tap in np.ndindex(*command.weight.shape[2:]):
        reach = [t * d for t, d in zip(tap, geometry.dilate, strict=True)]
        rows = [
            slice(first, first + (count - 1) * stride + 1, stride)
            for first, count, stride in zip(reach, places, geometry.stride, strict=True)
        ]
        found.append(((slice(None), slice(None), *tap), (slice(None), slice(None), *rows)))
    return found


def _flat(array: Array) -> Array:
    return array.reshape(*array.shape[:2], -1)


def checked(command: Convolution) -> None:
    """That the shapes belong together, the weight has no gaps, and the padding is what the library takes."""
    geometry, data, weight, output = command.geometry, command.data, command.weight, command.output
    assert data.type == weight.type == output.type
    assert min(*data.shape, *weight.shape, *output.shape) > 0
    extent = sum((length - 1) * step for length, step in zip(weight.shape, weight.strides, strict=True))
    assert extent + weight.itemsize == weight.nbytes
    assert (data.shape[0], *weight.shape[:2]) == (output.shape[0], output.shape[1], data.shape[1])
    for rows, taps, places, stride, dilate, before, after in zip(
        data.shape[2:], weight.shape[2:], output.shape[2:],
        geometry.stride, geometry.dilate, geometry.before, geometry.after, strict=True,
    ):  # fmt: skip
        window = (taps - 1) * dilate + 1
        assert (places - 1) * stride + window == before + rows + after
        assert 0 <= before < window
        assert -stride < after < window
