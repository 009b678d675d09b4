"""For those who train: optimizers with their settings, learning rates of every step, and early stopping.

`fit` takes an `Optimizer` as `optimizer`, a learning rate as `learning_rate`, and an `EarlyStopping` as
`early_stopping`. docs/optimizers.md has examples.
"""

from __future__ import annotations

from .dataflow.optimizer import OPTIMIZERS, Optimizer, adam, adamw, rmsprop, sgd
from .dataflow.optimizer import get_optimizer as get
from .runtime.early_stopping import EarlyStopping
from .runtime.learning_rate import ConstantRate, CosineRate, LearningRate, LinearRate, StepRate

__all__ = [
    "OPTIMIZERS",
    "ConstantRate",
    "CosineRate",
    "EarlyStopping",
    "LearningRate",
    "LinearRate",
    "Optimizer",
    "StepRate",
    "adam",
    "adamw",
    "get",
    "rmsprop",
    "sgd",
]
