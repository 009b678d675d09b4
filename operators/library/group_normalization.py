"""GroupNorm and RMSNorm: normalisation by the statistics of a group of channels, or by the mean square."""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, integer, number
from ..stages.definition import ByRank, ByShape, Variant, variant
from .arguments import arguments, of_data
from .texts import axis_in, check_rank, joined, names, product_of_extents

GROUP = """
def GroupNorm(data, gamma, beta, *, num_groups, eps):
    mean = lambda n, g=num_groups: Sum(lambda {inner}: {grouped}) / ({count})
    var = lambda n, g=num_groups: Sum(lambda {inner}: square({grouped} - mean[n, g])) / ({count})
    return lambda n, c, *i: (
        gamma[c] * (data[n, c, *i] - mean[n, c // ({size})]) * rsqrt(var[n, c // ({size})] + eps) + beta[c]
    )
"""
"""Wu and He, Group Normalization, ECCV 2018, equations 1 and 7."""

MEAN_SQUARE = """
def RMSNorm(data, gamma, *, eps):
    square_mean = lambda {binders}: Sum(lambda {feature}: square(data[{all}])) / data.shape[{axis}]
    return lambda {all}: data[{all}] * rsqrt(square_mean[{kept}] + eps) * gamma[{feature}]
"""
"""Zhang and Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019, equation 4."""


def _group_norm(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data, groups = shapes["data"], attributes.integer("num_groups")
    check_rank("GroupNorm", "data", len(data), "batch, channel, ...")
    if data[1] % groups:
        raise ShapeError(
            f"GroupNorm: data has {data[1]} channels, which {groups} groups do not share equally; "
            "choose num_groups among the divisors of the number of channels"
        )
    size = "data.shape[1] // num_groups"
    space = names("x", len(data) - 2)
    text = GROUP.format(
        inner=joined([f"c={size}", *space]),
        grouped=f"data[{joined(['n', f'g * ({size}) + c', *space])}]",
        count=product_of_extents("data", range(1, len(data))) + " / num_groups",
        size=size,
    )
    return variant(text, {"num_groups": groups, "eps": attributes.number("eps")})


def _rms_norm(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    variables = list(names("i", ranks["data"]))
    axis = axis_in("RMSNorm", attributes.integer("axis"), len(variables))
    outer = joined([each for place, each in enumerate(variables) if place != axis])
    text = MEAN_SQUARE.format(
        all=joined(variables),
        feature=variables[axis],
        axis=axis,
        binders=outer or "one=1",
        kept=outer or "0",
    )
    return variant(text, {"eps": attributes.number("eps")})


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    """Return the shape of the scale: one element for every feature."""
    data = shapes["data"]
    if data is None:
        return {}
    return {"gamma": (data[axis_in("RMSNorm", attributes.integer("axis"), len(data))],)}


def _group_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    """Return the shapes of scale and offset: one element for every channel."""
    data = shapes["data"]
    if data is None:
        return {}
    check_rank("GroupNorm", "data", len(data), "batch, channel, ...")
    return dict.fromkeys(("gamma", "beta"), (data[1],))


OPERATORS = (
    Operator(
        name="GroupNorm",
        definition=ByShape(_group_norm, of_data),
        argument_names=arguments("data", "gamma", "beta"),
        specs=(integer("num_groups", 1, least=1), number("eps", 1e-5)),
        hints=_group_hints,
        example=Example({"data": (2, 4, 3), "gamma": (4,), "beta": (4,)}, {"num_groups": 2}),
    ),
    Operator(
        name="RMSNorm",
        definition=ByRank(_rms_norm),
        argument_names=arguments("data", "gamma"),
        specs=(integer("axis", -1), number("eps", 1e-6)),
        hints=_hints,
        example=Example({"data": (2, 4, 3), "gamma": (3,)}),
    ),
)
