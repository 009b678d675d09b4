"""Where a plan's graph came from, so that later commands find it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """What `tofu plan` was called with: MODEL, `batch` and `shapes` where given, and the graph's options.

    Only a remark: the plan's fingerprint says whether a graph is the one it was made for.
    """

    model: str
    batch: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    optimizer: str = "sgd"
    dtype: str = "float32"
    accumulate: int = 1
