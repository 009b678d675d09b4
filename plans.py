"""For those who write or read plans: forms, copies, and what they stand for.

docs/written-plans.md has a page of short plans.
"""

from __future__ import annotations

from .partitioner.layouts.copies import Copy
from .partitioner.layouts.forms import At, Cut, Follow, Partial, Parts, Spread
from .partitioner.layouts.step_split import Layout
from .partitioner.plans.assignment import Move, Version
from .partitioner.plans.compose import compose
from .partitioner.plans.sampling import Sampling
from .partitioner.translation.dtensor import to_torch
from .partitioner.translation.placements import Replicate, Shard, Unreduced
from .partitioner.translation.translation import Translation
from .programs.parts import Holding, Task

__all__ = [
    "At",
    "Copy",
    "Cut",
    "Follow",
    "Holding",
    "Layout",
    "Move",
    "Partial",
    "Parts",
    "Replicate",
    "Sampling",
    "Shard",
    "Spread",
    "Task",
    "Translation",
    "Unreduced",
    "Version",
    "compose",
    "to_torch",
]
