"""Costs: numbers with their units."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CostUnit(StrEnum):
    """The unit of a cost. Costs are integers, so that sums are exact."""

    BYTES = "bytes"
    PICOSECONDS = "picoseconds"


PICOSECONDS_PER_SECOND = 10**12


@dataclass(frozen=True, slots=True)
class Cost:
    """A number with its unit."""

    value: int
    """The number."""

    unit: CostUnit
    """The unit in which it counts."""

    @property
    def bytes(self) -> int | None:
        """Return the number of bytes; None if this counts something else."""
        return self.value if self.unit is CostUnit.BYTES else None

    @property
    def seconds(self) -> float | None:
        """Return the time in seconds; None if this is not a time."""
        return self.value / PICOSECONDS_PER_SECOND if self.unit is CostUnit.PICOSECONDS else None

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"
