"""Devices, in the manner of MXNet's contexts; each entry of a context list is one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExecutionError


@dataclass(frozen=True, slots=True)
class Context:
    """A worker's device. Several workers may share the processor: `cpu(0)`, `cpu(1)`, ... are all of it."""

    device_type: str
    device_id: int = 0

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


def cpu(device_id: int = 0) -> Context:
    """A worker on the processor."""
    return Context("cpu", device_id)


def worker_count(context: Context | Sequence[Context] | None) -> int:
    """How many workers a context stands for; none given is one. ExecutionError for an empty list."""
    if context is None or isinstance(context, Context):
        return 1
    if not context:
        raise ExecutionError("the context names no device; give at least one, such as [tofu.cpu(0)]")
    return len(context)
