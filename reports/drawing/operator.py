"""How workers share an operator: what each reads of the inputs and makes of the outputs (Tofu, figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...analyzer.bind.bound import Bound
from ...analyzer.bind.staged_bound import StagedBound
from ...analyzer.indices.region import Boxes, Shape
from ...analyzer.strategies.strategy import Strategy
from .marks import Drawing, Label, Mark, Rectangle
from .palette import ink, palette
from .tensor import caption, tensor_marks
from .tiles import Plane, halo, plane

MARGIN, GAP, ARROW = 16.0, 24.0, 34.0
PICTURE_WIDTH, PICTURE_HEIGHT = 150.0, 100.0
ABOVE, BELOW = 56.0, 50.0
"""Heights of a strategy's heading with the tensors' names, and of the text below the pictures."""

HEAD = 46.0
STAGE = 26.0
REFUSED = 58.0
"""Heights of the title, of a stage's name above its strategies, and of a strategy that cannot be drawn."""

SWATCH = 18.0


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor as the workers see it."""

    name: str
    """The tensor's name."""

    shape: Shape
    """The tensor's shape."""

    drawn: Plane
    """The picture."""

    below: tuple[str, ...]
    """Lines of text under the picture."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """Where the picture's upper left corner is at (0, 0)."""
        shape = " x ".join(map(str, self.shape)) or "one number"
        return (
            Label(0, -24, self.name, 11, "start", bold=True),
            Label(0, -10, shape, 10, "start"),
            *(
                Label(0, PICTURE_HEIGHT + 11 + 13 * line, text, 9.5, "start")
                for line, text in enumerate(self.below)
            ),
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """A strategy: its inputs and outputs, or why it cannot be drawn."""

    heading: str
    """The strategy, in words."""

    inputs: tuple[_Part, ...] = ()
    """The inputs with the parts that workers read."""

    outputs: tuple[_Part, ...] = ()
    """The outputs with the parts that workers make."""

    refused: str = ""
    """Why the strategy cannot be drawn; empty if it can."""

    stage: str = ""
    """The name of its stage if it is the stage's first row; otherwise empty."""

    @property
    def parts(self) -> tuple[_Part, ...]:
        return self.inputs + self.outputs

    @property
    def height(self) -> float:
        return STAGE * bool(self.stage) + (REFUSED if self.refused else ABOVE + PICTURE_HEIGHT + BELOW)

    def labels(self, top: float) -> list[Label]:
        """Return the lines that stand over the whole row."""
        labels = []
        if self.stage:
            labels.append(Label(MARGIN, top + 12, self.stage, 13, "start", bold=True))
            top += STAGE
        labels.append(Label(MARGIN, top + 12, self.heading, 12, "start", bold=True))
        if self.refused:
            labels.append(Label(MARGIN, top + 34, self.refused, 11, "start"))
        return labels


def operator_drawing(title: str, strategies: Sequence[Strategy], workers: int) -> Drawing:
    """Return one row per strategy: inputs with what every worker reads of them, then outputs with what it
    makes.

    Elements that several workers read, such as a halo, have stripes in the colours of all of them.
    A strategy along a variable with fewer values than workers has a remark instead. The strategies of
    several stages are grouped under the stages' names.
    """
    rows = list(_rows(title, strategies, workers))
    pitch = max(
        [PICTURE_WIDTH + GAP]
        + [label.width + GAP / 2 for row in rows for part in row.parts for label in part.labels]
    )
    head = Label(MARGIN, 20, title, 14, "start", bold=True)
    lines = [head.width, *(label.width for row in rows for label in row.labels(0))]
    wide = [ARROW + pitch * len(row.parts) - GAP for row in rows if row.parts]
    width = max(420.0, _legend_width(workers), 2 * MARGIN + max(lines + wide))
    marks = [head, *_legend(workers, width)]
    top = HEAD
    for row in rows:
        marks.extend(row.labels(top))
        marks.extend(_pictures(row, pitch, top + row.height - BELOW - PICTURE_HEIGHT))
        top += row.height
    return Drawing(width, top, title, tuple(marks))


def _rows(title: str, strategies: Sequence[Strategy], workers: int) -> Iterator[_Row]:
    stage = title
    for strategy in strategies:
        bound = strategy.bound
        assert isinstance(bound, Bound | StagedBound)
        name = bound.description.name
        row = _row(strategy, bound, workers)
        yield row if name == stage else replace(row, stage=name)
        stage = name


def _row(strategy: Strategy, bound: Bound | StagedBound, workers: int) -> _Row:
    """Return a strategy's row; inputs and outputs are missing if the variable has too few values."""
    heading = _heading(strategy, workers)
    extent = bound.extents[strategy.variable]
    if extent < workers:
        return _Row(heading, refused=f"its extent is {extent}, too small for {workers} workers")
    boxes = bound.split((strategy.variable,), (workers,))
    inputs = (
        _part(name, bound.shapes[name], regions)
        for name, regions in bound.input_regions(boxes).items()
        if name in bound.reads
    )
    remark = "" if strategy.reducer is None else f"partial values, reduced by {strategy.reducer}"
    made = zip(bound.output_shapes, bound.output_regions(boxes), strict=True)
    several = len(bound.output_shapes) > 1
    outputs = (
        _part(f"output {number}" if several else "output", shape, regions, remark)
        for number, (shape, regions) in enumerate(made)
    )
    return _Row(heading, tuple(inputs), tuple(outputs))


def _part(name: str, shape: Shape, regions: Boxes, remark: str = "") -> _Part:
    """`remark` says more than the regions do."""
    drawn = plane(shape, regions)
    beyond = ", ".join(f"{width} along {axis}" for axis, width in halo(regions).items())
    below = (caption(drawn), f"halo: {beyond}" if beyond else "", remark)
    return _Part(name, shape, drawn, tuple(filter(None, below)))


def _heading(strategy: Strategy, workers: int) -> str:
    how = "concatenated" if strategy.reducer is None else f"reduced by {strategy.reducer}"
    return f"{strategy.variable} split over {workers} workers: outputs are {how}"


def _pictures(row: _Row, pitch: float, top: float) -> Iterator[Mark]:
    """Yield the tensors side by side; `top` is the pictures' upper edge."""
    x = MARGIN
    for part in row.inputs:
        yield from _tensor(part, x, top)
        x += pitch
    if row.outputs:
        yield Label(x + (ARROW - GAP) / 2, top + PICTURE_HEIGHT / 2, "→", 22)
    x += ARROW
    for part in row.outputs:
        yield from _tensor(part, x, top)
        x += pitch


def _tensor(part: _Part, x: float, top: float) -> Iterator[Mark]:
    above, shape, *below = (replace(label, x=x, y=top + label.y) for label in part.labels)
    yield above
    yield shape
    yield from tensor_marks(part.drawn, (x, top, PICTURE_WIDTH, PICTURE_HEIGHT))
    yield from below


def _legend_width(workers: int) -> float:
    return 2 * MARGIN + SWATCH * workers + 60


def _legend(workers: int, width: float) -> Iterator[Mark]:
    """Yield a swatch for every worker, at the right under the title."""
    left = width - MARGIN - SWATCH * workers
    yield Label(left - 6, 37, "worker", 10, "end")
    for worker, colour in enumerate(palette(workers)):
        x = left + SWATCH * worker
        yield Rectangle(x, 30, SWATCH - 2, 14, colour)
        yield Label(x + SWATCH / 2 - 1, 37, str(worker), 9, colour=ink(colour))
