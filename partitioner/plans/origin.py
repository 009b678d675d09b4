"""The origin of a plan's graph, so that later commands find it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """The arguments of `tofu plan`. The plan's fingerprint, not this, tells which graph it is for."""

    model: str
    """The MODEL argument."""

    batch: int | None = None
    """The batch size; None if it was not given."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes that were given."""

    optimizer: str | None = None
    """The optimizer's name; None for the model's own."""

    dtype: str = "float32"
    """The type in which large tensors are stored."""

    accumulate: int = 1
    """The number of micro-batches of a step."""

    recompute: int = 1
    """The number of segments whose activations are computed again."""

    unroll: bool = False
    """Whether the graph has the operations of all micro-batches."""
