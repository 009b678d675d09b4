"""Rows picked by index: Embedding, take, one_hot."""

from __future__ import annotations

from collections.abc import Mapping

from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, ignored, integer, number
from ..stages.definition import ByRank, Fixed, Variant, text, variant
from .arguments import arguments
from .picking import POSITIONS, clipped
from .texts import axis_in, element, joined, names

EMBEDDING = (
    f"def Embedding(data, weight):\n    return lambda *i, j: weight[{clipped('data[*i]', 'weight', 0)}, j]"
)


def _embedding_hints(
    attributes: Attributes, shapes: Mapping[str, PartialShape]
) -> Mapping[str, PartialShape]:
    return {"weight": (attributes.integer("input_dim"), attributes.integer("output_dim"))}


def _take(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    """Return picked elements. The dimensions of `indices` replace the dimension `axis` of `a`."""
    rank, mode = ranks["a"], attributes.text("mode")
    axis = axis_in("take", attributes.integer("axis"), rank)
    rows = names("j", rank)
    places = (*rows[:axis], POSITIONS[mode]("indices[*i]", "a", axis), *rows[axis + 1 :])
    return variant(
        "def take(a, indices):\n"
        f"    return lambda {joined((*rows[:axis], '*i', *rows[axis + 1 :]))}: {element('a', places)}",
    )


OPERATORS = (
    Operator(
        name="Embedding",
        definition=Fixed(lambda attributes: variant(EMBEDDING)),
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
        specs=(integer("axis", 0), choice("mode", *POSITIONS, default="clip")),
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
