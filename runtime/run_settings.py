"""How a symbol is run, whatever it is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy.typing as npt

from .initializer import WeightRule


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a symbol is run over the workers of a context."""

    initializer: WeightRule | None = None
    """Start values of parameters; Xavier's if None."""

    parameters: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    """Start values by name, in place of the initializer's."""

    seed: int = 0
    """Of the initializer and of everything else that is random."""

    threads: int | None = None
    """How many threads the CPU workers share; None leaves that to the engine."""

    eager: bool = False
    """Whether GPUs run each kernel by itself; otherwise an iteration is one CUDA graph."""

    tf32: bool = False
    """Whether GPUs may round the factors of float32 products to TF32."""

    detect_nan: bool = False
    """Whether the first operation whose result is not a number stops the workers and is named; every result
    is read once more for it."""

    memory_bytes: int | None = None
    """The most that a worker may hold, training and evaluation together; what would take more is an
    ExecutionError before it runs."""

    dtype: str = "float32"
    """The type in which GPUs store large activations and gradients, see `training_graph`."""

    loss_scale: float | None = None
    """By how much gradients are multiplied in a smaller type; None means a scale that suits it."""
