"""Softmax over one dimension or several: softmax, log_softmax, SoftmaxActivation, softmax_cross_entropy.

Maximum, sum and output are separate stages, so that each is split in the best way. The gradient ignores
the maximum, which cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, choice, integer, optional_number
from ..stages.definition import ByRank, Constant, Variant, text, variant
from .arguments import arguments
from .texts import axis_in, joined, names

SOFTMAX = """
def {name}(data{parameter}):
    peak = lambda {outer}: Max(lambda {inner}: data[{all}])
    total = lambda {outer}: Sum(lambda {inner}: exp({tempered}))
    return lambda {all}: exp({tempered}) / total[{kept}]
"""

SOFTMAX_GRADIENT = """
def {name}_grad(grad_0, output_0{parameter}):
    projection = lambda {outer}: Sum(lambda {inner}: grad_0[{all}] * output_0[{all}])
    return lambda {all}: output_0[{all}] * (grad_0[{all}] - projection[{kept}]){division}
"""

LOG_SOFTMAX = """
def {name}(data{parameter}):
    peak = lambda {outer}: Max(lambda {inner}: data[{all}])
    total = lambda {outer}: Sum(lambda {inner}: exp({tempered}))
    return lambda {all}: {tempered} - log(total[{kept}])
"""

LOG_SOFTMAX_GRADIENT = """
def {name}_grad(grad_0, output_0{parameter}):
    grad_sum = lambda {outer}: Sum(lambda {inner}: grad_0[{all}])
    return lambda {all}: (grad_0[{all}] - exp(output_0[{all}]) * grad_sum[{kept}]){division}
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
    """Index variables of data: those that number the distributions, and those within one."""

    variables: tuple[str, ...]
    classes: Collection[int]

    def fill(self, template: str, name: str, tempered: bool = False) -> str:
        """Return the template for an operator; `tempered` divides by its attribute `temperature`."""
        kept = [v for d, v in enumerate(self.variables) if d not in self.classes]
        inner = [v for d, v in enumerate(self.variables) if d in self.classes]
        places = {"all": joined(self.variables), "kept": joined(kept) or "0"}
        relative = "data[{all}] - peak[{kept}]".format(**places)
        return template.format(
            name=name,
            outer=joined(kept) or "one=1",
            inner=joined(inner),
            parameter=", *, temperature" if tempered else "",
            tempered=f"({relative}) / temperature" if tempered else relative,
            division=" / temperature" if tempered else "",
            **places,
        )


def distribution(rank: int, classes: Collection[int]) -> Distribution:
    return Distribution(names("i", rank), frozenset(classes))


def _forward(name: str, template: str, classes: Classes) -> ByRank:
    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        return variant(*_tempered(template, name, attributes, classes, ranks["data"]))

    return ByRank(describe)


def _tempered(
    template: str, name: str, attributes: Attributes, classes: Classes, rank: int
) -> tuple[str, Mapping[str, Constant]]:
    """Return text and constants; a temperature of one is left out.

    Raises OperatorError unless it is above 0.
    """
    temperature = attributes.get("temperature")
    given = temperature not in (None, 1)
    if given and attributes.number("temperature") <= 0:
        raise OperatorError(f"{name}: temperature={temperature} must be above 0")
    text = distribution(rank, classes(attributes, rank)).fill(template, name, given)
    return text, {"temperature": attributes.number("temperature")} if given else {}


def _gradient(
    name: str, template: str, classes: Classes
) -> Callable[[Attributes, Mapping[str, Shape]], Variant]:
    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        text, constants = _tempered(template, name, attributes, classes, len(shapes["data"]))
        return variant(text, constants, targets={"data": "output_0"})

    return describe


def _along_axis(name: str) -> Classes:
    return lambda attributes, rank: (axis_in(name, attributes.integer("axis"), rank),)


def _by_mode(attributes: Attributes, rank: int) -> Collection[int]:
    """Return the dimension of one distribution: that of channels, or the last one, as in MXNet."""
    return (1,) if attributes.text("mode") == "channel" else (rank - 1,)


def _operator(name: str, template: str, gradient: str) -> Operator:
    return Operator(
        name=name,
        definition=_forward(name, template, _along_axis(name)),
        argument_names=arguments("data"),
        specs=(integer("axis", -1), optional_number("temperature")),
        gradient_definition=_gradient(name, gradient, _along_axis(name)),
        example=Example({"data": (2, 4)}),
    )


OPERATORS = (
    _operator("softmax", SOFTMAX, SOFTMAX_GRADIENT),
    _operator("log_softmax", LOG_SOFTMAX, LOG_SOFTMAX_GRADIENT),
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
