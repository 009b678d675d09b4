"""Everything a page shows of a plan, as one JSON object without repetition."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ...dataflow.graph import Graph, Phase
from ...partitioner.costs.plan_bytes import Contribution
from ...partitioner.explaining.copies import kept_copies
from ...partitioner.explaining.explain import Explainer, Explanation
from ...partitioner.explaining.weights import folded, layers
from ...partitioner.layouts.form_text import form_text
from ...partitioner.layouts.order import in_order
from ...partitioner.layouts.step_split import Layout
from ...partitioner.plans.form_document import encode_form
from ...partitioner.plans.plan import Plan
from ...programs.memory import MemoryPlan
from ...simulator.timeline import Timeline
from ..drawing.curve import memory_drawing
from ..drawing.lanes import lanes_drawing
from ..drawing.layout import DRAWN_WORKERS, drawn_holdings, drawn_steps
from ..drawing.marks import Drawing
from ..drawing.palette import ink, palette
from ..drawing.svg import contents
from .operators import Kinds
from .pictures import Pictures
from .unique import Unique


@dataclass(frozen=True, slots=True)
class Comparison:
    """One entry per method as `tofu plan --compare --json` prints it, and why others are left out."""

    entries: Sequence[Mapping[str, Any]]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageData:
    """`data` is the JSON object; `symbols` are the bodies of the SVG symbols that it names."""

    data: dict[str, Any]
    symbols: dict[str, str]


def page_data(
    graph: Graph,
    plan: Plan,
    facts: Mapping[str, Any],
    memory: MemoryPlan,
    comparison: Comparison,
    timeline: Timeline | None = None,
) -> PageData:
    """Gather a page. `facts` are the figures that `tofu plan --json` prints.

    Without a time line, the page has no section about time. Raises PlanError for a plan of another graph.
    """
    gathered = _Page(graph, plan)
    operators, tensors = gathered.operators(), gathered.tensors()
    symbols = {"memory-curve": _curve(graph, memory)}
    if timeline is not None:
        lanes = lanes_drawing(timeline)
        symbols["lanes"] = _symbol(lanes)
    fullest = memory.fullest
    colours = palette(gathered.workers)
    data = {
        "facts": dict(facts),
        "factors": list(plan.factors),
        "in_steps": plan.in_steps,
        "drawn_workers": len(colours),
        "colours": colours,
        "inks": [ink(colour) for colour in colours],
        "priced": gathered.explainer is not None,
        "unpriced": gathered.unpriced,
        "layers": [
            {"times": block.times, "layers": [dataclasses.asdict(layer) for layer in block.layers]}
            for block in folded(layers(graph, plan))
        ],
        "operators": operators,
        "tensors": tensors,
        "copies": gathered.copies(),
        "order": gathered.order if plan.written_order is not None else None,
        "operator_groups": gathered.operator_groups.values,
        "tensor_groups": gathered.tensor_groups.values,
        "kinds": gathered.kinds.kinds.values,
        "splits": gathered.kinds.splits.values,
        "layouts": gathered.layouts.values,
        "regions": gathered.pictures.regions.values,
        "choices": gathered.choices.values,
        "alternatives": gathered.alternatives.values,
        "memory": {
            "arena_bytes": memory.arena_bytes,
            "live_bytes": memory.lower_bound_bytes,
            "fullest": fullest,
            "largest": [[t.name, t.kind, t.nbytes] for t in memory.largest[fullest]],
            "kinds": dict(memory.peak_kinds[fullest]),
        },
        "time": None if timeline is None else _time(timeline, lanes),
        "methods": list(comparison.entries),
        "left_out": dict(comparison.left_out),
    }
    return PageData(data, {**gathered.pictures.symbols, **symbols})


class _Page:
    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph = graph
        self._plan = plan
        steps = drawn_steps(plan.factors)
        self.workers = prod(plan.factors[:steps])
        self.pictures = Pictures(self.workers)
        self.kinds = Kinds(self.pictures, plan.factors)
        self.layouts, self.choices, self.alternatives = Unique(), Unique(), Unique()
        self.operator_groups, self.tensor_groups = Unique(), Unique()
        self.order = [operation.index for operation in in_order(graph, plan.written_order)]
        explainer = Explainer(graph, plan)
        self.unpriced = explainer.unpriced
        if self.workers < plan.workers and not self.unpriced:
            self.unpriced = (
                f"the page prices alternatives for up to {DRAWN_WORKERS} workers; tofu explain prices "
                "those of one name"
            )
        self.explainer = None if self.unpriced else explainer
        self._moved: dict[str, list[Contribution]] = defaultdict(list)
        for entry in plan.contributions(graph):
            self._moved[entry.operation].append(entry)

    def operators(self) -> list[list[Any]]:
        """Return every operator as its name, its group and the tensors it moves bytes for or could."""
        numbers = {tensor.name: tensor.index for tensor in self._graph.tensors}
        found = []
        for operation in self._graph.operations:
            moved = self._moved[operation.name]
            group = (
                self.kinds.split(operation, self._plan.strategies[operation.name]),
                operation.phase,
                None if self.explainer is None else self._prices(self.explainer.operator(operation.index)),
                tuple((entry.kind, entry.bytes) for entry in moved),
                tuple(self._layout(self._plan.layouts[entry.tensor]) for entry in moved),
            )
            number = self.operator_groups.number(group)
            found.append([operation.name, number, [numbers[entry.tensor] for entry in moved]])
        return found

    def tensors(self) -> list[list[Any]]:
        """Return every tensor as its name and group."""
        found = []
        totals: dict[str, int] = defaultdict(int)
        for entries in self._moved.values():
            for entry in entries:
                totals[entry.tensor] += entry.bytes
        for tensor in self._graph.tensors:
            group = (
                self._layout(self._plan.layouts[tensor.name]),
                tensor.role,
                tensor.dtype,
                None if self.explainer is None else self._prices(self.explainer.tensor(tensor.index)),
                totals[tensor.name],
            )
            found.append([tensor.name, self.tensor_groups.number(group)])
        return found

    def copies(self) -> list[dict[str, Any]]:
        """Return every copy: its tensor, who holds it, and its readers as they run."""
        tensors = {tensor.name: tensor.index for tensor in self._graph.tensors}
        operations = {operation.name: operation.index for operation in self._graph.operations}
        order = [self._graph.operations[index].name for index in self.order]
        return [
            {
                "tensor": tensors[copy.tensor],
                "version": copy.number,
                "source": copy.source,
                "layout": self._layout(replace(self._plan.layouts[copy.tensor], form=copy.form, via=None)),
                "readers": [operations[reader] for reader in copy.readers],
            }
            for copy in kept_copies(self._plan, order)
        ]

    def _layout(self, layout: Layout) -> int:
        return self.layouts.number(layout, lambda: self._layout_entry(layout))

    def _layout_entry(self, layout: Layout) -> dict[str, Any]:
        return {
            "shape": list(layout.shape),
            "choice": encode_form(layout.form),
            "words": form_text(layout.form, ", "),
            "via": None if layout.via is None else form_text(layout.via),
            "cuts": list(layout.parts),
            "terms": layout.expanded.terms,
            "picture": self.pictures.of(layout.shape, *drawn_holdings(layout)).as_list,
        }

    def _prices(self, explanation: Explanation) -> int:
        """Return what every choice adds to the plan: all else held, and the neighbours choosing again."""
        ordered = sorted(explanation.alternatives, key=lambda entry: tuple(map(str, entry.choice)))
        choices = self.choices.number(tuple(form_text(entry.choice) for entry in ordered))
        return self.alternatives.number(
            (
                choices,
                form_text(explanation.read_as),
                tuple(entry.held_bytes - explanation.plan_bytes for entry in ordered),
                tuple(entry.following_bytes - explanation.plan_bytes for entry in ordered),
                len(explanation.decided_together),
                explanation.complete,
            )
        )


def _curve(graph: Graph, memory: MemoryPlan) -> str:
    """Return the live bytes of the fullest worker."""
    return _symbol(memory_drawing(memory.live_bytes[memory.fullest], tuple(_phases(graph, memory))))


def _time(timeline: Timeline, lanes: Drawing) -> dict[str, Any]:
    """Return how the workers spend an iteration, and the size of the drawing of its lanes."""
    return {
        "title": lanes.title,
        "width": lanes.width,
        "height": lanes.height,
        "machine": timeline.machine.name,
        "source": timeline.times,
        "shares": [list(each.fractions) for each in timeline.shares],
    }


def _symbol(drawing: Drawing) -> str:
    return f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}">{contents(drawing)}'


def _phases(graph: Graph, memory: MemoryPlan) -> Iterator[tuple[str, float]]:
    """Yield where forward and backward begin, 0 to 1; updates come among the latter."""
    ticks = len(memory.live_bytes[memory.fullest])
    for phase, name in ((Phase.FORWARD, "forward"), (Phase.BACKWARD, "backward and updates")):
        begins = [memory.begins[o.index] for o in graph.operations if o.phase is phase]
        if begins:
            yield name, min(begins) / ticks
