"""Updates of weights and optimizer states; their outputs overwrite the inputs that `overwrites` names.

The learning rate is a tensor of one element, because it changes between iterations. Otherwise attributes
and arithmetic are MXNet's.
"""

from __future__ import annotations

from ..attributes import Attributes, AttributeSpec, number
from ..definition import Constant, Fixed, Variant, variant
from ..operator import Example, Operator
from .arguments import arguments

SGD = """
def sgd_update(weight, grad, lr, *, wd, rescale_grad{clip}):
    return lambda *i: (1 - lr[0] * wd) * weight[*i] - lr[0] * {step}
"""

SGD_MOMENTUM = """
def sgd_mom_update(weight, grad, mom, lr, *, momentum, wd, rescale_grad{clip}):
    return (
        lambda *i: weight[*i] + momentum * mom[*i] - lr[0] * wd * weight[*i] - lr[0] * {step},
        lambda *i: momentum * mom[*i] - lr[0] * wd * weight[*i] - lr[0] * {step},
    )
"""

ADAM = """
def adam_update(weight, grad, mean, var, lr, *, beta1, beta2, epsilon, wd, rescale_grad{clip}):
    return (
        lambda *i: weight[*i] - lr[0] * (beta1 * mean[*i] + (1 - beta1) * {step})
            / (sqrt(beta2 * var[*i] + (1 - beta2) * square({step})) + epsilon),
        lambda *i: beta1 * mean[*i] + (1 - beta1) * {step},
        lambda *i: beta2 * var[*i] + (1 - beta2) * square({step}),
    )
"""

RESCALED = "(rescale_grad * grad[*i])"
DECAYED = "(rescale_grad * grad[*i] + wd * weight[*i])"


def _clipped(template: str, step: str) -> Fixed:
    """`clip_gradient` below zero means that the step is not clipped."""

    def describe(attributes: Attributes) -> Variant:
        constants: dict[str, Constant] = {
            name: attributes.number(name) for name in attributes if name != "clip_gradient"
        }
        if attributes.number("clip_gradient") < 0:
            return variant(template.format(clip="", step=step), constants)
        constants["clip_gradient"] = attributes.number("clip_gradient")
        clipped = f"minimum(maximum({step}, -clip_gradient), clip_gradient)"
        return variant(template.format(clip=", clip_gradient", step=clipped), constants)

    return Fixed(describe)


def _update(name: str, definition: Fixed, states: tuple[str, ...], *specs: AttributeSpec) -> Operator:
    tensors = ("weight", "grad", *states)
    return Operator(
        name=name,
        definition=definition,
        argument_names=arguments(*tensors, "lr"),
        specs=(*specs, number("wd", 0.0), number("rescale_grad", 1.0), number("clip_gradient", -1.0)),
        output_count=lambda attributes: 1 + len(states),
        overwrites=("weight", *states),
        example=Example({**dict.fromkeys(tensors, (2, 3)), "lr": (1,)}),
    )


OPERATORS = (
    _update("sgd_update", _clipped(SGD, RESCALED), ()),
    _update("sgd_mom_update", _clipped(SGD_MOMENTUM, RESCALED), ("mom",), number("momentum", 0.0)),
    _update(
        "adam_update",
        _clipped(ADAM, DECAYED),
        ("mean", "var"),
        number("beta1", 0.9),
        number("beta2", 0.999),
        number("epsilon", 1e-8),
    ),
)
