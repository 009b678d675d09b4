"""Matrix products: FullyConnected, dot, batch_dot, linalg_gemm, linalg_gemm2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, flag, integer, number
from ..stages.definition import ByRank, ByShape, Variant, described, text, variant
from .arguments import arguments, of_data, with_bias
from .reshape import reshaped
from .texts import check_rank, joined, names

LAYOUT = "batch, features, ..."

FULLY_CONNECTED = """
def FullyConnected(data, weight, *, num_hidden):
    return lambda n, h=num_hidden: Sum(lambda k: data[n, k] * weight[h, k])
"""

FULLY_CONNECTED_BIAS = """
def FullyConnected(data, weight, bias, *, num_hidden):
    product = lambda n, h=num_hidden: Sum(lambda k: data[n, k] * weight[h, k])
    return lambda n, h: product[n, h] + bias[h]
"""


def _fully_connected(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data, biased = shapes["data"], not attributes.flag("no_bias")
    check_rank("FullyConnected", "data", len(data), LAYOUT)
    if len(data) == 2:
        return described(FULLY_CONNECTED_BIAS if biased else FULLY_CONNECTED, attributes)
    read, outer, lines = "data", joined(names("n", len(data) - 1)), []
    if attributes.flag("flatten"):
        read, outer = "flat", "n"
        lines.append(f"flat = {reshaped('data', data, (data[0], prod(data[1:])))}")
    hidden = attributes.integer("num_hidden")
    product = f"lambda {outer}, h={hidden}: Sum(lambda k: {read}[{outer}, k] * weight[h, k])"
    if biased:
        lines += [f"product = {product}", f"return lambda {outer}, h: product[{outer}, h] + bias[h]"]
    else:
        lines.append(f"return {product}")
    tensors = "data, weight, bias" if biased else "data, weight"
    return variant(f"def FullyConnected({tensors}):\n" + "\n".join(f"    {line}" for line in lines))


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

    The other dimensions keep their order, as in MXNet, which treats them as one.
    """
    outer, inner = list(names("i", ranks["lhs"] - 1)), list(names("j", ranks["rhs"] - 1))
    lhs, rhs = [*outer, "k"], ["k", *inner]
    if attributes.flag("transpose_a"):
        lhs = ["k", *outer]
    if attributes.flag("transpose_b"):
        rhs = [*inner, "k"]
    binders = joined([*outer, *inner]) or "one=1"
    return variant(
        f"def dot(lhs, rhs):\n"
        f"    return lambda {binders}: Sum(lambda k: lhs[{joined(lhs)}] * rhs[{joined(rhs)}])"
    )


def _matrix_product(name: str, a: str, b: str, scale: str) -> ByRank:
    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        batch = names("b", ranks[a] - 2)
        return variant(f"def {name}({a}, {b}):\n    return {_product(attributes, batch, a, b, scale)}")

    return ByRank(describe, of=(a, b))


def _product(attributes: Attributes, batch: Sequence[str], a: str, b: str, scale: str) -> str:
    """Return the lambda of a product of matrices in a batch."""
    left = joined([*batch, *(("k", "i") if attributes.flag("transpose_a") else ("i", "k"))])
    right = joined([*batch, *(("j", "k") if attributes.flag("transpose_b") else ("k", "j"))])
    factor = f"{attributes.number(scale)!r} * " if scale and attributes.number(scale) != 1 else ""
    return f"lambda {joined([*batch, 'i', 'j'])}: {factor}Sum(lambda k: {a}[{left}] * {b}[{right}])"


def _gemm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return a scaled product, added to `C`. It is a separate stage, so that it can be reduced."""
    batch = names("b", ranks["A"] - 2)
    indices = joined([*batch, "i", "j"])
    return variant(
        "def linalg_gemm(A, B, C, *, beta):\n"
        f"    product = {_product(attributes, batch, 'A', 'B', 'alpha')}\n"
        f"    return lambda {indices}: product[{indices}] + beta * C[{indices}]",
        {"beta": attributes.number("beta")},
    )


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
        definition=ByRank(_gemm, of=("A",)),
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
