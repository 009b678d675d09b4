"""The lanes of a time line: what occupies workers and links, and when. Layers that repeat are drawn once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...dataflow.graph import Phase
from ...programs.program import Lane
from ...simulator.lane_span import LaneSpan
from ...simulator.timeline import Timeline
from ..units import format_seconds
from .marks import Drawing, Label, Lines, Mark, Rectangle
from .repeats import repeats

WIDTH, ROW, GAP = 900.0, 14.0, 3.0
LEFT, RIGHT, TOP, BOTTOM = 150.0, 12.0, 44.0, 20.0
NANOSECOND = 1e-9
FOLD = 14.0
"""The width of the gap that stands for layers that are left out."""

ROWS = 32
"""The largest number of different lanes that are drawn; they are the busiest ones."""

THINNEST = 0.3
"""The width of the narrowest bar."""

LINE = "#888888"
COLOURS = {
    "forward": "#56B4E9",
    "backward": "#0072B2",
    "update": "#009E73",
    "transfer": "#E69F00",
    "message": "#D55E00",
}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A time that is left out because layers repeat in it."""

    begin: int
    """The first nanosecond that is left out."""

    end: int
    """The first one after it that is drawn."""

    times: int
    """How often what is before it follows."""


def lanes_drawing(timeline: Timeline) -> Drawing:
    """Draw every lane as a row, equal lanes as one, time from left to right.

    If layers repeat on a worker's lane of computations, the first one is drawn, and a gap with their number
    stands for the others.
    """
    phases = {operation.name: operation.phase for operation in timeline.graph.operations}
    cuts = _cuts(timeline)
    axis = _Axis(timeline.nanoseconds, cuts)
    rows = _rows(timeline.lanes)
    drawn = _busiest(rows)
    marks: list[Mark] = list(_legend())
    for number, (names, spans) in enumerate(drawn):
        top = TOP + number * (ROW + GAP)
        marks.append(Label(LEFT - 6, top + ROW / 2, _named(names), 10, "end"))
        marks += _bars(spans, phases, axis, top)
    bottom = TOP + len(drawn) * (ROW + GAP)
    marks += _scale(axis, timeline, bottom)
    if len(drawn) < len(rows):
        marks.append(Label(LEFT, bottom + BOTTOM + 6, f"{len(rows) - len(drawn)} more lanes", 10, "start"))
    seconds = format_seconds(timeline.seconds)
    title = f"Lanes of workers and links over an iteration of {seconds}"
    return Drawing(WIDTH, bottom + BOTTOM + 14, title, tuple(marks))


class _Axis:
    """Places of moments; times that are left out take a gap of fixed width."""

    def __init__(self, nanoseconds: int, cuts: Sequence[_Cut]) -> None:
        self.cuts = cuts
        drawn = nanoseconds - sum(cut.end - cut.begin for cut in cuts)
        self._scale = (WIDTH - LEFT - RIGHT - FOLD * len(cuts)) / max(drawn, 1)

    def place(self, moment: int) -> float:
        """Return the place of a moment; one that is left out is at the left edge of its gap."""
        place, begin = LEFT, 0
        for cut in self.cuts:
            if moment < cut.end:
                return place + (min(moment, cut.begin) - begin) * self._scale
            place += (cut.begin - begin) * self._scale + FOLD
            begin = cut.end
        return place + (moment - begin) * self._scale

    def kept(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a span that are drawn."""
        for cut in self.cuts:
            if start < min(end, cut.begin):
                yield start, min(end, cut.begin)
            start = max(start, cut.end) if start < cut.end and end > cut.begin else start
        if start < end:
            yield start, end


def _cuts(timeline: Timeline) -> list[_Cut]:
    """Return the times in which the worker that computes longest repeats layers."""
    computed = {
        name: spans for name, spans in timeline.lanes.items() if name.endswith(Lane.COMPUTE.name.lower())
    }
    busiest = max(computed.values(), key=_busy, default=())
    bounds = {op.name: id(op.bound) for op in timeline.graph.operations}
    spans = [(bounds[each.operation], each.end_nanoseconds - each.start_nanoseconds) for each in busiest]
    found = []
    for repeat in repeats(spans):
        second, last = repeat.begin + repeat.length, repeat.end - 1
        cut = _Cut(busiest[second].start_nanoseconds, busiest[last].end_nanoseconds, repeat.times - 1)
        if cut.end - cut.begin > timeline.nanoseconds * FOLD / WIDTH:
            found.append(cut)
    return found


def _busy(spans: Sequence[LaneSpan]) -> int:
    return sum(span.end_nanoseconds - span.start_nanoseconds for span in spans)


def _rows(lanes: Mapping[str, Sequence[LaneSpan]]) -> list[tuple[list[str], Sequence[LaneSpan]]]:
    """Return lanes with their names; those that are occupied by the same things at the same time together."""
    found: dict[tuple[tuple[str, str, int, int], ...], tuple[list[str], Sequence[LaneSpan]]] = {}
    for name, spans in lanes.items():
        if spans:
            key = tuple((s.kind, s.operation, s.start_nanoseconds, s.end_nanoseconds) for s in spans)
            found.setdefault(key, ([], spans))[0].append(name)
    return list(found.values())


def _busiest(
    rows: Sequence[tuple[list[str], Sequence[LaneSpan]]],
) -> list[tuple[list[str], Sequence[LaneSpan]]]:
    """Return the busiest rows in the order of the lanes."""
    ranked = sorted(range(len(rows)), key=lambda number: -_busy(rows[number][1]))[:ROWS]
    return [rows[number] for number in sorted(ranked)]


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _bars(spans: Sequence[LaneSpan], phases: Mapping[str, Phase], axis: _Axis, top: float) -> Iterator[Lines]:
    """Yield bars of every colour; spans of one colour that are less than a pixel apart are one bar."""
    found: dict[str, list[tuple[float, float]]] = {}
    latest = ""
    for span in spans:
        colour = COLOURS[phases[span.operation] if span.kind == "compute" else span.kind]
        bars = found.setdefault(colour, [])
        for start, end in axis.kept(span.start_nanoseconds, span.end_nanoseconds):
            left, right = axis.place(start), axis.place(end - 1)
            if bars and colour == latest and left - bars[-1][1] < 1:
                left, right = bars[-1][0], max(bars.pop()[1], right)
            bars.append((left, right))
            latest = colour
    y = top + ROW / 2
    for colour, bars in found.items():
        lines = ((left, y, max(right, left + THINNEST), y) for left, right in bars)
        yield Lines(tuple(lines), colour, ROW)


def _scale(axis: _Axis, timeline: Timeline, bottom: float) -> Iterator[Mark]:
    yield Lines(((LEFT, bottom, WIDTH - RIGHT, bottom),), LINE, 0.5)
    yield Label(LEFT, bottom + 12, "0", 10)
    for cut in axis.cuts:
        left = axis.place(cut.begin)
        middle = left + FOLD / 2
        yield Lines(((middle, TOP - 4, middle, bottom + 4),), LINE, 1)
        yield Label(middle, TOP - 12, f"{cut.times} more", 10)
        yield Label(middle, bottom + 12, format_seconds(cut.end * NANOSECOND), 10)
    yield Label(WIDTH - RIGHT, bottom + 12, format_seconds(timeline.seconds), 10, "end", bold=True)


def _legend() -> Iterator[Mark]:
    x = LEFT
    for name, colour in COLOURS.items():
        yield Rectangle(x, 6, 10, 10, colour)
        label = Label(x + 14, 11, name, 11, "start")
        yield label
        x += 14 + label.width + 16
