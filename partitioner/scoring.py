"""Plans of other systems, scored: placements of parameters, completed to a plan and counted.

    fixed       how parameters, the states of optimizers and named inputs lie; updates, which run where their
                parameters lie, repeated if these replicate; on axes that cut the first dimension of an input,
                operations with samples, which are split along these
    searched    all else: the recursive search finds operations and activations that move few bytes

So a score is what a good system would move with these placements, and not what a certain version of a certain
system moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..dataflow.graph import Graph, Phase, Role
from ..machines.machine import Machine
from ..support.wording import counted
from .costs.plan_bytes import Contribution
from .layouts.step_split import prime_factors
from .lowering.arenas import Arenas
from .methods.meshes.axes import find_sample_axes
from .methods.search import find_plan
from .methods.settings import SearchSettings
from .plans.plan import Plan, contributors, require_graph
from .plans.simulation import simulation
from .problem.classes import build_problem
from .problem.constraints import Pin
from .problem.restrictions import FREE
from .translation.named_mesh import NamedMesh, named_mesh
from .translation.reading import Dimensions, read_placements
from .translation.translation import Unsaid

METHOD = "placements"

SHOWN = 5
"""How many operations the text of a score lists."""


@dataclass(frozen=True, slots=True)
class PlacementScore:
    """The cost of placements."""

    mesh: NamedMesh
    """The workers."""

    plan: Plan
    """A plan in which parameters lie as the placements say."""

    peak_bytes: int
    """The largest arena of a worker, in bytes."""

    contributions: tuple[Contribution, ...]
    """The bytes that each operation moves for each tensor, largest first; they sum to `cost_bytes`."""

    changed: tuple[Unsaid, ...]
    """The placements that a plan does not follow to the letter, with the reason."""

    @property
    def cost_bytes(self) -> int:
        """Return the bytes that cross between workers in one iteration."""
        return self.plan.cost_bytes

    @property
    def step_seconds(self) -> float | None:
        """Return the simulated time of one iteration; None without a machine."""
        return self.plan.step_seconds

    def __str__(self) -> str:
        lines = [f"{self.mesh}: {self.cost_bytes:,} bytes move, {self.peak_bytes:,} bytes on a worker"]
        if self.step_seconds is not None:
            lines[0] += f", {self.step_seconds * 1e3:.3f} ms for an iteration (simulated)"
        lines += [f"  {c.bytes:,} for {c.tensor} of {c.operation}" for c in self.contributions[:SHOWN]]
        rest = self.contributions[SHOWN:]
        if rest:
            moved = sum(each.bytes for each in rest)
            lines.append(f"  {moved:,} for {counted(len(rest), 'other tensor')} of operations")
        return "\n".join((*lines, *(f"  {each}" for each in self.changed)))


def score_graph(
    graph: Graph,
    placements: Mapping[str, Any],
    mesh: NamedMesh | Mapping[str, int],
    machine: Machine | str | None = None,
) -> PlacementScore:
    """Score placements for a training graph; see `tofu.score`."""
    require_graph(graph)
    workers = named_mesh(mesh)
    read = read_placements(graph, placements, workers)
    pins = [Pin(name, form, "tensor") for name, form in read.forms.items()]
    pins += _updates(graph, read.forms)
    pins += _samples(graph, read.forms, prime_factors(workers.workers))
    settings = SearchSettings("recursive", pins)
    plan = replace(find_plan(graph, workers.workers, settings), method=METHOD)
    if machine is not None:
        plan = replace(plan, step_seconds=simulation(graph, plan, machine).seconds)
    return PlacementScore(
        workers, plan, Arenas(graph).largest(plan), tuple(contributors(graph, plan)), read.changed
    )


def _updates(graph: Graph, forms: Mapping[str, Dimensions]) -> Iterator[Pin]:
    """Yield pins that let updates run where their parameters lie."""
    for operation in graph.operations:
        if operation.phase is not Phase.UPDATE:
            continue
        alias = graph.tensors[operation.outputs[0]].alias
        form = None if alias is None else forms.get(graph.tensors[alias].name)
        if form is None:
            continue
        names = [binder.name for binder in operation.bound.description.outputs[0].variables]
        along = tuple(None if dim is None else names[dim] for dim in form)
        if set(along) - {None} <= operation.bound.splits.keys():
            yield Pin(operation.name, along, "operator")


def _samples(graph: Graph, forms: Mapping[str, Dimensions], factors: tuple[int, ...]) -> Iterator[Pin]:
    """Yield pins that split operations with samples at the steps that cut the first dimension of an input."""
    inputs = [forms[t.name] for t in graph.tensors if t.role is Role.DATA and t.name in forms]
    steps = [any(dim == 0 for dim in at) for at in zip(*inputs, strict=True)]
    if not any(steps):
        return
    problem = build_problem(graph)
    samples = find_sample_axes(problem).variable
    for operation, number in zip(graph.operations, problem.operation_class, strict=True):
        if operation.phase is Phase.UPDATE or number not in samples:
            continue
        along, left = samples[number], operation.bound.extents[samples[number]]
        entries: list[str | None] = []
        for step, factor in zip(steps, factors, strict=True):
            fits = step and left >= factor
            entries.append(along if fits else FREE)
            left //= factor if fits else 1
        yield Pin(operation.name, tuple(entries), "operator")
