"""Devices, like MXNet's contexts; each entry of a context list is one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ExecutionError
from ..support.checked_argument import require_count


@dataclass(frozen=True, slots=True)
class Context:
    """A worker's device. Several workers may share the processor: `cpu(0)`, `cpu(1)`, ... all mean it.

    `gpu(i)` is card `i`. If it is listed several times, that number of workers share its memory.
    """

    device_type: str
    device_id: int = 0

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


def cpu(device_id: int = 0) -> Context:
    """Return a worker's device on the processor. Raises ExecutionError unless the number is from 0 on."""
    require_count(device_id, "device_id", ExecutionError)
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return the card of this number, as CUDA counts them. Raises ExecutionError as `cpu` does."""
    require_count(device_id, "device_id", ExecutionError)
    return Context("gpu", device_id)


def devices_of(context: Context | Sequence[Context] | None) -> tuple[Context, ...]:
    """Return the device of each worker; one worker on the processor if no context is given.

    Raises ExecutionError for an empty list, and for a value that is not a list of devices.
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
