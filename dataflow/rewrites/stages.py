"""The descriptions that rewrites put into graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ...analyzer.indices.region import Shape
from ...operators.declare import parse
from ...operators.operator import Operator
from ...operators.stages.stage import Stage

COPY = "def stored(data):\n    return lambda *i: data[*i]"
ADD = "def corrected(error, gradient):\n    return lambda *i: error[*i] + gradient[*i]"
SUBTRACT = "def rounding_error(data, stored):\n    return lambda *i: data[*i] - stored[*i]"
SUM = "def sum_of_replicas(data):\n    return lambda *i: Sum(lambda replica: data[replica, *i])"


def stages_of(
    text: str, shapes: Mapping[str, Shape], **attributes: float | Sequence[int]
) -> tuple[Stage, ...]:
    """Return the stages of a description for tensors of these shapes."""
    return _operator(text).stages(attributes, shapes)


def stage_of(text: str, shapes: Mapping[str, Shape], **attributes: float | Sequence[int]) -> Stage:
    """Return the only stage of a description for tensors of these shapes."""
    (stage,) = stages_of(text, shapes, **attributes)
    return stage


@cache
def _operator(text: str) -> Operator:
    return parse(text, "<rewrites>")
