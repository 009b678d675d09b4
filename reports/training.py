"""The reports of a training run: each gets every event."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ..runtime.progress import Epoch, Progress
from .pace import Pace


@dataclass(frozen=True, slots=True)
class Start:
    """The facts of a run before its first iteration."""

    model: str
    """The model's name."""

    about: str
    """The model and the data, in words."""

    workers: int
    """The number of workers."""

    device: str
    """The devices, in words."""

    epochs: int
    """The number of epochs."""

    steps: int
    """The number of iterations in all epochs."""

    samples: int
    """The number of samples to train on."""

    held_out_samples: int
    """The number of samples held out."""

    parameters: int
    """The number of elements of all parameters."""

    peak_bytes_per_worker: int
    """The most memory that any worker holds: its arena and the workspace of its kernels."""

    resumed: bool
    """Whether the run continues an earlier one."""


class Report:
    """Receives a run's events in order, and ignores them; entered before the first, left after the last."""

    def start(self, start: Start) -> None:
        """Before the first iteration."""

    def step(self, step: Progress) -> None:
        """After an iteration."""

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        """Called after each epoch. `epochs` is the total."""

    def summary(self, facts: Mapping[str, Any]) -> None:
        """After the last iteration."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """However the run ended."""


class Several(Report):
    """Several reports as one."""

    def __init__(self, reports: Sequence[Report]) -> None:
        self._reports = reports
        self._stack = ExitStack()

    def start(self, start: Start) -> None:
        for report in self._reports:
            report.start(start)

    def step(self, step: Progress) -> None:
        for report in self._reports:
            report.step(step)

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        for report in self._reports:
            report.epoch(epoch, epochs)

    def summary(self, facts: Mapping[str, Any]) -> None:
        for report in self._reports:
            report.summary(facts)

    def __enter__(self) -> Self:
        for report in self._reports:
            self._stack.enter_context(report)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


class JsonLines(Report):
    """One JSON object per epoch on standard output, and a last one with the summary."""

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        print(json_line(epoch_facts(epoch)), flush=True)

    def summary(self, facts: Mapping[str, Any]) -> None:
        print(json_line(facts), flush=True)


def step_facts(step: Progress, pace: Pace) -> dict[str, Any]:
    """Return one iteration, as JSON has it; epochs count from 1."""
    return {
        "epoch": step.epoch + 1,
        "step": step.step,
        "steps": step.steps,
        "metrics": dict(step.metrics),
        "learning_rate": step.learning_rate,
        "seconds": step.seconds,
        "samples_per_second": pace.samples_per_second,
        "seconds_left": pace.seconds_left,
        "fetched_bytes": step.fetched_bytes,
    }


def epoch_facts(epoch: Epoch) -> dict[str, Any]:
    """Return one epoch, as JSON has it; epochs count from 1."""
    return {
        "epoch": epoch.number + 1,
        "training": dict(epoch.training),
        "evaluation": dict(epoch.evaluation),
    }


def json_line(facts: Mapping[str, Any]) -> str:
    """Return the facts as one line of JSON, in which a number that is none, or infinite, is null."""
    return json.dumps(_finite(facts), allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
        case _:
            return value
