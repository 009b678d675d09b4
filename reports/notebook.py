"""Plans, operators, strategies, memory plans and time lines as a notebook shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from math import prod

from ..analyzer.bind.bound import Bound
from ..analyzer.bind.staged_bound import StagedBound
from ..analyzer.strategies.strategy import Strategy
from ..partitioner.explaining.copies import kept_copies
from ..partitioner.layouts.form_text import form_text
from ..partitioner.layouts.step_split import Layout
from ..partitioner.methods.frontier import Frontier
from ..partitioner.methods.placement.result import Placement
from ..partitioner.plans.plan import Plan
from ..programs.memory import MemoryPlan
from ..simulator.timeline import Timeline
from ..support.wording import counted
from .copies import HEADS, copy_cells
from .drawing.curve import memory_drawing
from .drawing.lanes import lanes_drawing
from .drawing.layout import layout_drawing
from .drawing.operator import operator_drawing
from .drawing.staircase import frontier_drawing
from .drawing.svg import inline
from .layers import cut_shape
from .placement import COLUMNS, rows, summary
from .units import format_bytes

WORKERS = 2
"""The number of workers over which the strategies of an operator are drawn."""

LAYOUTS = 12
COPIES = 12

PRE = '<pre style="font-family: monospace">'
"""Notebooks set a plain `pre` in the font of the text."""


def html(value: object) -> str:
    """Return the HTML of a value. Raises TypeError for a value that has none."""
    match value:
        case Plan():
            return _plan(value)
        case Bound() | StagedBound():
            return _operator(value)
        case Strategy():
            return inline(operator_drawing(value.bound.description.name, [value], WORKERS))
        case MemoryPlan():
            return _memory(value)
        case Timeline():
            return _timeline(value)
        case Frontier():
            return inline(frontier_drawing([value]))
        case Placement():
            return f"<p>{escape(summary(value))}</p>{_table(COLUMNS, rows(value))}"
        case _:
            raise TypeError(f"a {type(value).__name__} has no page")


def _plan(plan: Plan) -> str:
    steps = " x ".join(map(str, plan.factors)) or "no step"
    how = steps if plan.in_steps else "not in steps"
    title = f"{plan.method} plan over {counted(plan.workers, 'worker')} ({how})"
    costs = zip(plan.factors, plan.step_cost_bytes, strict=True) if plan.in_steps else ()
    rows = [[f"step {step}", f"{k}-way", format_bytes(cost)] for step, (k, cost) in enumerate(costs, 1)]
    rows += [
        ["moved in one iteration", "", format_bytes(plan.cost_bytes)],
        ["proven least", f"of plans that {plan.space}", format_bytes(plan.lower_bound_bytes)],
    ]
    split = "dimension per step" if plan.in_steps else "form"
    copies = kept_copies(plan, plan.order)
    hidden = len(copies) - COPIES
    alike: dict[Layout, list[str]] = defaultdict(list)
    for name, layout in plan.layouts.items():
        alike[layout].append(name)
    largest = sorted(alike.items(), key=lambda item: -prod(item[0].shape))
    tensors = [_layout_row(names, layout) for layout, names in largest[:LAYOUTS]]
    more = sum(len(names) for _, names in largest[LAYOUTS:])
    return "".join(
        (
            f"<b>{escape(title)}</b>",
            _table((), rows),
            _table(("largest tensors", "shape and cuts", split, "parts by worker"), tensors),
            f"<p>{more} more tensors in <code>layouts</code></p>" if more else "",
            _table(HEADS, map(copy_cells, copies[:COPIES])) if copies else "",
            f"<p>{hidden} more copies in <code>copies</code></p>" if hidden > 0 else "",
            "<p>operations run in the order of <code>order</code></p>"
            if plan.written_order is not None
            else "",
        )
    )


def _layout_row(names: Sequence[str], layout: Layout) -> list[str]:
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    cells = [names[0] + others, cut_shape(layout.shape, layout.parts), form_text(layout.form)]
    return [*cells, _Drawn(inline(layout_drawing(layout)))]


def _operator(bound: Bound | StagedBound) -> str:
    from ..tdl import format

    shapes = ", ".join(f"{name} {shape}" for name, shape in bound.shapes.items())
    outputs = ", ".join(map(str, bound.output_shapes))
    drawn = inline(operator_drawing(bound.description.name, bound.strategies, WORKERS))
    refused = "".join(f"<li>{escape(f'{r.variable}: {r.reason}')}</li>" for r in bound.refusals)
    return "".join(
        (
            f"{PRE}{escape(format(bound.description).rstrip())}</pre>",
            f"<p>{escape(f'{shapes} -> {outputs}')}</p>",
            drawn if bound.strategies else "",
            f"<p>not split:</p><ul>{refused}</ul>" if refused else "",
        )
    )


def _memory(memory: MemoryPlan) -> str:
    fullest = memory.fullest
    peaks = [
        [str(worker), format_bytes(arena), format_bytes(live)]
        for worker, (arena, live) in enumerate(zip(memory.arena_bytes, memory.lower_bound_bytes, strict=True))
    ]
    largest = [[tensor.name, tensor.kind, format_bytes(tensor.nbytes)] for tensor in memory.largest[fullest]]
    title = f"Live bytes of worker {fullest} over an iteration"
    return "".join(
        (
            _table(("worker", "peak", "live at once"), peaks),
            f"<p>{title}</p>{inline(memory_drawing(memory.live_bytes[fullest], title=title))}",
            _table((f"largest at the peak of worker {fullest}", "as", "bytes"), largest),
        )
    )


def _timeline(timeline: Timeline) -> str:
    shares = [
        [str(worker), *(f"{part:.1%}" for part in each.fractions)]
        for worker, each in enumerate(timeline.shares)
    ]
    lanes = lanes_drawing(timeline)
    where = f"{lanes.title} on {timeline.machine.name}; times of computations are {timeline.times}"
    return "".join(
        (
            f"<p>{escape(where)}</p>{inline(lanes)}",
            _table(("worker", "computing", "moving", "waiting"), shares),
        )
    )


class _Drawn(str):
    """Text that is HTML already."""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all cells are escaped but those that are drawn."""
    head = "".join(f'<th style="text-align:left">{escape(title)}</th>' for title in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return f'<td style="text-align:left">{text if isinstance(text, _Drawn) else escape(text)}</td>'
