"""LeakyReLU: the identity above zero, one of several functions below."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, number
from ..stages.definition import ByShape, Variant, variant
from .dropout import position
from .elementwise import GELU
from .texts import check_rank, joined, names

CONTINUED = {
    "leaky": "slope * data[*i]",
    "elu": "slope * expm1(minimum(data[*i], 0))",
}

SELU = "1.0507009873554805 * where(data[*i] > 0, data[*i], 1.6732632423543772 * expm1(minimum(data[*i], 0)))"

WHOLE = {"gelu": GELU, "selu": SELU}

PRELU = """
def LeakyReLU(data, gamma):
    return lambda n, c, *i: where(data[n, c, *i] > 0, data[n, c, *i], gamma[{slope}] * data[n, c, *i])
"""
"""One slope for each channel, or one for all."""

RANDOM = """
def LeakyReLU(data, seed, *, lower_bound, upper_bound):
    return lambda {all}: where(data[{all}] > 0, data[{all}],
        (lower_bound + (upper_bound - lower_bound) * uniform(seed[0], {high}, {low})) * data[{all}])
"""
"""Training draws a slope for each element in every iteration; inference takes their mean."""


def _training(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    if attributes.text("act_type") != "rrelu":
        return _inference(attributes, shapes)
    high, low = position(shapes["data"])
    everywhere = joined(names("i", len(shapes["data"])))
    lower, upper = _bounds(attributes)
    return variant(
        RANDOM.format(all=everywhere, high=high, low=low), {"lower_bound": lower, "upper_bound": upper}
    )


def _inference(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    kind = attributes.text("act_type")
    if kind == "prelu":
        return variant(PRELU.format(slope="0" if shapes["gamma"] == (1,) else "c"))
    if kind in WHOLE:
        return variant(f"def LeakyReLU(data):\n    return lambda *i: {WHOLE[kind]}")
    slope = sum(_bounds(attributes)) / 2 if kind == "rrelu" else attributes.number("slope")
    continued = CONTINUED["leaky" if kind == "rrelu" else kind]
    return variant(
        f"def LeakyReLU(data, *, slope):\n    return lambda *i: where(data[*i] > 0, data[*i], {continued})",
        {"slope": slope},
    )


def _bounds(attributes: Attributes) -> tuple[float, float]:
    lower, upper = attributes.number("lower_bound"), attributes.number("upper_bound")
    if not 0 <= lower <= upper:
        raise OperatorError(
            f"LeakyReLU: slopes from lower_bound={lower} to upper_bound={upper} are not a range"
        )
    return lower, upper


def _needed(attributes: Attributes) -> tuple[str, ...]:
    """Return tensors whose shapes the description depends on."""
    return {"prelu": ("gamma",), "rrelu": ("data",)}.get(attributes.text("act_type"), ())


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None or attributes.text("act_type") != "prelu" or shapes["gamma"] == (1,):
        return {}
    check_rank("LeakyReLU", "data", len(data), "batch, channel, ...")
    return {"gamma": (data[1],)}


OPERATORS = (
    Operator(
        name="LeakyReLU",
        definition=ByShape(_training, of=_needed),
        inference_definition=ByShape(_inference, of=_needed),
        argument_names=lambda a: ("data", "gamma") if a.text("act_type") == "prelu" else ("data",),
        seeds=("seed",),
        starts={"gamma": 0.25},
        specs=(
            choice("act_type", *CONTINUED, *WHOLE, "prelu", "rrelu", default="leaky"),
            number("slope", 0.25),
            number("lower_bound", 0.125),
            number("upper_bound", 0.334),
        ),
        hints=_hints,
        example=Example({"data": (2, 3)}),
    ),
)
