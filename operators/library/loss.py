"""Operators that start the backward pass, and BlockGrad, which ends it.

A loss operator's output is a prediction. Its gradient is that of a loss that is never computed. Labels
are therefore read by the gradients alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, flag, number
from ..stages.definition import Fixed, Variant, text, variant
from .arguments import arguments
from .texts import filled_like, flat_index, joined, names, product_of_extents

IDENTITY = "data[*i]"
PREDICTIONS = {
    "LinearRegressionOutput": (IDENTITY, "output_0[{all}] - label[{label}]"),
    "LogisticRegressionOutput": ("sigmoid(data[*i])", "output_0[{all}] - label[{label}]"),
    "MAERegressionOutput": (IDENTITY, "sign(output_0[{all}] - label[{label}])"),
}
"""For each regression: the prediction, and the gradient before it is scaled."""


def _label_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    """Return the label's shape: that of data. The label of a column may lack its dimension of extent 1."""
    data, label = shapes["data"], shapes["label"]
    if data is None or label is not None:
        return {}
    return {"label": data[:1] if len(data) == 2 and data[1] == 1 else data}


def _regression_gradient(name: str, difference: str) -> Callable[[Attributes, Mapping[str, Shape]], Variant]:
    """Return a function that makes the gradient, divided by the number of outputs of one sample."""

    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        data, label = shapes["data"], shapes["label"]
        if label != data and (label != data[:1] or data[1:] != (1,)):
            raise ShapeError(f"{name}: label has shape {label}, data has {data}; they must be equal")
        everywhere, labelled = ("*i", "*i") if label == data else ("*i, j", "*i")
        body = difference.format(all=everywhere, label=labelled)
        outputs = product_of_extents("output_0", range(1, len(data)))
        return variant(
            f"def {name}_grad(output_0, label, *, grad_scale):\n"
            f"    return lambda {everywhere}: ({body}) * (grad_scale / ({outputs}))",
            {"grad_scale": attributes.number("grad_scale")},
            targets={"data": "output_0"},
        )

    return describe


def _regressions() -> tuple[Operator, ...]:
    return tuple(
        Operator(
            name=name,
            definition=text(f"def {name}(data):\n    return lambda *i: {prediction}"),
            argument_names=arguments("data", "label"),
            specs=(number("grad_scale", 1.0),),
            gradient_definition=_regression_gradient(name, difference),
            hints=_label_hints,
            is_loss=True,
            example=Example({"data": (2, 3), "label": (2, 3)}),
        )
        for name, (prediction, difference) in PREDICTIONS.items()
    )


def _constant_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return `grad_scale` everywhere, or divided by the batch or by the number of valid elements."""
    rank, value = len(shapes["data"]), "grad_scale"
    head = "def MakeLoss_grad(data, *, grad_scale):\n"
    constants = {"grad_scale": attributes.number("grad_scale")}
    targets = {"data": "output_0"}
    stages = ""
    match attributes.text("normalization"):
        case "batch":
            value = "grad_scale / data.shape[0]" if rank else value
        case "valid":
            head = "def MakeLoss_grad(data, *, grad_scale, valid_thresh):\n"
            constants["valid_thresh"] = attributes.number("valid_thresh")
            stages = "    valid = lambda one=1: Sum(lambda *i: where(data[*i] > valid_thresh, 1, 0))\n"
            value = "grad_scale / maximum(valid[0], 1)"
    return variant(f"{head}{stages}    return {filled_like(value, 'data', rank)}", constants, targets=targets)


def _hinge_gradient(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the gradient of the plain or the squared hinge loss, for scores within the margin."""
    data = shapes["data"]
    variables = names("i", len(data))
    everywhere = joined(variables)
    classes = flat_index(variables[1:], data[1:])
    score = f"output_0[{everywhere}]"
    signed = f"where(label[{variables[0]}] == {classes}, -{score}, {score})"
    slope = (
        "where(margin + {0} > 0, 1, 0)" if attributes.flag("use_linear") else "2 * maximum(margin + {0}, 0)"
    )
    sign = f"where(label[{variables[0]}] == {classes}, -scale, scale)"
    return variant(
        "def SVMOutput_grad(output_0, label, *, margin, scale):\n"
        f"    return lambda {everywhere}: {sign} * {slope.format(signed)}",
        {
            "margin": attributes.number("margin"),
            "scale": attributes.number("regularization_coefficient"),
        },
        targets={"data": "output_0"},
    )


def _svm_hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    return {} if data is None else {"label": data[:1]}


def _ones(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    body = filled_like("1", "data", len(shapes["data"]))
    return variant(f"def make_loss_grad(data):\n    return {body}", targets={"data": "output_0"})


def _identity(name: str) -> Fixed:
    return text(f"def {name}(data):\n    return lambda *i: {IDENTITY}")


OPERATORS = (
    *_regressions(),
    Operator(
        name="MakeLoss",
        definition=_identity("MakeLoss"),
        argument_names=arguments("data"),
        specs=(
            number("grad_scale", 1.0),
            number("valid_thresh", 0.0),
            choice("normalization", "null", "batch", "valid", default="null"),
        ),
        gradient_definition=_constant_gradient,
        is_loss=True,
        example=Example({"data": (2, 3)}, {"grad_scale": 2.0}),
    ),
    Operator(
        name="make_loss",
        definition=_identity("make_loss"),
        argument_names=arguments("data"),
        gradient_definition=_ones,
        is_loss=True,
        example=Example({"data": (2, 3)}),
    ),
    Operator(
        name="SVMOutput",
        definition=_identity("SVMOutput"),
        argument_names=arguments("data", "label"),
        specs=(
            number("margin", 1.0),
            number("regularization_coefficient", 1.0),
            flag("use_linear", False),
        ),
        gradient_definition=_hinge_gradient,
        hints=_svm_hints,
        is_loss=True,
        example=Example({"data": (3, 4), "label": (3,)}, whole={"label": (0, 4)}),
    ),
    Operator(
        name="BlockGrad",
        aliases=("stop_gradient",),
        definition=_identity("BlockGrad"),
        argument_names=arguments("data"),
        differentiable=False,
        example=Example({"data": (2, 3)}),
    ),
)
