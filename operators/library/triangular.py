"""Triangular matrices: linalg_potrf, linalg_potri, linalg_trmm, linalg_trsm.

These are opaque because every element of a factor or an inverse depends on others of the same result. The
opaque part is a separate stage, split over the batch. The products around it are described. Only lower
triangles are read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...analyzer.indices.region import Shape
from ..operator import Array, Example, Operator
from ..stages.attributes import Attributes, flag, number
from ..stages.definition import Fixed, Variant, variant
from .arguments import arguments


def cholesky(matrix: Array) -> Array:
    """Return the lower triangular factor. Raises LinAlgError if the matrix is not positive definite."""
    return np.linalg.cholesky(matrix)


def inverse(matrix: Array) -> Array:
    """Return the inverse of a lower triangle."""
    return np.tril(np.linalg.inv(np.tril(matrix)))


FACTOR = """
def linalg_potrf(A):
    cholesky = Opaque()
    return lambda *b, i, j: cholesky(A[*b, :, :])[i, j]
"""

FACTOR_GRADIENT = """
def linalg_potrf_grad(grad_0, output_0):
    inverse = Opaque()
    inverted = lambda *b, i, j: inverse(output_0[*b, :, :])[i, j]
    product = lambda *b, i, j: Sum(lambda k: output_0[*b, k, i] * grad_0[*b, k, j])
    left = lambda *b, i, j: Sum(lambda k:
        inverted[*b, k, i] * where(k >= j, product[*b, k, j], product[*b, j, k]))
    return lambda *b, i, j: 0.5 * Sum(lambda k: left[*b, i, k] * inverted[*b, k, j])
"""
"""As in MXNet it is symmetric: both elements of a pair get half."""

INVERSE = """
def linalg_potri(A):
    inverse = Opaque()
    inverted = lambda *b, i, j: inverse(A[*b, :, :])[i, j]
    return lambda *b, i, j: Sum(lambda k: inverted[*b, k, i] * inverted[*b, k, j])
"""

INVERSE_GRADIENT = """
def linalg_potri_grad(grad_0, inverted, output_0):
    outer = lambda *b, i, j: Sum(lambda k: output_0[*b, i, k] * (grad_0[*b, k, j] + grad_0[*b, j, k]))
    full = lambda *b, i, j: Sum(lambda k: outer[*b, i, k] * inverted[*b, j, k])
    return lambda *b, i, j: where(i >= j, -full[*b, i, j], 0)
"""

PRODUCT = """
def linalg_trmm(A, B):
    return lambda *b, i, j: {alpha} * Sum(lambda k: where({row} >= {column}, A[*b, {row}, {column}], 0)
        * B[*b, {other}])
"""

SOLUTION = """
def linalg_trsm(A, B):
    inverse = Opaque()
    inverted = lambda *b, i, j: inverse(A[*b, :, :])[i, j]
    return lambda *b, i, j: {alpha} * Sum(lambda k: inverted[*b, {row}, {column}] * B[*b, {other}])
"""

SOLUTION_GRADIENT = """
def linalg_trsm_grad(grad_0, inverted, output_0):
    solved = lambda *b, i, j: Sum(lambda k: inverted[*b, {column}, {row}] * grad_0[*b, {other}])
    return (
        lambda *b, i, j: {alpha} * solved[*b, i, j],
        lambda *b, p, q: where(p >= q, -Sum(lambda k: {left} * {right}), 0),
    )
"""


def _filled(template: str, attributes: Attributes, **more: str) -> str:
    """Fill a template. `{row}, {column}` index the triangle, or its transpose, in the product."""
    right = attributes.flag("rightside")
    row, column = ("k", "j") if right else ("i", "k")
    if attributes.flag("transpose"):
        row, column = column, row
    return template.format(
        alpha=repr(attributes.number("alpha")),
        row=row,
        column=column,
        other="i, k" if right else "k, j",
        **more,
    )


def _product(attributes: Attributes) -> Variant:
    return variant(_filled(PRODUCT, attributes))


def _solution(attributes: Attributes) -> Variant:
    return variant(_filled(SOLUTION, attributes), opaques={"inverse": inverse})


def _solution_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradients. The triangle's is minus the solved head gradient times the solution."""
    right, transposed = attributes.flag("rightside"), attributes.flag("transpose")
    first, second = ("solved", "output_0") if right == transposed else ("output_0", "solved")
    at = "{}[*b, k, {}]" if right else "{}[*b, {}, k]"
    text = _filled(SOLUTION_GRADIENT, attributes, left=at.format(first, "p"), right=at.format(second, "q"))
    return variant(text, targets={"B": "output_0", "A": "output_1"})


def _positive_definite(values: Array) -> Array:
    symmetric: Array = values @ values.swapaxes(-1, -2) + np.eye(values.shape[-1])
    return symmetric


def _triangle(values: Array) -> Array:
    lower: Array = np.tril(values) + np.eye(values.shape[-1])
    return lower


PLACES = (flag("transpose", False), flag("rightside", False), number("alpha", 1.0))
PAIR = Example({"A": (2, 3, 3), "B": (2, 3, 4)}, domain={"A": _triangle})

OPERATORS = (
    Operator(
        name="linalg_potrf",
        definition=Fixed(lambda attributes: variant(FACTOR, opaques={"cholesky": cholesky})),
        argument_names=arguments("A"),
        gradient_definition=lambda attributes, shapes: variant(
            FACTOR_GRADIENT, targets={"A": "output_0"}, opaques={"inverse": inverse}
        ),
        example=Example({"A": (2, 3, 3)}, domain={"A": _positive_definite}),
    ),
    Operator(
        name="linalg_potri",
        definition=Fixed(lambda attributes: variant(INVERSE, opaques={"inverse": inverse})),
        argument_names=arguments("A"),
        gradient_definition=lambda attributes, shapes: variant(INVERSE_GRADIENT, targets={"A": "output_0"}),
        example=Example({"A": (2, 3, 3)}, domain={"A": _triangle}),
    ),
    Operator(
        name="linalg_trmm",
        definition=Fixed(_product),
        argument_names=arguments("A", "B"),
        specs=PLACES,
        example=PAIR,
    ),
    Operator(
        name="linalg_trsm",
        definition=Fixed(_solution),
        argument_names=arguments("A", "B"),
        specs=PLACES,
        gradient_definition=_solution_gradient,
        example=PAIR,
    ),
)
