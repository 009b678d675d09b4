"""The time line of a program on a machine, and of boxes that change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .check_timeline import check_timeline
from .least_step import LeastStep, least_step
from .operation_seconds import operation_seconds
from .simulate import simulate
from .timeline import Timeline
from .versions import HeldCopy

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = [
    "HeldCopy",
    "LeastStep",
    "Simulation",
    "Timeline",
    "check_timeline",
    "least_step",
    "operation_seconds",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import `Simulation` when it is first used: most commands do not need it."""
    if name != "Simulation":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .simulation import Simulation

    return Simulation
