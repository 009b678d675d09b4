"""The findings of an audit: verdicts, grades of regions, and counterexamples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..indices.region import Region, Shape


class Verdict(StrEnum):
    """How sure an audit is of one claim."""

    PROVEN = "proven"
    TRIED = "tried"
    REFUTED = "refuted"
    NOT_APPLICABLE = "not applicable"


class Grade(StrEnum):
    """How well regions fit: all elements are read; their hull is met; or there is more than that."""

    EXACT = "exact"
    TIGHT = "tight"
    LOOSE = "loose"


def worst(grades: Iterable[Grade]) -> Grade:
    """Return the worst of several grades; if nothing is read, regions are exact."""
    order = list(Grade)
    return max(grades, key=order.index, default=Grade.EXACT)


class Check(StrEnum):
    """A kind of claim."""

    REGIONS = "regions"
    OFFSET = "offset"
    CONCAT = "concat"
    REDUCE = "reduce"
    GRADIENT = "gradient"
    WHOLE = "A: whole"
    FOOTPRINT = "B: footprint"
    REPLAY = "C: replay"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A case in which a claim fails, as small as shrinking could make it."""

    message: str
    """The failure, in words."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    """The shapes of all tensors, by name."""

    workers: int | None = None
    """The number of workers; None if nothing is split."""

    worker: int | None = None
    """The worker that fails, counted from 0; None if the failure is not that of one worker."""

    tensor: str | None = None
    """The input that the failure concerns; None if it concerns an output."""

    region: Region | None = None
    """The region of `tensor` that the worker was given; None if regions do not matter."""

    place: tuple[int, ...] | None = None
    """The index of an element, of input `tensor` if that is not None, otherwise of an output; None if no
    element is concerned."""

    expected: float | None = None
    """The value that the element should have; None if it should have none, or if values do not matter."""

    found: float | None = None
    """The value that the element has; None as for `expected`."""

    def __str__(self) -> str:
        parts = [self.message]
        if self.expected is not None or self.found is not None:
            parts.append(f"expected {_number(self.expected)}, found {_number(self.found)}")
        if self.worker is not None:
            parts.append(f"worker {self.worker} of {self.workers}")
        elif self.workers is not None:
            parts.append(f"{self.workers} workers")
        if self.region is not None:
            intervals = ", ".join(f"{lower}:{upper}" for lower, upper in self.region)
            parts.append(f"region of {self.tensor} [{intervals}]")
        parts.append("with " + (", ".join(f"{n} {tuple(s)}" for n, s in self.shapes.items()) or "no tensors"))
        return "; ".join(parts)

    def data(self) -> dict[str, Any]:
        """Return plain data, without what is not known."""
        values = {
            "message": self.message,
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "workers": self.workers,
            "worker": self.worker,
            "tensor": self.tensor,
            "region": None if self.region is None else [list(interval) for interval in self.region],
            "place": None if self.place is None else list(self.place),
            "expected": _plain(self.expected),
            "found": _plain(self.found),
        }
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one claim about one operator."""

    operator: str
    """The name of the operator's description."""

    check: Check
    """The claim."""

    verdict: Verdict
    """Whether the claim is proven, tried or refuted, or does not apply."""

    reason: str
    """The name of the proof, or what was tried, or why the claim does not apply."""

    variable: str | None = None
    """The variable of the strategy that the claim is about; None if it is about the whole operator."""

    grades: Mapping[str, Grade] = field(default_factory=dict)
    """By tensor, how well its regions fit; empty if the claim is not about regions."""

    counterexample: Counterexample | None = None
    """A case that refutes the claim; None if there is none."""

    @property
    def grade(self) -> Grade | None:
        """The worst grade of any tensor; None if the claim is not about regions."""
        return worst(self.grades.values()) if self.check is Check.REGIONS else None

    def data(self) -> dict[str, Any]:
        """Return plain data."""
        entry: dict[str, Any] = {
            "operator": self.operator,
            "check": self.check.value,
            "variable": self.variable,
            "verdict": self.verdict.value,
            "reason": self.reason,
        }
        if self.grade is not None:
            entry["grade"] = self.grade.value
            entry["grades"] = {tensor: grade.value for tensor, grade in self.grades.items()}
        if self.counterexample is not None:
            entry["counterexample"] = self.counterexample.data()
        return entry


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.10g}"


def _plain(value: float | None) -> float | str | None:
    """Return a number that JSON can hold; NaN and infinities become text."""
    return value if value is None or value - value == 0 else str(value)
