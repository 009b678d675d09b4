"""Settings for running a symbol, whatever it is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy.typing as npt

from .arrival_log import ArrivalLog
from .initializer import WeightRule


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings for running a symbol over the workers of a context."""

    initializer: WeightRule | None = None
    """The rule for initial values of weights; Xavier's if None."""

    parameters: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    """Initial values by name, instead of the initializer's."""

    seed: int = 0
    """The seed of the initializer and of all random operators."""

    threads: int | None = None
    """The number of threads that the CPU workers share; None lets the engine choose."""

    eager: bool = False
    """Whether GPUs launch each kernel separately; otherwise an iteration is one CUDA graph."""

    tf32: bool = False
    """Whether GPUs may round the factors of float32 products to TF32."""

    detect_nan: bool = False
    """Whether the first NaN in a result is an error that names its operation."""

    guard_buffers: bool = False
    """Whether writing outside of buffers is an error that names the operation."""

    memory_bytes: int | None = None
    """The most that a worker may hold for training and evaluation together.

    If it needs more, ExecutionError is raised before anything runs.
    """

    dtype: str = "float32"
    """The type in which GPUs store large activations and gradients, see `training_graph`."""

    loss_scale: float | None = None
    """The factor by which gradients are multiplied in a 16-bit type; None means the type's default."""

    recompute: int = 1
    """The number of segments whose activations are computed again, see `training_graph`."""

    arrivals: ArrivalLog | None = None
    """The log of the orders in which gradients are applied, if a plan applies them as they arrive."""

    @property
    def facts(self) -> dict[str, object]:
        """Return the settings in which all processes of a run must agree."""
        return {
            "the seed": self.seed,
            "the dtype": self.dtype,
            "the loss scale": self.loss_scale,
            "detect_nan": self.detect_nan,
            "guard_buffers": self.guard_buffers,
            "the memory of a worker": self.memory_bytes,
            "recompute": self.recompute,
            "eager": self.eager,
            "tf32": self.tf32,
        }
