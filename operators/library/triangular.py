"""Triangular matrices: linalg_potrf, linalg_potri, linalg_trmm, linalg_trsm.

These are opaque because every element of a factor or an inverse depends on others of the same result. The
opaque part is a separate stage, split over the batch. The products around it are described. Only lower
triangles are read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Array, Example, Operator
from ..stages.attributes import Attributes, flag, number
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .texts import joined, names


def cholesky(matrix: Array) -> Array:
    """Return the lower triangular factor. Raises LinAlgError if the matrix is not positive definite."""
    return np.linalg.cholesky(matrix)


def inverse(matrix: Array) -> Array:
    """Return the inverse of a lower triangle."""
    return np.tril(np.linalg.inv(np.tril(matrix)))


FACTOR = """
def linalg_potrf(A):
    cholesky = Opaque()
    return lambda {b}i, j: cholesky(A[{b}:, :])[i, j]
"""

FACTOR_GRADIENT = """
def linalg_potrf_grad(grad_0, output_0):
    inverse = Opaque()
    inverted = lambda {b}i, j: inverse(output_0[{b}:, :])[i, j]
    product = lambda {b}i, j: Sum(lambda k: output_0[{b}k, i] * grad_0[{b}k, j])
    left = lambda {b}i, j: Sum(lambda k:
        inverted[{b}k, i] * where(k >= j, product[{b}k, j], product[{b}j, k]))
    return lambda {b}i, j: 0.5 * Sum(lambda k: left[{b}i, k] * inverted[{b}k, j])
"""

INVERSE = """
def linalg_potri(A):
    inverse = Opaque()
    inverted = lambda {b}i, j: inverse(A[{b}:, :])[i, j]
    return lambda {b}i, j: Sum(lambda k: inverted[{b}k, i] * inverted[{b}k, j])
"""

INVERSE_GRADIENT = """
def linalg_potri_grad(grad_0, inverted, output_0):
    outer = lambda {b}i, j: Sum(lambda k: output_0[{b}i, k] * (grad_0[{b}k, j] + grad_0[{b}j, k]))
    full = lambda {b}i, j: Sum(lambda k: outer[{b}i, k] * inverted[{b}j, k])
    return lambda {b}i, j: where(i >= j, -full[{b}i, j], 0)
"""

PRODUCT = """
def linalg_trmm(A, B):
    return lambda {b}i, j: {alpha} * Sum(lambda k: where({row} >= {column}, A[{b}{row}, {column}], 0)
        * B[{b}{other}])
"""

SOLUTION = """
def linalg_trsm(A, B):
    inverse = Opaque()
    inverted = lambda {b}i, j: inverse(A[{b}:, :])[i, j]
    return lambda {b}i, j: {alpha} * Sum(lambda k: inverted[{b}{row}, {column}] * B[{b}{other}])
"""

SOLUTION_GRADIENT = """
def linalg_trsm_grad(grad_0, inverted, output_0):
    solved = lambda {b}i, j: Sum(lambda k: inverted[{b}{column}, {row}] * grad_0[{b}{other}])
    return (
        lambda {b}i, j: {alpha} * solved[{b}i, j],
        lambda {b}p, q: where(p >= q, -Sum(lambda k: {left} * {right}), 0),
    )
"""


def _batch(operator: str, rank: int) -> str:
    """Return the index variables of the batch, each followed by a comma."""
    if rank < 2:
        raise ShapeError(
            f"{operator} takes a matrix or a batch of them, of at least 2 dimensions, not {rank}"
        )
    return "".join(f"{variable}, " for variable in names("b", rank - 2))


def _factor(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    text = FACTOR.format(b=_batch("linalg_potrf", ranks["A"]))
    return variant(text, opaques={"cholesky": cholesky})


def _factor_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradient. As in MXNet it is symmetric: both elements of a pair get half."""
    text = FACTOR_GRADIENT.format(b=_batch("linalg_potrf", len(shapes["A"])))
    return variant(text, targets={"A": "output_0"}, opaques={"inverse": inverse})


def _inverse(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    text = INVERSE.format(b=_batch("linalg_potri", ranks["A"]))
    return variant(text, opaques={"inverse": inverse})


def _inverse_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    text = INVERSE_GRADIENT.format(b=_batch("linalg_potri", len(shapes["A"])))
    return variant(text, targets={"A": "output_0"})


def _filled(template: str, name: str, attributes: Attributes, rank: int, **more: str) -> str:
    """Fill a template. `{row}, {column}` index the triangle, or its transpose, in the product."""
    right = attributes.flag("rightside")
    row, column = ("k", "j") if right else ("i", "k")
    if attributes.flag("transpose"):
        row, column = column, row
    return template.format(
        b=_batch(name, rank),
        alpha=repr(attributes.number("alpha")),
        row=row,
        column=column,
        other="i, k" if right else "k, j",
        **more,
    )


def _product(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    return variant(_filled(PRODUCT, "linalg_trmm", attributes, ranks["A"]))


def _solution(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    text = _filled(SOLUTION, "linalg_trsm", attributes, ranks["A"])
    return variant(text, opaques={"inverse": inverse})


def _solution_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradients. The triangle's is minus the solved head gradient times the solution."""
    rank = len(shapes["A"])
    right, transposed = attributes.flag("rightside"), attributes.flag("transpose")
    first, second = ("solved", "output_0") if right == transposed else ("output_0", "solved")

    def element(tensor: str, variable: str) -> str:
        places = ("k", variable) if right else (variable, "k")
        return f"{tensor}[{_batch('linalg_trsm', rank)}{joined(places)}]"

    text = _filled(
        SOLUTION_GRADIENT,
        "linalg_trsm",
        attributes,
        rank,
        left=element(first, "p"),
        right=element(second, "q"),
    )
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
        definition=ByRank(_factor, of=("A",)),
        argument_names=arguments("A"),
        gradient_definition=_factor_gradient,
        example=Example({"A": (2, 3, 3)}, domain={"A": _positive_definite}),
    ),
    Operator(
        name="linalg_potri",
        definition=ByRank(_inverse, of=("A",)),
        argument_names=arguments("A"),
        gradient_definition=_inverse_gradient,
        example=Example({"A": (2, 3, 3)}, domain={"A": _triangle}),
    ),
    Operator(
        name="linalg_trmm",
        definition=ByRank(_product, of=("A",)),
        argument_names=arguments("A", "B"),
        specs=PLACES,
        example=PAIR,
    ),
    Operator(
        name="linalg_trsm",
        definition=ByRank(_solution, of=("A",)),
        argument_names=arguments("A", "B"),
        specs=PLACES,
        gradient_definition=_solution_gradient,
        example=PAIR,
    ),
)
