"""Products become BLAS calls that, on memory stored column by column, give the product."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest

from tofu.errors import OperatorError
from tofu.operators.cuda.launch.commands import Matrix, MatrixProduct
from tofu.operators.cuda.launch.view import DeviceView
from tofu.operators.cuda.vendor.gemm import Gemm, Operand, gemm_arguments
from tofu.operators.emit.datatypes import data_type

from ..arrays import decode, encode
from ..vendor_stand_ins import memory, run_product, values

SIZES = (1, 2, 5)
UNWRITTEN = 77
LAYOUTS = ("rows", "rows apart", "columns", "columns apart")


def matrix(contents: Any, layout: str, type: str, batch_gap: int = 0) -> tuple[Matrix, Any]:
    """Matrices `[batch, row, column]` in memory, and the memory; what lies between them is not a number."""
    batch, rows, columns = contents.shape
    lines, length = (rows, columns) if layout.startswith("rows") else (columns, rows)
    leading = length + 3 * layout.endswith("apart")
    step = lines * leading + batch_gap
    steps = (leading, 1) if layout.startswith("rows") else (1, leading)
    block = encode(np.full(batch * step + 8, np.nan), type)
    placed = Matrix(block.ctypes.data, rows, columns, *steps, batch, step, type)
    for index in np.ndindex(*contents.shape):
        block[index[0] * step + index[1] * steps[0] + index[2] * steps[1]] = encode(contents[index], type)
    return placed, block


def stored(operand: Operand, rows: int, columns: int, gemm: Gemm) -> DeviceView:
    """Return an operand as BLAS reads it, before it is transposed."""
    assert operand.leading >= max(1, rows)
    size = data_type(gemm.type).numpy.itemsize
    strides = (operand.stride * size, size, operand.leading * size)
    return DeviceView(operand.address, (gemm.batch, rows, columns), strides, gemm.type)


def run_gemm(gemm: Gemm) -> None:
    """Compute what the documentation of BLAS says."""
    assert not gemm.c.transposed
    a = values(stored(gemm.a, *((gemm.k, gemm.m) if gemm.a.transposed else (gemm.m, gemm.k)), gemm))
    b = values(stored(gemm.b, *((gemm.n, gemm.k) if gemm.b.transposed else (gemm.k, gemm.n)), gemm))
    a = a.swapaxes(1, 2) if gemm.a.transposed else a
    b = b.swapaxes(1, 2) if gemm.b.transposed else b
    memory(stored(gemm.c, gemm.m, gemm.n, gemm))[...] = encode(gemm.alpha * (a @ b), gemm.type)


def check(sizes: tuple[int, int, int, int], layouts: tuple[str, str, str], type: str) -> None:
    """Compare with the product, and see that nothing but the result is written."""
    batch, rows, summed, columns = sizes
    rng = np.random.default_rng(rows * 100 + summed * 10 + columns)
    left = rng.integers(-3, 4, (batch, rows, summed)).astype(float)
    right = rng.integers(-3, 4, (batch, summed, columns)).astype(float)
    a, held_a = matrix(left, layouts[0], type, 2)
    b, held_b = matrix(right, layouts[1], type)
    c, held_c = matrix(np.full((batch, rows, columns), UNWRITTEN), layouts[2], type, 5)
    expected, _held = matrix(2 * left @ right, layouts[2], type, 5)
    run_gemm(gemm_arguments(MatrixProduct(a, b, c, 2.0)))
    np.testing.assert_array_equal(decode(held_c, type), decode(_held, type))
    assert expected.batch_step == c.batch_step
    assert held_a.size + held_b.size > 0


@pytest.mark.parametrize("layouts", list(combinations(LAYOUTS, repeat=3)), ids="-".join)
def test_every_layout_and_size(layouts: tuple[str, str, str]) -> None:
    for sizes in combinations((1, 3), SIZES, SIZES, SIZES):
        check(sizes, layouts, "float32")


@pytest.mark.parametrize("type", ["float16", "bfloat16", "float64"])
def test_every_type(type: str) -> None:
    for layouts in combinations(LAYOUTS[::3], repeat=3):
        check((2, 3, 4, 5), layouts, type)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_of_nothing_are_zero(layout: str) -> None:
    for batch in (1, 3):
        check((batch, 2, 0, 3), ("rows", "rows", layout), "float32")


def test_steps_of_axes_of_length_one_say_nothing() -> None:
    """Whichever numbers they are."""
    contents = np.arange(1.0, 5)
    for rows, columns in ((1, 4), (4, 1), (1, 1)):
        for step in (0, 1, 7):
            a, held = matrix(contents[None, : rows * columns].reshape(1, rows, columns), "rows", "float64")
            a = replace(a, row_step=step) if rows == 1 else a
            a = replace(a, column_step=step) if columns == 1 and (rows > 1 or step) else a
            b, held_b = matrix(np.eye(columns)[None], "rows", "float64")
            c, held_c = matrix(np.full((1, rows, columns), UNWRITTEN), "rows", "float64")
            run_gemm(gemm_arguments(MatrixProduct(a, b, c)))
            np.testing.assert_array_equal(held_c[: rows * columns], held[: rows * columns])
            assert held_b.size


def test_one_factor_for_all_products() -> None:
    left = np.arange(6.0).reshape(1, 2, 3)
    right = np.arange(24.0).reshape(2, 3, 4)
    a, held_a = matrix(left, "rows", "float32")
    b, held_b = matrix(right, "columns", "float32")
    c, held_c = matrix(np.zeros((2, 2, 4)), "rows", "float32")
    run_gemm(gemm_arguments(MatrixProduct(replace(a, batch=2, batch_step=0), b, c)))
    np.testing.assert_array_equal(held_c[:16].reshape(2, 2, 4), left @ right)
    assert held_a.size + held_b.size


def test_the_stand_in_for_the_library_agrees() -> None:
    left, right = np.arange(6.0).reshape(1, 2, 3), np.arange(12.0).reshape(1, 3, 4)
    a, held_a = matrix(left, "rows apart", "bfloat16")
    b, held_b = matrix(right, "columns", "bfloat16")
    c, held_c = matrix(np.zeros((1, 2, 4)), "rows", "bfloat16")
    run_product(MatrixProduct(a, b, c, -1.0))
    np.testing.assert_array_equal(decode(held_c[:8], "bfloat16").reshape(1, 2, 4), -(left @ right))
    assert held_a.size + held_b.size


FITTING = Matrix(0, 2, 2, 2, 1, 1, 4, "float32")


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (replace(FITTING, type="float16"), "no matrix product of float16 and float32 to float32"),
        (replace(FITTING, columns=3, row_step=3), r"\(1, 2, 3\) by \(1, 2, 2\) to \(1, 2, 2\)"),
        (replace(FITTING, row_step=4, column_step=2), "2 rows 4 elements apart and 2 columns 2 apart"),
        (replace(FITTING, row_step=1, column_step=1), "must not overlap"),
        (replace(FITTING, row_step=0), "2 rows 0 elements apart"),
    ],
)
def test_what_blas_does_not_take(left: Matrix, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        gemm_arguments(MatrixProduct(left, FITTING, FITTING))


def test_integers_are_not_taken() -> None:
    whole = replace(FITTING, type="int32")
    with pytest.raises(OperatorError, match="bfloat16, float16, float32, float64"):
        gemm_arguments(MatrixProduct(whole, whole, whole))
