"""Kinds of devices: their memory and how fast they are."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import MachineError


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Devices of the same make."""

    name: str
    """The name that files and messages use."""

    memory_bytes: int | None
    """The memory of one device; None if it is not stated."""

    bytes_per_second: float
    """The bandwidth of its memory."""

    flops_per_second: tuple[tuple[str, float], ...]
    """For each element type, the most floating-point operations in a second."""

    start_seconds: float
    """The time to start a kernel."""

    in_turn: bool = False
    """Whether one thread serves all computations and transfers of the device's workers, in the order of the
    clock. Otherwise transfers run next to computations.
    """

    wake_seconds: float = 0.0
    """The time from the end of an instruction to the start of one elsewhere that waits for it."""

    process: bool = False
    """Whether each device has a process of its own, and messages go from one to another."""

    @property
    def engine(self) -> str:
        """Return the name of the engine that runs on such devices."""
        if self.process:
            return "processes"
        return "numpy" if self.in_turn else "cuda"

    def rate(self, dtype: str) -> float:
        """Return the floating-point operations in a second. Raises MachineError if they are not stated."""
        rates = dict(self.flops_per_second)
        if dtype not in rates:
            raise MachineError(
                f"device kind {self.name!r} has no rate for {dtype}, which the graph computes in; it has "
                f"{', '.join(rates)}; add {dtype} to its `rates` in the machine file"
            )
        return rates[dtype]
