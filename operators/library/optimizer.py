"""Updates of weights and optimizer states; their outputs overwrite the inputs that `overwrites` names.

The learning rate is a tensor of one element, because it changes between iterations. Otherwise attributes
and arithmetic are MXNet's. Two are PyTorch's: adam_corrected_update corrects moments before it adds epsilon,
and so does adamw_update, whose decay is not part of the gradient (Loshchilov and Hutter). The `mp_` forms
update a master copy, which the weight then repeats. `accumulate_update` sums gradients over micro-batches.
They are numbered from 0, and at 0 the sum starts again.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, AttributeSpec, number
from ..stages.definition import Constant, Fixed, Variant, variant
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

SGD_MASTER = """
def mp_sgd_update(grad, weight32, lr, *, wd, rescale_grad{clip}):
    return (
        lambda *i: (1 - lr[0] * wd) * weight32[*i] - lr[0] * {step},
        lambda *i: (1 - lr[0] * wd) * weight32[*i] - lr[0] * {step},
    )
"""

SGD_MOMENTUM_MASTER = """
def mp_sgd_mom_update(grad, mom, weight32, lr, *, momentum, wd, rescale_grad{clip}):
    return (
        lambda *i: weight32[*i] + momentum * mom[*i] - lr[0] * wd * weight32[*i] - lr[0] * {step},
        lambda *i: momentum * mom[*i] - lr[0] * wd * weight32[*i] - lr[0] * {step},
        lambda *i: weight32[*i] + momentum * mom[*i] - lr[0] * wd * weight32[*i] - lr[0] * {step},
    )
"""

ADAM = """
def {name}(weight, grad, mean, var, lr, *, beta1, beta2, epsilon, wd, rescale_grad{clip}):
    return (
        lambda *i: {kept} - lr[0] * (beta1 * mean[*i] + (1 - beta1) * {step})
            / (sqrt(beta2 * var[*i] + (1 - beta2) * square({step})) + epsilon),
        lambda *i: beta1 * mean[*i] + (1 - beta1) * {step},
        lambda *i: beta2 * var[*i] + (1 - beta2) * square({step}),
    )
"""

ADAM_CORRECTED = """
def {name}(
    weight, grad, mean, var, lr, count, *, beta1, beta2, epsilon, wd, rescale_grad{clip}, log1, log2
):
    return (
        lambda *i: {kept} + lr[0] / expm1((count[0] + 1) * log1) * (beta1 * mean[*i] + (1 - beta1) * {step})
            / (sqrt((beta2 * var[*i] + (1 - beta2) * square({step})) / -expm1((count[0] + 1) * log2))
            + epsilon),
        lambda *i: beta1 * mean[*i] + (1 - beta1) * {step},
        lambda *i: beta2 * var[*i] + (1 - beta2) * square({step}),
    )
"""
"""Moments start at zero, so each is divided by one less the power of its beta: expm1 keeps all digits."""

RMSPROP = """
def rmsprop_update(weight, grad, n, lr, *, gamma1, epsilon, wd, rescale_grad{clip}):
    return (
        lambda *i: {bounded},
        lambda *i: gamma1 * n[*i] + (1 - gamma1) * square({step}),
    )
"""

RMSPROP_WEIGHT = (
    "weight[*i] - lr[0] * {step} * rsqrt(gamma1 * n[*i] + (1 - gamma1) * square({step}) + epsilon)"
)

RMSPROP_ALEX = """
def rmspropalex_update(weight, grad, n, g, delta, lr, *, gamma1, gamma2, epsilon, wd, rescale_grad{clip}):
    return (
        lambda *i: {bounded},
        lambda *i: gamma1 * n[*i] + (1 - gamma1) * square({step}),
        lambda *i: gamma1 * g[*i] + (1 - gamma1) * {step},
        lambda *i: {change},
    )
"""

RMSPROP_ALEX_CHANGE = (
    "gamma2 * delta[*i] - lr[0] * {step} * rsqrt(gamma1 * n[*i] + (1 - gamma1) * square({step}) "
    "- square(gamma1 * g[*i] + (1 - gamma1) * {step}) + epsilon)"
)

ACCUMULATE = """
def accumulate_update(total, grad, micro_batch):
    return lambda *i: where(micro_batch[0] > 0, total[*i] + grad[*i], grad[*i])
"""

RESCALED = "(rescale_grad * grad[*i])"
DECAYED = "(rescale_grad * grad[*i] + wd * weight[*i])"


def _definition(template: str, step: str, decay: str = "", **parts: str) -> Fixed:
    """Return an update. `{step}` in the template is the rescaled gradient, clipped if `clip_gradient` >= 0.

    A `decay` is added to it after that. `parts` fill the template's other places and may contain steps
    themselves. `clip_weights` above zero bounds the new weight, `{bounded}`.
    """

    def describe(attributes: Attributes) -> Variant:
        constants: dict[str, Constant] = {
            name: attributes.number(name)
            for name in attributes
            if name not in ("clip_gradient", "clip_weights")
        }
        clip, own = "", step
        if attributes.number("clip_gradient") >= 0:
            constants["clip_gradient"] = attributes.number("clip_gradient")
            clip, own = ", clip_gradient", f"minimum(maximum({step}, -clip_gradient), clip_gradient)"
        if decay:
            own = f"({own} + {decay})"
        filled = {name: part.format(step=own) for name, part in parts.items()}
        if "bounded" in filled and attributes.number("clip_weights") > 0:
            constants["clip_weights"] = attributes.number("clip_weights")
            clip += ", clip_weights"
            filled["bounded"] = f"minimum(maximum({filled['bounded']}, -clip_weights), clip_weights)"
        return variant(template.format(clip=clip, step=own, **filled), constants)

    return Fixed(describe)


def _logarithm(operator: str, name: str, beta: float) -> float:
    """Return the logarithm of a beta; that of 0 is a number whose power of e is 0."""
    if not 0 <= beta < 1:
        raise OperatorError(f"{operator}: {name}={beta} must be from 0 to below 1")
    return log(beta) if beta else -1e30


def _corrected(operator: str, kept: str, decay: str = "") -> Fixed:
    """Return an update of Adam that corrects moments, with the logarithms of both betas as constants."""
    plain = _definition(ADAM_CORRECTED, RESCALED, decay, name=operator, kept=kept)

    def describe(attributes: Attributes) -> Variant:
        found = plain.describe(attributes)
        logarithms = {
            f"log{k}": _logarithm(operator, f"beta{k}", attributes.number(f"beta{k}")) for k in (1, 2)
        }
        return replace(found, constants={**found.constants, **logarithms})

    return Fixed(describe)


def _update(
    name: str,
    definition: Fixed,
    states: tuple[str, ...],
    *specs: AttributeSpec,
    scalars: tuple[str, ...] = ("lr",),
) -> Operator:
    tensors = ("weight", "grad", *states)
    return Operator(
        name=name,
        definition=definition,
        argument_names=arguments(*tensors, *scalars),
        specs=(*specs, number("wd", 0.0), number("rescale_grad", 1.0), number("clip_gradient", -1.0)),
        output_count=lambda attributes: 1 + len(states),
        overwrites=("weight", *states),
        example=Example(
            {**dict.fromkeys(tensors, (2, 3)), **dict.fromkeys(scalars, (1,))},
            domain={"n": lambda squares: squares + 1} if "n" in states else {},
        ),
    )


MOMENTUM = number("momentum", 0.0)
MOMENTS = (number("beta1", 0.9), number("beta2", 0.999), number("epsilon", 1e-8))
CLIP_WEIGHTS = number("clip_weights", -1.0)

OPERATORS = (
    Operator(
        name="accumulate_update",
        definition=Fixed(lambda attributes: variant(ACCUMULATE)),
        argument_names=arguments("total", "grad", "micro_batch"),
        overwrites=("total",),
        example=Example({"total": (2, 3), "grad": (2, 3), "micro_batch": (1,)}),
    ),
    _update("sgd_update", _definition(SGD, RESCALED), ()),
    _update("sgd_mom_update", _definition(SGD_MOMENTUM, RESCALED), ("mom",), MOMENTUM),
    _update("mp_sgd_update", _definition(SGD_MASTER, RESCALED), ("weight32",)),
    _update("mp_sgd_mom_update", _definition(SGD_MOMENTUM_MASTER, RESCALED), ("mom", "weight32"), MOMENTUM),
    _update(
        "adam_update",
        _definition(ADAM, DECAYED, name="adam_update", kept="weight[*i]"),
        ("mean", "var"),
        *MOMENTS,
    ),
    _update(
        "adam_corrected_update",
        _corrected("adam_corrected_update", "weight[*i]", "wd * weight[*i]"),
        ("mean", "var"),
        *MOMENTS,
        scalars=("lr", "count"),
    ),
    _update(
        "adamw_update",
        _corrected("adamw_update", "(1 - lr[0] * wd) * weight[*i]"),
        ("mean", "var"),
        *MOMENTS,
        scalars=("lr", "count"),
    ),
    _update(
        "rmsprop_update",
        _definition(RMSPROP, DECAYED, bounded=RMSPROP_WEIGHT),
        ("n",),
        number("gamma1", 0.95),
        number("epsilon", 1e-8),
        CLIP_WEIGHTS,
    ),
    _update(
        "rmspropalex_update",
        _definition(
            RMSPROP_ALEX, DECAYED, bounded=f"weight[*i] + {RMSPROP_ALEX_CHANGE}", change=RMSPROP_ALEX_CHANGE
        ),
        ("n", "g", "delta"),
        number("gamma1", 0.95),
        number("gamma2", 0.9),
        number("epsilon", 1e-8),
        CLIP_WEIGHTS,
    ),
)
