"""Find a plan that fits the memory of each worker, and plans for several limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from ...dataflow.graph import Graph
from ...support.gc_pause import gc_paused
from ..plans.plan import Plan
from ..problem.classes import build_problem
from ..problem.least_scratch import Scratch, least_with_scratch
from ..problem.live_bytes import LiveBytes
from .fitting import Fitting, Needs, cost_of
from .ladder import COARSE, Ladder
from .limit import SameLimit
from .method import searching_method
from .search import find_plan, prepared
from .settings import SearchSettings
from .worker_memory import WorkerMemory


@gc_paused()
def find_plan_within(
    graph: Graph, workers: int, settings: SearchSettings, limit: SameLimit, needs: Needs
) -> Fitting:
    """Find a plan for `workers` workers that fits the limit of each.

    Raises the errors of `find_plan`. Methods that take no prices make one plan, whether it fits or not.
    """
    start = time.perf_counter()
    if isinstance(limit, int):
        within = partial(_plan_within, graph, workers, limit, needs)
        memory = WorkerMemory(limit, needs.arena, needs.workspace, needs.withheld, within)
        settings = replace(settings, memory=memory)
    prepare = cache(partial(prepared, graph, workers, settings))
    plan = find_plan(graph, workers, settings, prepare)
    takes_prices = settings.chosen_method().takes_prices
    if limit == "unlimited" or (limit is None and not (plan.space.replicate and takes_prices)):
        return Fitting(plan, cost_of(plan), needs.arena(plan))
    if limit is None:
        needs = Needs(needs.arena)
    ladder = Ladder.of(prepare(), workers, needs, plan)
    if limit is None:
        ladder.stride, ladder.limited = COARSE, False
    ladder.limit_bytes = ladder.default_limit() if limit is None else limit
    settled = ladder.settled(ladder.free)
    if settled is not None:
        return settled
    live = ladder.live if limit is None else LiveBytes.of(build_problem(graph))
    least = least_with_scratch(live, workers, needs.scratch)
    ladder.least_workspace = least - live.least_bytes(workers)
    if not takes_prices or least > ladder.limit_bytes:
        return replace(ladder.counted(ladder.free), least_bytes=least)
    found = ladder.found(least, copies=limit is not None)
    space = plan.space
    if ladder.fits(found):
        space = replace(space, memory_bytes=ladder.limit_bytes)
    plan = replace(found.plan, space=space, search_seconds=time.perf_counter() - start)
    return replace(found, plan=plan, larger=ladder.larger(found) if ladder.fits(found) else ())


def _plan_within(graph: Graph, workers: int, limit: int, needs: Needs, settings: SearchSettings) -> Plan:
    """Return the plan that settings lead to within a limit, whether it fits or not."""
    return find_plan_within(graph, workers, settings, limit, replace(needs, scratch=None)).plan


@gc_paused()
def memory_front(
    graph: Graph,
    workers: int,
    settings: SearchSettings,
    arena: Callable[[Plan], int],
    *,
    coarse: bool = False,
) -> tuple[Fitting, ...]:
    """Return up to `POINTS` plans, from the least memory that prices lead to up to the best plan.

    Their limits are spread evenly over the memory between the two. A plan is left out if another one takes no
    more memory and costs no more. The bounds of the plans hold for all plans, not for those within a limit.
    Only arenas count. If `coarse`, fewer prices are tried for each limit.
    Raises the errors of `find_plan`, and PlanError for methods that take no prices, which make one plan.
    """
    searching_method(settings.chosen_method())
    prepare = cache(partial(prepared, graph, workers, settings))
    plan = find_plan(graph, workers, settings, prepare)
    ladder = Ladder.of(prepare(), workers, Needs(arena), plan)
    if coarse:
        ladder.stride = COARSE
    return ladder.front()


def least_peak_bytes(graph: Graph, workers: int, scratch: Scratch | None = None) -> int:
    """Return a lower bound on the memory of the fullest worker, for every plan in steps.

    It is that of its arena, and of what its kernels take besides if `scratch` tells the least of each.
    """
    return least_with_scratch(LiveBytes.of(build_problem(graph)), workers, scratch)
