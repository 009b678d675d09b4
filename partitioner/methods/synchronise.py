"""Strategies on top of a base that they, or users, name: a plan, its file, or the method that makes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...dataflow.graph import Graph
from ...errors import PlanError
from ...support.wording import alternatives
from ..plans.plan import Plan
from .autodist.blame import blamed
from .autodist.checks import require_strategy
from .autodist.compiling import compile_strategy
from .autodist.strategy import DATA_PARALLEL, SyncStrategy
from .method import every_method
from .search import partition


def synchronise(
    graph: Graph, workers: int, strategy: SyncStrategy, base: Plan | str | Path | None = None
) -> Plan:
    """Return the plan of a strategy on top of a base: a plan, the path of its file, or a method.

    The strategy's own base counts if none is given; without one it is data parallelism. Raises PlanError
    naming the variable that has no synchronisation or one that does not fit, and for a base that cannot be
    made or is of another graph.
    """
    require_strategy(strategy)
    written, plan = strategy.written, None
    if base is not None and base != DATA_PARALLEL:
        plan = _plan(graph, workers, base)
    elif base is None and strategy.base not in (None, DATA_PARALLEL):
        with blamed(written, None if written is None else written.base):
            plan = _plan(graph, workers, strategy.base)
    with blamed(written):
        return compile_strategy(graph, workers, replace(strategy, base=None), plan)


def _plan(graph: Graph, workers: int, base: Plan | str | Path) -> Plan:
    if isinstance(base, Plan):
        return base
    if not isinstance(base, str | Path):
        raise PlanError(f"the base is {str(base)[:60]!r}; give a plan, its path or a method")
    if Path(base).suffix == ".json":
        return Plan.load(base)
    method = str(base).partition(":")[0]
    if method in every_method():
        return partition(graph, workers, str(base))
    raise PlanError(
        f"the base {str(base)!r} is neither a plan file, which ends in .json, nor a method"
        f"{alternatives(method, every_method())}"
    )
