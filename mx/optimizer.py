"""`mx.optimizer`: settings of update operators of the library, under MXNet's names and defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..dataflow import optimizer as dataflow
from ..dataflow.symbol import Symbol
from ..errors import OperatorError
from ..support.wording import alternatives
from .lr_scheduler import LRScheduler

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSProp", "create", "register"]

REGISTRY: dict[str, type[Optimizer]] = {}

PYTHON_UPDATES = (
    "update",
    "update_multi_precision",
    "step",
    "fused_step",
    "create_state",
    "create_state_multi_precision",
)
"""The methods in which optimizers of MXNet compute updates."""


class Optimizer:
    """How parameters are updated; `settings` is what the training graph is built from.

    Subclasses name an update operator of the library in `settings`: updates are part of the partitioned
    graph, so that one written in Python cannot be used. `graph_settings` refuses it. `rescale_grad` is one
    over the batch where a module creates the optimizer by name.
    """

    defaults: ClassVar[Mapping[str, float]] = {}

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | Callable[[int], float] | None = None,
        sym: Symbol | None = None,
        begin_num_update: int = 0,
        **others: Any,
    ) -> None:
        ignored = ("multi_precision", "param_dict", "lazy_update", "aggregate_num", "use_fused_step")
        others = {key: value for key, value in others.items() if key not in ignored}
        if others:
            name = next(iter(others))
            known = (*self.defaults, "rescale_grad", "wd", "clip_gradient", "learning_rate", "lr_scheduler")
            raise OperatorError(f"{type(self).__name__} has no setting {name!r}{alternatives(name, known)}")
        self.rescale_grad = rescale_grad
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.lr = self.defaults.get("learning_rate", 0.01) if learning_rate is None else learning_rate
        self.lr_scheduler = lr_scheduler
        if isinstance(lr_scheduler, LRScheduler) and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.num_update = self.begin_num_update = begin_num_update
        self.lr_mult: dict[str, float] = {}
        self.wd_mult: dict[str, float] = {}

    @property
    def settings(self) -> dataflow.Optimizer:
        """The update operator and its attributes. Raises OperatorError for an optimizer that has none."""
        raise OperatorError(
            f"{type(self).__name__} names no update operator: updates run inside the partitioned graph, so "
            f"one written in Python cannot be used; known are {', '.join(sorted(REGISTRY))}"
        )

    def graph_settings(self) -> dataflow.Optimizer:
        """Return `settings`. Raises OperatorError if the class computes updates in Python."""
        written = [name for name in PYTHON_UPDATES if _method(type(self), name) != _method(Optimizer, name)]
        if written:
            own = sorted(name for name, klass in REGISTRY.items() if klass.__module__ == __name__)
            raise OperatorError(
                f"{type(self).__name__}.{written[0]} would never be called: updates run inside the "
                f"partitioned graph; use {', '.join(own)}, or name an update operator in `settings`"
            )
        return self.settings

    def rate(self, num_update: int) -> float:
        """Return the learning rate of an update; updates count from 1."""
        return float(self.lr_scheduler(num_update)) if self.lr_scheduler is not None else self.lr

    @property
    def learning_rate(self) -> float:
        """The learning rate of the newest update."""
        return self.rate(max(self.num_update, 1))

    def set_learning_rate(self, lr: float) -> None:
        """Raises OperatorError if a scheduler decides the rate."""
        if self.lr_scheduler is not None:
            raise OperatorError("the learning rate is decided by lr_scheduler and cannot be set")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: Mapping[str, float]) -> None:
        """Set multipliers of the learning rate by parameter. They override `__lr_mult__` of variables."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Mapping[str, float]) -> None:
        """Set multipliers of the weight decay by parameter. They override `__wd_mult__` of variables."""
        self.wd_mult = dict(args_wd_mult)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Raises OperatorError: updates are operations of the graph."""
        raise OperatorError("updates run inside the partitioned graph; call Module.update")

    def _with_common(self, made: dataflow.Optimizer, **attributes: float) -> dataflow.Optimizer:
        """Add further attributes, and the settings that all optimizers have."""
        if self.clip_gradient is not None:
            attributes["clip_gradient"] = float(self.clip_gradient)
        return replace(
            made,
            attributes={**made.attributes, **attributes},
            weight_decay=self.wd,
            rescale=self.rescale_grad,
            rate_multipliers=self.lr_mult,
            decay_multipliers=self.wd_mult,
        )


def _method(klass: type[Optimizer], name: str) -> Any:
    """Return a method of a class; None if it has none of this name."""
    return getattr(klass, name, None)


def register(klass: type[Optimizer]) -> type[Optimizer]:
    """Make an optimizer known by its lower-case name, for `create`."""
    REGISTRY[klass.__name__.lower()] = klass
    return klass


def create(name: str | Optimizer, **settings: Any) -> Optimizer:
    """Return the optimizer of this name. Raises OperatorError if it is unknown."""
    if isinstance(name, Optimizer):
        return name
    if name.lower() not in REGISTRY:
        raise OperatorError(f"there is no optimizer {name!r}{alternatives(name.lower(), sorted(REGISTRY))}")
    return REGISTRY[name.lower()](**settings)


@register
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum unless that is 0."""

    def __init__(self, momentum: float = 0.0, **settings: Any) -> None:
        super().__init__(**settings)
        self.momentum = momentum

    @property
    def settings(self) -> dataflow.Optimizer:
        return self._with_common(dataflow.sgd(self.momentum))


class _Moments(Optimizer):
    """Optimizers that keep means of gradients and of their squares."""

    make: ClassVar[Callable[..., dataflow.Optimizer]]
    defaults: ClassVar[Mapping[str, float]] = {"learning_rate": 0.001}

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **settings: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **settings)
        self.moments = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    @property
    def settings(self) -> dataflow.Optimizer:
        return self._with_common(type(self).make(**self.moments))


@register
class Adam(_Moments):
    """Adam; weight decay is part of the gradient."""

    make = staticmethod(dataflow.adam)


@register
class AdamW(_Moments):
    """Adam; weights decay by `wd` times the learning rate, apart from the gradient."""

    make = staticmethod(dataflow.adamw)


@register
class RMSProp(Optimizer):
    """Steps divided by the root of a moving mean of squares; with momentum where `centered`."""

    defaults: ClassVar[Mapping[str, float]] = {"learning_rate": 0.001}

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **settings)
        self.centered = centered
        self.means = {"gamma1": gamma1, "epsilon": epsilon}
        self.attributes = {"gamma2": gamma2} if centered else {}
        if clip_weights is not None:
            self.attributes["clip_weights"] = clip_weights

    @property
    def settings(self) -> dataflow.Optimizer:
        made = dataflow.rmsprop(**self.means)
        if self.centered:
            made = replace(made, operator="rmspropalex_update")
        return self._with_common(made, **self.attributes)
