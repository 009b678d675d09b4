"""Strategies that experts use, of which searches start, and which are methods of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ....dataflow.graph import Graph
from ....errors import PlanError
from ...plans.plan import Plan
from ...plans.space import Space
from .data_parallel import data_parallel
from .one_weird_trick import one_weird_trick
from .soap import find_soap
from .strategy import Strategies, Strategy
from .wu_2016 import wu_2016

EXPERTS: dict[str, Callable[[Strategies], Strategy]] = {
    "data-parallel": data_parallel,
    "one-weird-trick": one_weird_trick,
    "wu-2016": wu_2016,
}


def candidates(strategies: Strategies) -> Iterator[tuple[str, Strategy]]:
    """Yield the names and strategies of the experts that know such graphs."""
    for name, expert in EXPERTS.items():
        try:
            strategy = expert(strategies)
        except PlanError:
            continue
        yield name, strategy


def one_weird_trick_plan(graph: Graph, workers: int, space: Space) -> Plan:
    """Return the plan of one weird trick. Raises PlanError for a graph that lacks one kind of layer."""
    return _plan("one-weird-trick", graph, workers, space)


def wu_2016_plan(graph: Graph, workers: int, space: Space) -> Plan:
    """Return the plan of Wu et al. Raises PlanError for a graph without two recurrent layers."""
    return _plan("wu-2016", graph, workers, space)


def _plan(name: str, graph: Graph, workers: int, space: Space) -> Plan:
    strategies = Strategies(find_soap(graph, workers), space)
    return replace(strategies.plan(EXPERTS[name](strategies)), method=name)
