"""A batch of matrix products as the arguments of BLAS, whose matrices are stored column by column.

A matrix stored row by row is, read column by column, its transpose. So a result stored row by row is
computed as `result^T = right^T @ left^T`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....errors import OperatorError
from ..launch.commands import Matrix, MatrixProduct

TYPES = frozenset(("float16", "bfloat16", "float32", "float64"))


@dataclass(frozen=True, slots=True)
class Operand:
    """A batch of matrices stored column by column: element `[i, j]` of matrix `b` lies at `i + j * leading +
    b * stride`."""

    address: int
    """The address of the first element."""

    leading: int
    """The distance from a column to the next one, in elements."""

    stride: int
    """The distance from a matrix to the next one, in elements."""

    transposed: bool = False
    """Whether the product takes the transpose of what is stored."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """`c = alpha * a @ b` for every matrix of a batch."""

    m: int
    """The rows of `c`."""

    n: int
    """The columns of `c`."""

    k: int
    """The products in the sum of each element."""

    alpha: float
    """The factor of every element."""

    a: Operand
    """The left factors."""

    b: Operand
    """The right factors."""

    c: Operand
    """The results, never transposed."""

    batch: int
    """The number of matrices."""

    type: str
    """The element type of all three, one of `TYPES`."""


def gemm_arguments(product: MatrixProduct) -> Gemm:
    """Return the arguments for a product.

    Raises OperatorError for types, sizes or steps that BLAS does not take.
    """
    left, right, result = product.left, product.right, product.result
    _require_fitting(left, right, result)
    a, b, c = (_operand(matrix) for matrix in (left, right, result))
    m, n = result.rows, result.columns
    if c.transposed:
        m, n = n, m
        a, b = (replace(each, transposed=not each.transposed) for each in (b, a))
        c = replace(c, transposed=False)
    return Gemm(m, n, left.columns, product.scale, a, b, c, result.batch, result.type)


def _require_fitting(left: Matrix, right: Matrix, result: Matrix) -> None:
    if not left.type == right.type == result.type or result.type not in TYPES:
        raise OperatorError(
            f"no matrix product of {left.type} and {right.type} to {result.type}: all three must have one "
            f"type of {', '.join(sorted(TYPES))}"
        )
    sizes = [(matrix.batch, matrix.rows, matrix.columns) for matrix in (left, right, result)]
    if sizes != [
        (result.batch, result.rows, left.columns),
        (result.batch, left.columns, result.columns),
        (result.batch, result.rows, result.columns),
    ]:
        raise OperatorError(
            "matrices of a product do not fit each other, as (batch, rows, columns): "
            f"{sizes[0]} by {sizes[1]} to {sizes[2]}; expected (b, m, k) by (b, k, n) to (b, m, n)"
        )


def _operand(matrix: Matrix) -> Operand:
    """Return the matrix as it is stored: itself, or its transpose if it lies row by row.

    The step along an axis of length one says nothing, so such a matrix may be taken either way; the steps
    of one without elements say nothing at all.
    """
    rows, columns = matrix.rows, matrix.columns
    stride = matrix.batch_step if matrix.batch > 1 else 0
    if not rows or not columns:
        return Operand(matrix.address, max(rows, 1), stride)
    if matrix.row_step == 1 or rows == 1:
        leading = matrix.column_step if columns > 1 else rows
        if leading >= rows:
            return Operand(matrix.address, leading, stride)
    if matrix.column_step == 1 or columns == 1:
        leading = matrix.row_step if rows > 1 else columns
        if leading >= columns:
            return Operand(matrix.address, leading, stride, transposed=True)
    raise OperatorError(
        f"{matrix.rows} rows {matrix.row_step} elements apart and {matrix.columns} columns "
        f"{matrix.column_step} apart are not a matrix for BLAS: one step must be 1, "
        "and the other must not overlap"
    )
