"""Devices, in the manner of MXNet's contexts; each entry of a context list is one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExecutionError


@dataclass(frozen=True, slots=True)
class Context:
    """A worker's device. Several workers may share the processor: `cpu(0)`, `cpu(1)`, ... are all of it.

    `gpu(i)` is card `i`; it may be listed several times, and its memory is then shared by as many workers.
    """

    device_type: str
    device_id: int = 0

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


def cpu(device_id: int = 0) -> Context:
    """A worker on the processor."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """A worker on the card of this number, as CUDA counts them."""
    return Context("gpu", device_id)


def devices_of(context: Context | Sequence[Context] | None) -> tuple[Context, ...]:
    """The device of each worker; one on the processor where none is given.

    Raises ExecutionError for an empty list and for what is no list of devices.
    """
    if context is None:
        return (cpu(),)
    if isinstance(context, Context):
        return (context,)
    if not isinstance(context, Sequence) or not all(isinstance(device, Context) for device in context):
        raise ExecutionError(
            "the context lists a device for each worker, such as [tofu.cpu(i) for i in range(8)]; "
            f"found {context!r}"
        )
    if not context:
        raise ExecutionError("the context names no device; give at least one, such as [tofu.cpu(0)]")
    return tuple(context)
