"""AutoDist's builders as methods: the plan of the strategy that each makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ....dataflow.graph import Graph
from ...plans.plan import Plan
from ...plans.space import Space
from .builders import BUILDERS
from .strategy import SyncStrategy


def built(name: str, build: Callable[..., SyncStrategy], graph: Graph, workers: int, space: Space) -> Plan:
    """Return the plan of a builder's strategy. Data are fed by batch, whatever the space says."""
    from .compiling import compile_strategy  # other methods need none of its modules

    return replace(compile_strategy(graph, workers, build(graph, workers)), method=name)


COMPOSITIONS: dict[str, Callable[[Graph, int, Space], Plan]] = {
    name: partial(built, name, build) for name, build in BUILDERS.items()
}
"""The function of each method."""
