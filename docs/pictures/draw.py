"""Draw the pictures of the pages from real descriptions and plans: `python docs/pictures/draw.py`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from html import escape
from pathlib import Path

import tofu
from tofu.cli import main as command
from tofu.plans import Layout
from tofu.programs import PartitionedGraph, buffer_lifetimes, plan_memory, schedule

FOLDER = Path(__file__).parent
COLOURS = ("#88ccee", "#ddcc77", "#cc6677", "#44aa99", "#aa99dd", "#999933", "#ee99aa", "#bbbbbb")


def svg(width: int, height: int, marks: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    style = "<style>text { font: 12px sans-serif; fill: #222 }</style>"
    return "\n".join(
        (head, style, f'<rect width="{width}" height="{height}" fill="#fff"/>', *marks, "</svg>\n")
    )


def box(x: float, y: float, width: float, height: float, fill: str, text: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    drawn = f'<rect {size} fill="{fill}" stroke="#555" stroke-width="0.5"/>'
    return drawn + (words(x + width / 2, y + height / 2 + 4, text, True) if text else "")


def words(x: float, y: float, text: str, middle: bool = False) -> str:
    anchor = "middle" if middle else "start"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = "#c33") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="1.2"/>'


def split() -> str:
    """Draw the matrix product of README, split along a row index and along the index that is summed."""
    with tempfile.TemporaryDirectory() as folder:
        product, picture = Path(folder, "product.tdl"), Path(folder, "product.svg")
        product.write_text("def product(a, b): return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])")
        shapes = ["--shape", "a=8,6", "--shape", "b=6,8", "--workers", "2"]
        chosen = ["--variable", "i", "--variable", "k", "--draw", str(picture)]
        command(["describe", str(product), *shapes, *chosen], standalone_mode=False)
        return picture.read_text(encoding="utf-8")


def pipeline() -> str:
    """Draw the stages from a description to a trained step, with the room of each and what it hands on."""
    stages = (
        ("read", "tdl/", "text", COLOURS[0]),
        ("analyse", "analyzer/", "description", COLOURS[0]),
        ("equip", "operators/", "strategies", COLOURS[0]),
        ("connect", "dataflow/", "operators", COLOURS[1]),
        ("search", "partitioner/", "graph", COLOURS[3]),
        ("lower", "partitioner/", "plan", COLOURS[3]),
        ("arrange", "programs/", "programs", COLOURS[3]),
        ("run", "runtime/", "memory plan", COLOURS[2]),
    )
    marks = []
    for number, (stage, room, takes, colour) in enumerate(stages):
        x, y = 90 + number % 4 * 165, 25 + number // 4 * 75
        marks += [
            box(x, y, 90, 40, colour),
            words(x + 45, y + 17, stage, True),
            words(x + 45, y + 33, room, True),
        ]
        marks += [line(x - 70, y + 20, x - 4, y + 20, "#555"), words(x - 38, y + 14, takes, True)]
        marks.append(f'<path d="M{x - 9} {y + 16}L{x - 1} {y + 20}L{x - 9} {y + 24}Z" fill="#555"/>')
    return svg(690, 150, marks)


def steps() -> str:
    """A matrix after no, one, two and three steps along dimensions 0, 1, 0."""
    marks = []
    for panel in range(4):
        layout = Layout((8, 8), (0, 1, 0)[:panel], (2, 2, 2)[:panel])
        left = 20 + panel * 160
        names = ("whole", "step 1: rows", "step 2: columns", "step 3: rows")
        marks.append(words(left + 60, 20, names[panel], True))
        for worker, ((top, bottom), (start, stop)) in enumerate(layout.regions.tolist()):
            tile = (left + start * 15, 30 + top * 15, (stop - start) * 15, (bottom - top) * 15)
            marks.append(box(*tile, COLOURS[worker], str(worker)))
    return svg(640, 165, marks)


def elimination() -> str:
    """A chain of variables: the one in the middle is taken out and leaves a table."""
    marks = []
    rows = (("weight", "product", "sum", "relu", "output"), ("weight", "product", "relu", "output"))
    for row, names in enumerate(rows):
        y = 35 + row * 75
        for place, name in enumerate(names):
            x = 70 + place * 130 + (row and place > 1) * 130
            follows = place + 1 < len(names)
            if follows:
                stride = 260 if row and place == 1 else 130
                marks.append(line(x + 40, y, x + stride - 40, y, "#555"))
                marks.append(box(x + stride / 2 - 8, y - 8, 16, 16, COLOURS[3] if stride == 260 else "#ddd"))
            fill = (
                COLOURS[2] if name == "sum" else COLOURS[0] if place % 2 == row * (place > 1) else COLOURS[1]
            )
            marks.append(
                f'<ellipse cx="{x}" cy="{y}" rx="40" ry="16" fill="{fill}" stroke="#555"/>'
                + words(x, y + 4, name, True)
            )
    marks.append(
        words(
            20,
            75,
            "'sum' is eliminated: its tables are added, its best choice kept for each pair of neighbours'",
        )
    )
    return svg(660, 150, marks)


def small() -> PartitionedGraph:
    """Two fully connected layers over two workers."""
    hidden = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=8, no_bias=True, name="fc1")
    hidden = tofu.sym.Activation(hidden, act_type="relu", name="relu")
    out = tofu.sym.FullyConnected(hidden, num_hidden=8, no_bias=True, name="fc2")
    net = tofu.sym.LinearRegressionOutput(out, tofu.sym.Variable("label"), name="out")
    graph = tofu.training_graph(net, {"data": (16, 32), "label": (16, 8)}, "sgd")
    return tofu.lower(graph, tofu.partition(graph, workers=2))


def memory() -> str:
    """Every buffer of worker 0: from its first write to its last use, at its place in the arena."""
    model = tofu.models.get("mlp")
    graph = model.training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, workers=8))
    plan, lifetimes = plan_memory(partitioned), buffer_lifetimes(partitioned)
    ticks = partitioned.ticks
    across, up = 560 / (ticks + 1), 260 / plan.arena_bytes[0]
    marks = [
        words(
            20,
            20,
            f"mlp, 8 workers: the arena of worker 0, {plan.arena_bytes[0]:,} bytes high, over an iteration",
        )
    ]
    colours = {"shard": COLOURS[0], "fetched": COLOURS[1], "partial": COLOURS[2]}
    for buffer in partitioned.programs[0].buffers:
        birth, death = lifetimes.births[0][buffer.index], lifetimes.deaths[0][buffer.index]
        if birth <= death and buffer.nbytes:
            top = 295 - (plan.offsets[0][buffer.index] + buffer.nbytes) * up
            span = (20 + birth * across, top, (death - birth + 1) * across, buffer.nbytes * up)
            marks.append(box(*span, colours[buffer.kind]))
    for place, (kind, colour) in enumerate(colours.items()):
        marks += [box(20 + place * 110, 305, 12, 12, colour), words(38 + place * 110, 315, kind)]
    return svg(600, 325, marks)


def program() -> str:
    """The instructions of two workers in the order of the clock, and which lane waits for which."""
    partitioned = small()
    waits = schedule(partitioned, plan_memory(partitioned))
    colours = {"MultiFetch": COLOURS[1], "Compute": COLOURS[0], "Reduce": COLOURS[2]}
    moments = sorted({tick for ticks in waits.ticks for tick in ticks})
    height = {tick: 40 + 22 * place for place, tick in enumerate(moments)}
    rows: list[dict[int, float]] = []
    marks = [words(180, 20, "worker 0", True), words(500, 20, "worker 1", True)]
    for worker, listed in enumerate(partitioned.programs):
        seen: dict[int, int] = {}
        rows.append({})
        for index, instruction in enumerate(listed.instructions):
            tick = waits.ticks[worker][index]
            shift = seen.get(tick, 0)
            seen[tick] = shift + 1
            y = height[tick]
            rows[-1][index] = y + 8
            name = partitioned.graph.operations[instruction.operation].name.replace(
                "FullyConnected_product", "fc"
            )
            x = 60 + worker * 320 + shift * 20
            marks.append(
                box(
                    x,
                    y,
                    240 - shift * 20,
                    17,
                    colours[type(instruction).__name__],
                    f"{type(instruction).__name__} {name}",
                )
            )
    for worker, waiting in enumerate(waits.waits):
        for index, others in enumerate(waiting):
            for other, place in others:
                edges = (300, 380)
                marks.append(line(edges[other], rows[other][place], edges[worker], rows[worker][index]))
    return svg(680, 50 + 22 * len(moments), marks)


PICTURES = {
    "split": split,
    "pipeline": pipeline,
    "steps": steps,
    "elimination": elimination,
    "memory-plan": memory,
    "program": program,
}


def main() -> None:
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
