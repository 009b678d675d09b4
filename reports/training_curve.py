"""`curve.png`: the loss over a training run, drawn with matplotlib."""

from __future__ import annotations

import contextlib
from io import BytesIO
from pathlib import Path
from types import TracebackType

from ..errors import DataError, TofuError
from ..runtime.progress import Epoch, Progress
from ..support.saved_files import save_whole
from ..support.wording import counted
from .files import check_writable
from .training import Report, Start

SUFFIXES = (".png", ".svg", ".pdf")
INCHES = (8.0, 4.5)


class Curve(Report):
    """The first metric of every iteration, of every epoch and of the samples held out.

    The picture is drawn when the run ends, however it ends, and put in place whole. Raises TofuError at once
    where matplotlib is missing, the file's kind is unknown, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{path}: a plot ends in {', '.join(SUFFIXES)}, not {path.suffix or 'nothing'!r}")
        try:
            import matplotlib.figure  # noqa: F401
        except ImportError as error:
            raise DataError("--plot needs matplotlib, the extra 'plot': pip install matplotlib") from error
        check_writable(path)
        self._path = path
        self._title = ""
        self._metric = ""
        self._steps: list[tuple[int, float]] = []
        self._training: list[tuple[int, float]] = []
        self._held_out: list[tuple[int, float]] = []

    def start(self, start: Start) -> None:
        self._title = f"{start.model}, {start.about}, {counted(start.workers, 'worker')}"

    def step(self, step: Progress) -> None:
        self._metric, value = next(iter(step.metrics.items()))
        self._steps.append((step.step, value))

    def epoch(self, epoch: Epoch, epochs: int) -> None:
        if not self._steps:
            return
        newest = self._steps[-1][0]
        self._training.append((newest, epoch.training[self._metric]))
        if self._metric in epoch.evaluation:
            self._held_out.append((newest, epoch.evaluation[self._metric]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._steps:
            return
        # what ended the run is said rather than that its picture could not be written either
        with contextlib.nullcontext() if kind is None else contextlib.suppress(TofuError):
            self._draw()

    def _draw(self) -> None:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.add_subplot()
        axes.plot(*zip(*self._steps, strict=True), color="C0", alpha=0.35, linewidth=0.8, label="iteration")
        for points, colour, label in ((self._training, "C0", "epoch"), (self._held_out, "C1", "held out")):
            if points:
                axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4, label=label)
        axes.set(xlabel="iteration", ylabel=self._metric)
        axes.set_title(self._title, parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
        drawn = BytesIO()
        figure.savefig(drawn, format=self._path.suffix[1:].lower(), dpi=120)
        save_whole(self._path, drawn.getvalue())
