"""Softmax over one dimension or several: softmax, log_softmax, SoftmaxActivation, softmax_cross_entropy.

Maximum, sum and output are stages of their own, so that each is split in its own way. The gradient goes
around the maximum, which cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...analyzer.region import Shape
from ..attributes import Attributes, choice, integer
from ..definition import ByRank, Variant, text, variant
from ..operator import Example, Operator
from .arguments import arguments
from .texts import axis_in, joined, names

SOFTMAX = """
def {name}(data):
    peak = lambda {outer}: Max(lambda {inner}: data[{all}])
    total = lambda {outer}: Sum(lambda {inner}: exp(data[{all}] - peak[{kept}]))
    return lambda {all}: exp(data[{all}] - peak[{kept}]) / total[{kept}]
"""

SOFTMAX_GRADIENT = """
def {name}_grad(grad_0, output_0):
    projection = lambda {outer}: Sum(lambda {inner}: grad_0[{all}] * output_0[{all}])
    return lambda {all}: output_0[{all}] * (grad_0[{all}] - projection[{kept}])
"""

LOG_SOFTMAX = """
def {name}(data):
    peak = lambda {outer}: Max(lambda {inner}: data[{all}])
    total = lambda {outer}: Sum(lambda {inner}: exp(data[{all}] - peak[{kept}]))
    return lambda {all}: data[{all}] - peak[{kept}] - log(total[{kept}])
"""

LOG_SOFTMAX_GRADIENT = """
def {name}_grad(grad_0, output_0):
    grad_sum = lambda {outer}: Sum(lambda {inner}: grad_0[{all}])
    return lambda {all}: grad_0[{all}] - exp(output_0[{all}]) * grad_sum[{kept}]
"""

CROSS_ENTROPY = """
def softmax_cross_entropy(data, label):
    peak = lambda n: Max(lambda c: data[n, c])
    total = lambda n: Sum(lambda c: exp(data[n, c] - peak[n]))
    return lambda one=1: Sum(lambda n: log(total[n]) + peak[n] - data[n, label[n]])
"""

CROSS_ENTROPY_GRADIENT = """
def softmax_cross_entropy_grad(grad_0, data, label, peak, total):
    return lambda n, c: grad_0[0] * (exp(data[n, c] - peak[n]) / total[n] - where(label[n] == c, 1, 0))
"""

Classes = Callable[[Attributes, int], Collection[int]]
"""The dimensions that one distribution extends over, for a rank."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Index variables of data, those that tell distributions apart and those within one."""

    variables: tuple[str, ...]
    classes: Collection[int]

    def fill(self, template: str, name: str) -> str:
        kept = [v for d, v in enumerate(self.variables) if d not in self.classes]
        inner = [v for d, v in enumerate(self.variables) if d in self.classes]
        return template.format(
            name=name,
            outer=joined(kept) or "one=1",
            kept=joined(kept) or "0",
            inner=joined(inner),
            all=joined(self.variables),
        )


def distribution(rank: int, classes: Collection[int]) -> Distribution:
    return Distribution(names("i", rank), frozenset(classes))


def _forward(name: str, template: str, classes: Classes) -> ByRank:
    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        rank = ranks["data"]
        return variant(distribution(rank, classes(attributes, rank)).fill(template, name))

    return ByRank(describe)


def _gradient(
    name: str, template: str, classes: Classes
) -> Callable[[Attributes, Mapping[str, Shape]], Variant]:
    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        rank = len(shapes["data"])
        text = distribution(rank, classes(attributes, rank)).fill(template, name)
        return variant(text, targets={"data": "output_0"})

    return describe


def _along_axis(attributes: Attributes, rank: int) -> Collection[int]:
    return (axis_in("softmax", attributes.integer("axis"), rank),)


def _by_mode(attributes: Attributes, rank: int) -> Collection[int]:
    return (1,) if attributes.text("mode") == "channel" else range(1, rank)


OPERATORS = (
    Operator(
        name="softmax",
        definition=_forward("softmax", SOFTMAX, _along_axis),
        argument_names=arguments("data"),
        specs=(integer("axis", -1),),
        gradient_definition=_gradient("softmax", SOFTMAX_GRADIENT, _along_axis),
        example=Example({"data": (2, 4)}),
    ),
    Operator(
        name="log_softmax",
        definition=_forward("log_softmax", LOG_SOFTMAX, _along_axis),
        argument_names=arguments("data"),
        specs=(integer("axis", -1),),
        gradient_definition=_gradient("log_softmax", LOG_SOFTMAX_GRADIENT, _along_axis),
        example=Example({"data": (2, 4)}),
    ),
    Operator(
        name="SoftmaxActivation",
        definition=_forward("SoftmaxActivation", SOFTMAX, _by_mode),
        argument_names=arguments("data"),
        specs=(choice("mode", "instance", "channel", default="instance"),),
        gradient_definition=_gradient("SoftmaxActivation", SOFTMAX_GRADIENT, _by_mode),
        example=Example({"data": (2, 3, 4)}, {"mode": "channel"}),
    ),
    Operator(
        name="softmax_cross_entropy",
        definition=text(CROSS_ENTROPY),
        argument_names=arguments("data", "label"),
        gradient_definition=lambda attributes, shapes: variant(
            CROSS_ENTROPY_GRADIENT, targets={"data": "output_0"}
        ),
        example=Example({"data": (3, 4), "label": (3,)}, whole={"label": (0, 4)}),
    ),
)
