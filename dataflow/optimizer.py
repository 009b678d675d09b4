"""Optimizers: the update operator that overwrites the weights, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..errors import OperatorError
from ..support.checked_argument import is_number, require
from ..support.wording import alternatives


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An update operator of the library and its settings, the same for every parameter."""

    operator: str
    """The name of the update operator."""

    attributes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Its attributes, besides those below."""

    weight_decay: float = 0.0
    """The weight decay of a parameter whose multiplier is 1."""

    rescale: float | None = None
    """The factor of all gradients; None for one over the batch."""

    rate_multipliers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """By parameter, the multiplier of its learning rate. It replaces `__lr_mult__` of the variable."""

    decay_multipliers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """By parameter, the multiplier of its weight decay. It replaces `__wd_mult__` of the variable."""

    corrects: bool = False
    """Whether the operator corrects moments that start at zero; if not, the learning rate does."""

    clip_norm: float | None = None
    """The largest norm that the rescaled gradients of all parameters have together; None for any."""

    def __post_init__(self) -> None:
        decay, rescale = self.weight_decay, self.rescale
        require(is_number(decay), decay, "weight_decay", "a finite number", OperatorError)
        fits = rescale is None or is_number(rescale)
        require(fits, rescale, "rescale", "a finite number, or None", OperatorError)
        for name in ("beta1", "beta2"):
            beta = self.attributes.get(name, 0)
            fits = is_number(beta) and 0 <= beta < 1
            require(fits, beta, name, "a number from 0 to below 1", OperatorError)


EPSILON_MODES = ("mxnet", "torch")
"""When Adam adds epsilon to the root: before moments are corrected, as in MXNet, or after, as in PyTorch."""


def sgd(
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    rescale: float | None = None,
    *,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Optimizer:
    """Make stochastic gradient descent, with momentum unless that is 0."""
    if momentum == 0:
        made = Optimizer("sgd_update", {}, weight_decay, rescale)
    else:
        made = Optimizer("sgd_mom_update", {"momentum": momentum}, weight_decay, rescale)
    return clipped(made, clip_value, clip_norm)


def adam(
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    rescale: float | None = None,
    *,
    epsilon_mode: str = "mxnet",
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Optimizer:
    """Make Adam, whose weight decay is part of the gradient.

    With `epsilon_mode` "mxnet", epsilon is added to the root of the moment as it is, and the bias correction
    is part of the learning rate that is fed. With "torch", epsilon is added to the corrected root, as in
    `torch.optim.Adam` and the paper's algorithm 1, and the graph counts updates. Raises OperatorError for
    another mode.
    """
    if epsilon_mode not in EPSILON_MODES:
        raise OperatorError(f"epsilon_mode is {epsilon_mode!r}; expected 'mxnet' or 'torch'")
    corrects = epsilon_mode == "torch"
    operator = "adam_corrected_update" if corrects else "adam_update"
    settings = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    return clipped(
        Optimizer(operator, settings, weight_decay, rescale, corrects=corrects), clip_value, clip_norm
    )


def adamw(
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
    rescale: float | None = None,
    *,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Optimizer:
    """Make Adam with decoupled weight decay: weights decay by it times the learning rate.

    The steps are those of `torch.optim.AdamW`. The graph counts updates and corrects moments itself.
    """
    settings = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    return clipped(
        Optimizer("adamw_update", settings, weight_decay, rescale, corrects=True), clip_value, clip_norm
    )


def rmsprop(
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    rescale: float | None = None,
    *,
    clip_value: float | None = None,
    clip_norm: float | None = None,
) -> Optimizer:
    """Make RMSProp: steps are divided by the root of a moving mean of squared gradients."""
    made = Optimizer("rmsprop_update", {"gamma1": gamma1, "epsilon": epsilon}, weight_decay, rescale)
    return clipped(made, clip_value, clip_norm)


def clipped(optimizer: Optimizer, value: float | None, norm: float | None) -> Optimizer:
    """Return an optimizer that clips gradients, after `rescale`.

    First the gradients of all parameters together are made shorter, to the norm `clip_norm` if theirs is
    larger. Then each element is brought between `-clip_value` and `clip_value`. Raises OperatorError for a
    bound that is not a positive number. A bound of None leaves that of the optimizer.
    """
    for name, bound in (("clip_value", value), ("clip_norm", norm)):
        fits = bound is None or (is_number(bound) and bound > 0)
        require(fits, bound, name, "a positive number, or None", OperatorError)
    attributes = (
        optimizer.attributes if value is None else {**optimizer.attributes, "clip_gradient": float(value)}
    )
    return replace(
        optimizer, attributes=attributes, clip_norm=optimizer.clip_norm if norm is None else float(norm)
    )


OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = MappingProxyType(
    {"sgd": sgd, "adam": adam, "adamw": adamw, "rmsprop": rmsprop}
)


def get_optimizer(optimizer: Optimizer | str) -> Optimizer:
    """Return the optimizer, or look it up by name. Raises OperatorError for an unknown name."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    fits = isinstance(optimizer, str)
    require(fits, optimizer, "optimizer", "the name of an optimizer, or an Optimizer", OperatorError)
    if optimizer not in OPTIMIZERS:
        raise OperatorError(f"there is no optimizer {optimizer!r}{alternatives(optimizer, OPTIMIZERS)}")
    return OPTIMIZERS[optimizer]()
