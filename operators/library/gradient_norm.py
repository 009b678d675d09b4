"""The norm of all gradients together, and gradients made shorter by it.

The factor is `max_norm` over the norm, or 1 if the norm is smaller. Each gradient's sum of squares is an
operation of its own, so that it can be split like any sum. Pascanu, Mikolov and Bengio, *On the difficulty of
training recurrent neural networks* (2013), section 3.2.
"""

from __future__ import annotations

from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, number
from ..stages.definition import Fixed, Variant, text, variant
from .arguments import arguments

SUM_OF_SQUARES = """
def sum_of_squares(data):
    return lambda one=1: Sum(lambda *i: square(data[*i]))
"""

NORM_FACTOR = """
def norm_factor(squares, *, max_norm, rescale_grad):
    return lambda one: max_norm / maximum(max_norm, rescale_grad * sqrt(squares[one]))
"""

SHORTENED = """
def shortened(grad, factor):
    return lambda *i: grad[*i] * factor[0]
"""


def _norm_factor(attributes: Attributes) -> Variant:
    most, rescale = attributes.number("max_norm"), attributes.number("rescale_grad")
    if not most > 0:
        raise OperatorError(f"norm_factor: max_norm={most} must be above 0")
    return variant(NORM_FACTOR, {"max_norm": float(most), "rescale_grad": abs(float(rescale))})


OPERATORS = (
    Operator(
        name="sum_of_squares",
        definition=text(SUM_OF_SQUARES),
        argument_names=arguments("data"),
        example=Example({"data": (2, 3)}),
    ),
    Operator(
        name="norm_factor",
        definition=Fixed(_norm_factor),
        argument_names=arguments("squares"),
        specs=(number("max_norm"), number("rescale_grad", 1.0)),
        example=Example({"squares": (1,)}, {"max_norm": 0.5}),
    ),
    Operator(
        name="shortened",
        definition=text(SHORTENED),
        argument_names=arguments("grad", "factor"),
        example=Example({"grad": (2, 3), "factor": (1,)}),
    ),
)
