"""Matrix products: FullyConnected, dot, batch_dot, linalg_gemm, linalg_gemm2."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, flag, integer, number
from ..stages.definition import ByRank, ByShape, Fixed, Variant, described, text, variant
from .arguments import arguments, of_data, with_bias
from .reshape import reshaped
from .texts import check_rank

LAYOUT = "batch, features, ..."

FULLY_CONNECTED = """
def FullyConnected(data, weight, *, num_hidden):
{flatten}    return lambda {n}, h=num_hidden: Sum(lambda k: {rows}[{n}, k] * weight[h, k])
"""

FULLY_CONNECTED_BIAS = """
def FullyConnected(data, weight, bias, *, num_hidden):
{flatten}    product = lambda {n}, h=num_hidden: Sum(lambda k: {rows}[{n}, k] * weight[h, k])
    return lambda {n}, h: product[{n}, h] + bias[h]
"""

DOT = """
def dot(lhs, rhs):
    return lambda *i, *j: Sum(lambda k: lhs[{lhs}] * rhs[{rhs}])
"""

DOT_OF_VECTORS = """
def dot(lhs, rhs):
    return lambda one=1: Sum(lambda k: lhs[k] * rhs[k])
"""

GEMM = """
def linalg_gemm(A, B, C, *, beta):
    product = {product}
    return lambda *b, i, j: product[*b, i, j] + beta * C[*b, i, j]
"""


def _fully_connected(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    check_rank("FullyConnected", "data", len(data), LAYOUT)
    text = FULLY_CONNECTED if attributes.flag("no_bias") else FULLY_CONNECTED_BIAS
    if not attributes.flag("flatten"):
        return described(text.format(flatten="", rows="data", n="*n"), attributes)
    if len(data) == 2:
        return described(text.format(flatten="", rows="data", n="n"), attributes)
    flatten = f"    flat = {reshaped('data', data, (data[0], prod(data[1:])))}\n"
    return described(text.format(flatten=flatten, rows="flat", n="n"), attributes)


def _fully_connected_hints(
    attributes: Attributes, shapes: Mapping[str, PartialShape]
) -> Mapping[str, PartialShape]:
    hidden = attributes.integer("num_hidden")
    data, output = shapes["data"], shapes["output_0"]
    hints: dict[str, PartialShape] = {"weight": (hidden, None)}
    if "bias" in shapes:
        hints["bias"] = (hidden,)
    if data is None:
        return hints
    check_rank("FullyConnected", "data", len(data), LAYOUT)
    inner = data[1:] if attributes.flag("flatten") else data[-1:]
    if None not in inner:
        hints["weight"] = (hidden, prod(extent for extent in inner if extent is not None))
    outer = data[:1] if attributes.flag("flatten") else data[:-1]
    hints["output_0"] = (*outer, hidden)
    if output is not None and len(output) == len(outer) + 1:
        hints["data"] = (*output[:-1], *(None,) * len(inner))
    return hints


def _dot(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Sums over the last dimension of lhs and the first of rhs, or where transposed over first and last.

    The other dimensions keep their order, as in MXNet, which treats them as one. The product of two vectors
    has one dimension there, of one element.
    """
    if ranks["lhs"] == ranks["rhs"] == 1:
        return variant(DOT_OF_VECTORS)
    lhs = "k, *i" if attributes.flag("transpose_a") else "*i, k"
    rhs = "*j, k" if attributes.flag("transpose_b") else "k, *j"
    return variant(DOT.format(lhs=lhs, rhs=rhs))


def _matrix_product(name: str, a: str, b: str, scale: str) -> Fixed:
    return Fixed(
        lambda attributes: variant(f"def {name}({a}, {b}):\n    return {_product(attributes, a, b, scale)}")
    )


def _product(attributes: Attributes, a: str, b: str, scale: str) -> str:
    """Return the lambda of a product of matrices in a batch."""
    left = "k, i" if attributes.flag("transpose_a") else "i, k"
    right = "j, k" if attributes.flag("transpose_b") else "k, j"
    factor = f"{attributes.number(scale)!r} * " if scale and attributes.number(scale) != 1 else ""
    return f"lambda *b, i, j: {factor}Sum(lambda k: {a}[*b, {left}] * {b}[*b, {right}])"


def _gemm(attributes: Attributes) -> Variant:
    """Return a scaled product, added to `C`. It is a separate stage, so that it can be reduced."""
    product = _product(attributes, "A", "B", "alpha")
    return variant(GEMM.format(product=product), {"beta": attributes.number("beta")})


TRANSPOSES = (flag("transpose_a", False), flag("transpose_b", False))

OPERATORS = (
    Operator(
        name="FullyConnected",
        definition=ByShape(_fully_connected, of_data),
        argument_names=with_bias("data", "weight"),
        specs=(integer("num_hidden"), flag("no_bias", False), flag("flatten", True)),
        hints=_fully_connected_hints,
        example=Example({"data": (2, 3), "weight": (4, 3), "bias": (4,)}, {"num_hidden": 4}),
    ),
    Operator(
        name="dot",
        definition=ByRank(_dot, of=("lhs", "rhs")),
        argument_names=arguments("lhs", "rhs"),
        specs=TRANSPOSES,
        example=Example({"lhs": (2, 3), "rhs": (3, 4)}),
    ),
    Operator(
        name="batch_dot",
        definition=_matrix_product("batch_dot", "lhs", "rhs", ""),
        argument_names=arguments("lhs", "rhs"),
        specs=TRANSPOSES,
        example=Example({"lhs": (2, 3, 4), "rhs": (2, 4, 5)}),
    ),
    Operator(
        name="linalg_gemm",
        definition=Fixed(_gemm),
        argument_names=arguments("A", "B", "C"),
        specs=(*TRANSPOSES, number("alpha", 1.0), number("beta", 1.0)),
        example=Example({"A": (2, 3, 4), "B": (2, 4, 5), "C": (2, 3, 5)}),
    ),
    Operator(
        name="linalg_gemm2",
        definition=_matrix_product("linalg_gemm2", "A", "B", "alpha"),
        argument_names=arguments("A", "B"),
        specs=(*TRANSPOSES, number("alpha", 1.0)),
        example=Example({"A": (2, 3, 4), "B": (2, 4, 5)}),
    ),
    Operator(
        name="linalg_sumlogdiag",
        definition=text("def linalg_sumlogdiag(A):\n    return lambda *b: Sum(lambda k: log(A[*b, k, k]))"),
        argument_names=arguments("A"),
        example=Example({"A": (2, 3, 3)}),
    ),
)
