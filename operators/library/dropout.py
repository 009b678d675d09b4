"""Dropout: elements set to zero at random, the others scaled up.

An element's position and a seed decide whether it is kept, so every worker decides the same, and the gradient
decides again instead of keeping a mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, choice, number
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, of_data
from .texts import flat_index, joined, names

IDENTITY = "def Dropout(data):\n    return lambda *i: data[*i]"
COUNTERS = 1 << 24
"""Each half of a position is below this, so it is exact in every floating-point type."""

STEPS = 1 << 23
"""Random numbers are odd multiples of half the inverse of this."""


def position(shape: Shape) -> tuple[str, str]:
    """Return the row-major position of index variables `i0`, `i1`, ... as two whole numbers below 2**24."""
    variables = names("i", len(shape))
    first = len(shape)
    while first and prod(shape[first - 1 :]) <= COUNTERS:
        first -= 1
    if prod(shape[:first]) > COUNTERS:
        raise ShapeError(f"a tensor of shape {shape} is too large for random numbers that all differ")
    return flat_index(variables[:first], shape[:first]), flat_index(variables[first:], shape[first:])


def _dropout(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    dropped = attributes.number("p")
    if not 0 <= dropped < 1:
        raise OperatorError(f"Dropout: p={dropped} is not a probability from 0 to below 1")
    if dropped == 0:
        return variant(IDENTITY)
    high, low = position(shapes["data"])
    everywhere = joined(names("i", len(shapes["data"])))
    return variant(
        "def Dropout(data, seed, *, kept, scale):\n"
        f"    return lambda {everywhere}: "
        f"where(uniform(seed[0], {high}, {low}) < kept, data[{everywhere}] * scale, 0)",
        {"kept": round((1 - dropped) * STEPS) / STEPS, "scale": 1 / (1 - dropped)},
    )


def _dropout_in_inference(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return _dropout(attributes, shapes) if attributes.text("mode") == "always" else variant(IDENTITY)


OPERATORS = (
    Operator(
        name="Dropout",
        definition=ByShape(_dropout, of_data),
        inference_definition=ByShape(_dropout_in_inference, of_data),
        argument_names=arguments("data"),
        seeds=("seed",),
        specs=(number("p", 0.5), choice("mode", "training", "always", default="training")),
        example=Example({"data": (4, 5), "seed": (1,)}, {"p": 0.4}, {"seed": (0, 1000)}),
    ),
)
