"""Find plans that fit the memory of devices, the workspace of their kernels included.

Search and runtime meet here: the one finds plans, and the other says what their kernels need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from .dataflow.graph import Graph
from .errors import MachineError, PlanError
from .machines.machine import Machine
from .machines.machine_file import machine_of
from .partitioner import Fitting, Needs, Plan, SearchSettings, find_plan_within, lower
from .partitioner.lowering.arenas import Arenas
from .partitioner.methods.fitting import cost_of
from .partitioner.methods.limit import Limit, SameLimit, highest_limit, worker_limits
from .partitioner.methods.merged_plans import better_merged
from .partitioner.plans.plan import graph_of, require_graph
from .partitioner.problem.classes import build_problem
from .partitioner.problem.live_bytes import LiveBytes
from .programs.memory import plan_memory

if TYPE_CHECKING:
    from .runtime.kernel_scratch import KernelScratch

MOST_TRIED = 64
"""The most workers that are tried if a machine does not say how many devices it has."""

INCLUDED = "the workspace of their kernels included"
"""The part of proven sizes of memory that messages on tensors do not show."""


def search_within(graph: Graph, workers: int, settings: SearchSettings, limit: Limit) -> Fitting:
    """Find a plan within a limit, see `find_plan_within`, for the merged graph as well if settings say so.

    For the objective `step-time`, one more plan moves few bytes. Both are simulated, and the faster one that
    fits is returned.
    """
    highest, withheld = highest_limit(limit, workers)
    if settings.merge:
        return better_merged(
            graph, highest, lambda each: _search_within(each, workers, settings, highest, withheld)
        )
    return _search_within(graph, workers, settings, highest, withheld)


def _search_within(
    graph: Graph, workers: int, settings: SearchSettings, limit: SameLimit, withheld: tuple[int, ...]
) -> Fitting:
    """Find a plan within a limit for this very graph, if bytes are withheld from workers."""
    require_graph(graph)
    arenas = Arenas(graph)
    needs = needs_of(graph, withheld, arenas)
    found = find_plan_within(graph, workers, settings, limit, needs)
    if settings.objective != "step-time":
        return replace(found, memory=arenas.figures)
    assert settings.machine is not None
    machine = machine_of(settings.machine)
    of_bytes = replace(settings, objective="bytes", machine=None)
    timed = [
        _timed(graph, each, machine)
        for each in (found, find_plan_within(graph, workers, of_bytes, limit, needs))
    ]

    def rank(each: Fitting) -> tuple[bool, float]:
        fits = not isinstance(limit, int) or each.peak_bytes <= limit
        return not fits, each.plan.step_seconds or 0.0

    return replace(min(timed, key=rank), memory=arenas.figures)


def search_fewest(
    graph: Graph,
    settings: SearchSettings,
    limit: Limit,
    machine: Machine | None,
    trying: Callable[[int], None] | None = None,
) -> Fitting:
    """Find a plan that fits for as few workers as possible, up to the devices of a machine.

    Numbers for which no plan can fit are passed over without a search, and so are those for which the method
    makes no plan, such as those that do not divide the machine's levels. Raises PlanError without a limit, or
    if no plan is found that fits. An error of the method is raised if two numbers in a row have the same one,
    or if it makes no plan for any number. `trying` is called with every number before its search.
    """
    if worker_limits(limit, 1) is None:
        raise PlanError(
            "the fewest workers are those whose plan fits a limit of memory; give one, such as 12GB"
        )
    most = MOST_TRIED if machine is None else len(machine.worker_devices or machine.devices)
    live = LiveBytes.of(build_problem(graph))
    refused: MachineError | PlanError | None = None
    made = False
    for workers in range(1, most + 1):
        limits = worker_limits(limit, workers)
        assert limits is not None
        if live.least_bytes(workers) > max(limits):
            continue
        if trying is not None:
            trying(workers)
        try:
            found = search_within(graph, workers, settings, limit)
        except (MachineError, PlanError) as error:
            if str(error) == str(refused):
                raise
            refused = error
            continue
        made = True
        if refusal(graph_of(found.plan), found, limit) is None:
            return found
    if refused is not None and not made:
        raise refused
    highest, _ = highest_limit(limit, most)
    raise PlanError(
        f"no plan was found that fits {highest:,} bytes on up to {most} workers; each of {most} needs at "
        f"least {live.least_bytes(most):,} bytes (proven)"
    )


def _timed(graph: Graph, found: Fitting, machine: Machine) -> Fitting:
    """Simulate an iteration of a plan, which costs that time from then on, and of larger ones.

    The first larger one that takes less time is kept.
    """
    plan = with_times(graph, found.plan, machine)
    timed = (_timed(graph, each, machine) for each in found.larger)
    faster = next((each for each in timed if each.cost < cost_of(plan)), None)
    return replace(found, plan=plan, cost=cost_of(plan), larger=() if faster is None else (faster,))


def with_times(graph: Graph, plan: Plan, machine: Machine) -> Plan:
    """Return a plan with the simulated time of an iteration, and its bound."""
    from .simulator.simulate import simulate

    timeline = simulate(lower(graph, plan), machine)
    return replace(plan, step_seconds=timeline.seconds, step_bound_seconds=timeline.bound_seconds)


def needs_of(graph: Graph, withheld: tuple[int, ...] = (), arenas: Arenas | None = None) -> Needs:
    """Return the memory that plans of a graph need: arenas, and the workspace of the processor's kernels.

    `withheld` are the bytes that each worker lacks of the highest limit. `arenas` are those of its plans, if
    they are used elsewhere as well.
    Raises GraphError for a value that is not a graph.
    """
    require_graph(graph)

    @cache
    def scratch() -> KernelScratch:
        from .runtime.kernel_scratch import KernelScratch  # kernels are slow to import

        return KernelScratch()

    def alone(*call: Any) -> int:
        return scratch().alone_bytes(graph, *call)

    def workspace(plan: Plan) -> int:
        from .runtime.footprint import footprint

        needed = footprint(lower(graph, plan), scratch())
        lacking = withheld or (0,) * plan.workers
        arenas = tuple(map(sum, zip(needed.arena_bytes, lacking, strict=True)))
        return replace(needed, arena_bytes=arenas).peak_bytes - max(arenas)

    arena = partial((arenas or Arenas(graph)).largest, withheld=withheld)
    return Needs(arena, workspace, alone, withheld)


def refusal(graph: Graph, found: Fitting, limit: Limit) -> str | None:
    """Return why a plan does not fit, and what is proven of the plans of its space; None if it fits."""
    limits = worker_limits(limit, found.plan.workers)
    if limits is None:
        return None
    from .runtime.footprint import footprint
    from .runtime.memory_limit import shortfall

    programs = lower(graph, found.plan)
    memory = plan_memory(programs)
    refused = shortfall(memory, limits)
    if refused is None:
        refused = shortfall(memory, limits, footprint(programs).workspace_bytes)
    if refused is None:
        return None
    space, least = replace(found.plan.space, memory_bytes=None), found.least_bytes
    if least > max(limits):
        return f"{refused}; plans that {space} need at least {least:,} bytes (proven), {INCLUDED}"
    return (
        f"{refused}; no plan was found that fits, but it is only proven that plans that {space} need at "
        f"least {least:,} bytes, {INCLUDED}"
    )
