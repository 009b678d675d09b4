"""A training run on the screen: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table
from rich.text import Text

from ..runtime.progress import Epoch, Progress
from ..support.wording import counted
from .console import on_terminal
from .pace import Pace
from .training import Report, Start
from .units import format_bytes, format_duration, format_seconds

PLAN = "searching for a plan and preparing the workers"
PLAIN_SECONDS = 10.0
"""How often a plain line shows the progress of a run, in addition to one per epoch."""


class Screen(Report):
    """A line per epoch and a closing table; in between a bar on a terminal, elsewhere a line now and then."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live = on_terminal(console)
        self._said = clock()
        self._pace = Pace()
        self._memory = ""
        self._bar = Bar(
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            console=console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)

    def preparing(self) -> AbstractContextManager[object]:
        """Return what a terminal shows until the run can start."""
        return self._console.status(PLAN) if self._live else nullcontext()

    def start(self, start: Start) -> None:
        peak = format_bytes(start.peak_bytes_per_worker)
        self._memory = f"{peak}/worker"
        over = f"{start.workers} worker{'s' if start.workers > 1 else ''}"
        over += "" if start.device == "cpu" else f" on {start.device}"
        self._print(Text.assemble((start.model, "bold"), f", {start.about}, over {over}"))
        held = f", {start.held_out_samples:,} held out" if start.held_out_samples else ", none held out"
        self._print(f"{start.samples:,} samples to train on{held}; {peak} of memory per worker")
        self._bar.update(self._task, total=start.steps)
        self._bar.start()
        self._said = self._clock()

    def step(self, step: Progress) -> None:
        self._pace.add(step)
        if self._live:
            self._bar.update(self._task, completed=step.step, description=self._standing(step))
        elif self._clock() - self._said >= PLAIN_SECONDS:
            self._print(f"step {step.step}/{step.steps}: {self._standing(step)}")

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        held_out = f"; held out: {_metrics(epoch.evaluation)}" if epoch.evaluation else ""
        left = self._pace.seconds_left
        ahead = f", {format_duration(left)} left" if left else ""
        self._print(
            f"epoch {epoch.number + 1}/{epochs}: {_metrics(epoch.training)}{held_out}; "
            f"{epoch.seconds:.1f} s, "
            f"{self._pace.samples_per_second:,.0f} samples/s{ahead}"
        )

    def summary(self, facts: Mapping[str, Any]) -> None:
        self._bar.stop()
        peak, single = facts["peak_bytes_per_worker"], facts["single_device_peak_bytes"]
        table = Table(show_header=False, title="Summary", title_justify="left")
        table.add_row("parameters", f"{facts['parameters']:,}")
        if facts["metric"]:
            table.add_row("held out", _metrics(facts["metric"]))
        table.add_row("bytes moved in one iteration, planned", f"{facts['planned_bytes_per_step']:,}")
        table.add_row("bytes moved in one iteration, measured", f"{facts['fetched_bytes_per_step']:,}")
        for name, value in _of_processes(facts):
            table.add_row(name, value)
        table.add_row(
            "peak memory of a worker",
            f"{format_bytes(peak)} ({peak / single:.1%} of {format_bytes(single)} on one device)",
        )
        table.add_row(
            "kernel workspaces therein",
            f"{format_bytes(facts['workspace_bytes_per_worker'])} "
            f"({format_bytes(facts['single_device_workspace_bytes'])} on one device)",
        )
        if facts["simulated_seconds_per_step"] is not None:
            table.add_row("an iteration, simulated", format_seconds(facts["simulated_seconds_per_step"]))
            table.add_row("an iteration, measured", format_seconds(facts["seconds_per_step"]))
        table.add_row("samples per second", f"{facts['samples_per_second']:,.0f}")
        self._console.print(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def _standing(self, step: Progress) -> str:
        name, value = next(iter(step.metrics.items()))
        return (
            f"{name} {value:.4f}, {self._pace.samples_per_second:,.0f} samples/s, "
            f"{format_duration(self._pace.seconds_left)} left, {self._memory}"
        )

    def _print(self, line: str | Text) -> None:
        self._console.print(line, soft_wrap=True)
        self._said = self._clock()


def _metrics(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())


def _of_processes(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of a run of several processes: bytes by kind of link, and who writes checkpoints."""
    links = facts.get("links", [])
    for where, between in (("between machines", True), ("within machines", False)):
        chosen = [link for link in links if (link["from"] != link["to"]) is between]
        if chosen:
            planned, sent = (sum(link[key] for link in chosen) for key in ("planned_bytes", "sent_bytes"))
            yield f"of these {where}, planned and measured", f"{planned:,}, {sent:,}"
    if writers := facts.get("checkpoint_writers"):
        yield "checkpoints", f"written by {counted(writers, 'process', 'processes')}"
