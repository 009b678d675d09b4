"""IdentityAttachKLSparseReg: data as it is, and a gradient that pulls mean activations towards a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...analyzer.indices.region import Shape
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, number
from ..stages.definition import Definition, Variant, described, text
from .arguments import arguments

FORWARD = """
def IdentityAttachKLSparseReg(data):
    return lambda n, c: data[n, c]
"""

UPDATE = """
def IdentityAttachKLSparseReg_moving_avg(data, moving_avg, *, momentum):
    return (lambda c: momentum * moving_avg[c]
        + (1 - momentum) * Sum(lambda n: data[n, c]) / data.shape[0])
"""

GRADIENT = """
def IdentityAttachKLSparseReg_grad(grad_0, data, moving_avg, *, momentum, penalty, sparseness_target):
    average = lambda c: Sum(lambda n: data[n, c]) / data.shape[0]
    moved = lambda c: momentum * moving_avg[c] + (1 - momentum) * average[c]
    return lambda n, c: (grad_0[n, c]
        + penalty * ((1 - sparseness_target) / (1 - moved[c]) - sparseness_target / moved[c]))
"""


def _gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return replace(described(GRADIENT, attributes), targets={"data": "output_0"})


def _updates(attributes: Attributes) -> Mapping[str, Definition]:
    return {"moving_avg": text(UPDATE)}


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    return {} if data is None else {"moving_avg": data[1:]}


OPERATORS = (
    Operator(
        name="IdentityAttachKLSparseReg",
        definition=text(FORWARD),
        argument_names=arguments("data"),
        auxiliary=("moving_avg",),
        specs=(number("sparseness_target", 0.1), number("penalty", 0.001), number("momentum", 0.9)),
        gradient_definition=_gradient,
        update_definitions=_updates,
        hints=_hints,
        example=Example({"data": (4, 3), "moving_avg": (3,)}),
    ),
)
