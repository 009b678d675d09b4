"""Optimizers: the update operator that overwrites the weights, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..errors import OperatorError
from ..support.checked_argument import require
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


def sgd(momentum: float = 0.9, weight_decay: float = 0.0, rescale: float | None = None) -> Optimizer:
    """Make stochastic gradient descent, with momentum unless that is 0."""
    if momentum == 0:
        return Optimizer("sgd_update", {}, weight_decay, rescale)
    return Optimizer("sgd_mom_update", {"momentum": momentum}, weight_decay, rescale)


def adam(
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    rescale: float | None = None,
) -> Optimizer:
    """Make Adam; the bias correction is part of the learning rate that is fed, as in MXNet."""
    settings = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    return Optimizer("adam_update", settings, weight_decay, rescale)


def adamw(
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
    rescale: float | None = None,
) -> Optimizer:
    """Make Adam with decoupled weight decay: weights decay by it times the learning rate.

    The steps are those of `torch.optim.AdamW`. The graph counts updates and corrects moments itself.
    """
    settings = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    return Optimizer("adamw_update", settings, weight_decay, rescale, corrects=True)


def rmsprop(
    gamma1: float = 0.95, epsilon: float = 1e-8, weight_decay: float = 0.0, rescale: float | None = None
) -> Optimizer:
    """Make RMSProp: steps are divided by the root of a moving mean of squared gradients."""
    return Optimizer("rmsprop_update", {"gamma1": gamma1, "epsilon": epsilon}, weight_decay, rescale)


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
