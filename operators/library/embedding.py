"""Rows picked by index: Embedding, take, one_hot."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import OperatorError
from .. import kernels
from ..attributes import Attributes, choice, ignored, integer, number
from ..definition import Attachment, ByRank, Fixed, Variant, text, variant
from ..operator import Example, Operator
from ..shape_solver import PartialShape
from .arguments import arguments
from .texts import names

EMBEDDING = "def Embedding(data, weight):\n    return lambda *i, j: weight[data[*i], j]"


def _gradient_of(table: str) -> Mapping[str, Attachment]:
    """Sorted sums of rows for the table's gradient: the description visits every row for every index."""
    return {"output_0": Attachment(adjoints={table: kernels.EmbeddingGradient()})}


def _embedding_hints(
    attributes: Attributes, shapes: Mapping[str, PartialShape]
) -> Mapping[str, PartialShape]:
    return {"weight": (attributes.integer("input_dim"), attributes.integer("output_dim"))}


def _take(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Rows along the first axis; indices that leave the table are moved to its edge."""
    axis = attributes["axis"]
    if axis != 0:
        raise OperatorError(f"take: axis={axis} is not supported; transpose, and take along axis 0")
    row = "".join(f", {name}" for name in names("j", ranks["a"] - 1))
    return variant(
        "def take(a, indices):\n"
        f"    return lambda *i{row}: a[minimum(maximum(indices[*i], 0), a.shape[0] - 1){row}]",
        kernels=_gradient_of("a"),
    )


OPERATORS = (
    Operator(
        name="Embedding",
        definition=Fixed(lambda attributes: variant(EMBEDDING, kernels=_gradient_of("weight"))),
        argument_names=arguments("data", "weight"),
        specs=(integer("input_dim"), integer("output_dim"), ignored("dtype")),
        hints=_embedding_hints,
        example=Example(
            {"data": (2, 3), "weight": (5, 4)}, {"input_dim": 5, "output_dim": 4}, {"data": (0, 5)}
        ),
    ),
    Operator(
        name="take",
        definition=ByRank(_take, of=("a",)),
        argument_names=arguments("a", "indices"),
        specs=(integer("axis", 0), choice("mode", "clip", default="clip")),
        example=Example({"a": (5, 3), "indices": (2, 2)}, whole={"indices": (0, 5)}),
    ),
    Operator(
        name="one_hot",
        definition=text(
            "def one_hot(indices, *, depth, on_value, off_value):\n"
            "    return lambda *i, k=depth: where(indices[*i] == k, on_value, off_value)"
        ),
        argument_names=arguments("indices"),
        specs=(integer("depth"), number("on_value", 1.0), number("off_value", 0.0), ignored("dtype")),
        example=Example({"indices": (3,)}, {"depth": 4}, {"indices": (0, 4)}),
    ),
)
