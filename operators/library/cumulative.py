"""Sums of all elements up to a position: cumsum.

The description is a sum under a mask. The derived kernel recognises it as a scan, which takes linear time.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..operator import Example, Operator
from ..stages.attributes import Attributes, integer
from ..stages.definition import ByRank, Variant, variant
from .arguments import arguments
from .texts import axis_in, element, joined, names


def _cumsum(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    variables = names("i", ranks["data"])
    axis = axis_in("cumsum", attributes.integer("axis"), len(variables))
    place = variables[axis]
    before, after = variables[:axis], variables[axis + 1 :]
    binders = joined([*before, f"{place}=data.shape[{axis}]", *after])
    term = element("data", [*before, "k", *after])
    return variant(
        f"def cumsum(data):\n    return lambda {binders}: Sum(lambda k: where(k <= {place}, {term}, 0))"
    )


OPERATORS = (
    Operator(
        name="cumsum",
        definition=ByRank(_cumsum),
        argument_names=arguments("data"),
        specs=(integer("axis", -1),),
        example=Example({"data": (2, 4)}),
    ),
)
