"""How workers share an operator: what each reads of the inputs and makes of the outputs (Tofu, figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...analyzer.bound import Bound
from ...analyzer.region import Boxes, Shape
from ...analyzer.staged import StagedBound
from ...analyzer.strategy import Strategy
from .marks import Drawing, Label, Mark, Rectangle
from .palette import ink, palette
from .tensor import caption, tensor_marks
from .tiles import halo, plane

MARGIN, GAP, ARROW = 16.0, 24.0, 34.0
PICTURE_WIDTH, PICTURE_HEIGHT = 150.0, 100.0
ABOVE, BELOW = 56.0, 50.0
"""Room for a strategy's heading and the tensors' names, and for what stands under the pictures."""

HEAD = 46.0
SWATCH = 18.0


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor as the workers see it; `remark` says more than its regions do."""

    name: str
    shape: Shape
    regions: Boxes
    remark: str = ""


def operator_drawing(title: str, strategies: Sequence[Strategy], workers: int) -> Drawing:
    """One row per strategy: inputs with what every worker reads of them, then outputs with what it makes.

    What several workers read, such as a halo, has stripes in the colours of all of them.
    Strategies along variables with fewer values than there are workers say so instead.
    """
    rows = [_parts(strategy, workers) for strategy in strategies]
    width = max([420.0, _legend_width(workers), *(_row_width(*row) for row in rows if row is not None)])
    height = HEAD + (ABOVE + PICTURE_HEIGHT + BELOW) * len(rows)
    marks = [Label(MARGIN, 20, title, 14, "start", bold=True), *_legend(workers, width)]
    for number, (strategy, row) in enumerate(zip(strategies, rows, strict=True)):
        top = HEAD + (ABOVE + PICTURE_HEIGHT + BELOW) * number
        marks.append(Label(MARGIN, top + 12, _heading(strategy, workers), 12, "start", bold=True))
        if row is None:
            extent = strategy.bound.extents[strategy.variable]
            refused = f"its extent is {extent}, too small for {workers} workers"
            marks.append(Label(MARGIN, top + 34, refused, 11, "start"))
        else:
            marks.extend(_row(*row, top))
    return Drawing(width, height, title, tuple(marks))


def _parts(strategy: Strategy, workers: int) -> tuple[list[_Part], list[_Part]] | None:
    """Inputs and outputs; None where the variable has too few values."""
    bound = strategy.bound
    assert isinstance(bound, Bound | StagedBound)
    if bound.extents[strategy.variable] < workers:
        return None
    boxes = bound.split((strategy.variable,), (workers,))
    inputs = [
        _Part(name, bound.shapes[name], regions)
        for name, regions in bound.input_regions(boxes).items()
        if name in bound.reads
    ]
    remark = "" if strategy.reducer is None else f"partial values, reduced by {strategy.reducer}"
    made = zip(bound.output_shapes, bound.output_regions(boxes), strict=True)
    several = len(bound.output_shapes) > 1
    outputs = [
        _Part(f"output {number}" if several else "output", shape, regions, remark)
        for number, (shape, regions) in enumerate(made)
    ]
    return inputs, outputs


def _heading(strategy: Strategy, workers: int) -> str:
    how = "concatenated" if strategy.reducer is None else f"reduced by {strategy.reducer}"
    return f"{strategy.variable} split over {workers} workers: outputs are {how}"


def _row_width(inputs: Sequence[_Part], outputs: Sequence[_Part]) -> float:
    count = len(inputs) + len(outputs)
    return 2 * MARGIN + count * PICTURE_WIDTH + (count - 1) * GAP + ARROW


def _row(inputs: Sequence[_Part], outputs: Sequence[_Part], top: float) -> Iterator[Mark]:
    x, middle = MARGIN, top + ABOVE + PICTURE_HEIGHT / 2
    for part in inputs:
        yield from _tensor(part, x, top)
        x += PICTURE_WIDTH + GAP
    yield Label(x + (ARROW - GAP) / 2, middle, "→", 22)
    x += ARROW
    for part in outputs:
        yield from _tensor(part, x, top)
        x += PICTURE_WIDTH + GAP


def _tensor(part: _Part, x: float, top: float) -> Iterator[Mark]:
    drawn = plane(part.shape, part.regions)
    shape = " x ".join(map(str, part.shape)) or "one number"
    yield Label(x, top + 32, part.name, 11, "start", bold=True)
    yield Label(x, top + 46, shape, 10, "start")
    yield from tensor_marks(drawn, (x, top + ABOVE, PICTURE_WIDTH, PICTURE_HEIGHT))
    below = [caption(drawn)]
    beyond = halo(part.regions)
    if beyond:
        below.append("halo: " + ", ".join(f"{width} along {axis}" for axis, width in beyond.items()))
    if part.remark:
        below.append(part.remark)
    for line, text in enumerate(below):
        yield Label(x, top + ABOVE + PICTURE_HEIGHT + 11 + 13 * line, text, 9.5, "start")


def _legend_width(workers: int) -> float:
    return 2 * MARGIN + SWATCH * workers + 60


def _legend(workers: int, width: float) -> Iterator[Mark]:
    """A swatch for every worker, at the right under the title."""
    left = width - MARGIN - SWATCH * workers
    yield Label(left - 6, 37, "worker", 10, "end")
    for worker, colour in enumerate(palette(workers)):
        x = left + SWATCH * worker
        yield Rectangle(x, 30, SWATCH - 2, 14, colour)
        yield Label(x + SWATCH / 2 - 1, 37, str(worker), 9, colour=ink(colour))
