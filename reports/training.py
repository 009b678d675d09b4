"""What a training run says: a progress bar on a terminal, plain lines elsewhere, or JSON lines."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Protocol, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..runtime import module
from .console import wide_console
from .units import format_bytes


class Report(Protocol):
    """Receives a run's events in order; entered before the first and left after the last."""

    def start(self, title: str) -> None: ...
    def step(self, step: module.Progress) -> None: ...
    def epoch(self, epoch: module.Epoch, epochs: int) -> None: ...
    def summary(self, facts: dict[str, Any]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Lines:
    """One JSON object per epoch, and a last one with the summary."""

    def start(self, title: str) -> None:
        pass

    def step(self, step: module.Progress) -> None:
        pass

    def epoch(self, epoch: module.Epoch, epochs: int) -> None:
        line = {"epoch": epoch.number + 1, "training": epoch.training, "evaluation": epoch.evaluation}
        print(json.dumps(line), flush=True)

    def summary(self, facts: dict[str, Any]) -> None:
        print(json.dumps(facts), flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Screen:
    """A line per epoch and a closing table; on a terminal also a bar with the current loss."""

    def __init__(self, steps: int) -> None:
        self._console = wide_console()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("training", total=steps, loss="")

    def start(self, title: str) -> None:
        self._console.print(f"[bold]{title}[/]", soft_wrap=True)

    def step(self, step: module.Progress) -> None:
        name, value = next(iter(step.metrics.items()))
        self._bar.update(self._task, advance=1, loss=f"{name} {value:.4f}")

    def epoch(self, epoch: module.Epoch, epochs: int) -> None:
        self._console.print(
            f"epoch {epoch.number + 1}/{epochs}: {_metrics(epoch.training)}; held out: "
            f"{_metrics(epoch.evaluation)}; {epoch.seconds:.1f} s",
            soft_wrap=True,
        )

    def summary(self, facts: dict[str, Any]) -> None:
        self._bar.stop()
        peak, single = facts["peak_bytes_per_worker"], facts["single_device_peak_bytes"]
        table = Table(show_header=False, title="Summary", title_justify="left")
        table.add_row("parameters", f"{facts['parameters']:,}")
        table.add_row("held out", _metrics(facts["metric"]))
        table.add_row("bytes moved in one iteration, planned", f"{facts['planned_bytes_per_step']:,}")
        table.add_row("bytes moved in one iteration, measured", f"{facts['fetched_bytes_per_step']:,}")
        table.add_row(
            "peak memory of a worker",
            f"{format_bytes(peak)} ({peak / single:.1%} of {format_bytes(single)} on one device)",
        )
        table.add_row(
            "kernel workspaces therein",
            f"{format_bytes(facts['workspace_bytes_per_worker'])} "
            f"({format_bytes(facts['single_device_workspace_bytes'])} on one device)",
        )
        table.add_row("samples per second", f"{facts['samples_per_second']:,.0f}")
        self._console.print(table)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


def _metrics(values: dict[str, float] | Any) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())
