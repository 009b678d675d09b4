"""Lanes are drawn to scale, equal ones once, and repeated layers once."""

from __future__ import annotations

import pytest

import tofu
from tofu.reports.drawing.lanes import COLOURS, LEFT, RIGHT, ROW, ROWS, WIDTH, lanes_drawing
from tofu.reports.drawing.marks import Drawing, Label, Lines
from tofu.simulator.timeline import Timeline

MACHINE = "dgx-1-v100"


def timeline(layers: int, workers: int = 2, method: str = "data-parallel") -> Timeline:
    value = tofu.sym.Variable("data")
    for layer in range(layers):
        value = tofu.sym.relu(tofu.sym.FullyConnected(value, num_hidden=64, name=f"fc{layer}"))
    loss = tofu.sym.SoftmaxOutput(value, name="softmax")
    graph = tofu.training_graph(loss, {"data": (8, 64), "softmax_label": (8,)}, "sgd")
    return tofu.simulate(tofu.lower(graph, tofu.partition(graph, workers, method)), MACHINE)


def bars(drawing: Drawing) -> dict[float, dict[str, list[tuple[float, float]]]]:
    """The bars of every row, by the row's height and the colour's name."""
    names = {colour: name for name, colour in COLOURS.items()}
    found: dict[float, dict[str, list[tuple[float, float]]]] = {}
    for mark in drawing.marks:
        if isinstance(mark, Lines) and mark.width == ROW:
            row = found.setdefault(mark.lines[0][1], {})
            row[names[mark.colour]] = [(left, right) for left, _, right, _ in mark.lines]
    return found


def texts(drawing: Drawing) -> list[str]:
    return [mark.text for mark in drawing.marks if isinstance(mark, Label)]


def test_lanes_are_to_scale() -> None:
    """Bars join what is less than a pixel apart, so each may be a pixel longer than its span."""
    simulated = timeline(1, workers=1)
    (row,) = bars(lanes_drawing(simulated)).values()
    spans = simulated.lanes["worker 0 compute"]
    scale = (WIDTH - LEFT - RIGHT) / simulated.nanoseconds
    drawn = sum(right - left for part in row.values() for left, right in part)
    busy = sum(span.end_nanoseconds - span.start_nanoseconds for span in spans)
    assert busy * scale == pytest.approx(drawn, abs=len(spans))
    assert row.keys() == {"forward", "backward", "update"}
    assert max(right for part in row.values() for _, right in part) <= WIDTH - RIGHT + 0.3


def test_layers_that_repeat_are_drawn_once() -> None:
    few, many = lanes_drawing(timeline(3)), lanes_drawing(timeline(40))
    assert [text for text in texts(many) if text.endswith(" more")]
    drawn = [sum(len(part) for row in bars(d).values() for part in row.values()) for d in (few, many)]
    assert drawn[1] < 4 * drawn[0]


def test_equal_lanes_are_one_row() -> None:
    drawing = lanes_drawing(timeline(2, workers=4, method="data-parallel"))
    lanes = [name for name, spans in timeline(2, workers=4).lanes.items() if spans]
    shown = [text for text in texts(drawing) if text.split(" and ")[0] in lanes]
    counts = [int(text.split(" and ")[1].split()[0]) + 1 if " and " in text else 1 for text in shown]
    assert len(bars(drawing)) == len(shown) <= min(len(lanes), ROWS)
    assert sum(counts) == len(lanes)
