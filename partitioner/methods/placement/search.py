"""The best placement by simulation: whole operations on workers, or split inside groups of workers.

    states         the worker of every operation, or its group, and the order of all operations
    cost           the simulated time of an iteration
    candidates     for every number of groups, the best placements of all placers by emulation

Guarantees: the plan fits the memory, and is not slower than any candidate that was simulated and fits.
Implemented in: `place`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....errors import PlanError
from ...plans.plan import Plan
from ..flexflow.configurations import divisors
from ..simulated import SimulatedSearch
from .graph import Schedule
from .placing import Placing
from .portfolio import portfolio

SIMULATED = 3
"""The placements of each number of groups that are simulated."""


def place(asked: SimulatedSearch) -> Plan:
    """Return the fastest plan that fits. Raises PlanError if none is found."""
    best: Plan | None = None
    refused: PlanError | None = None
    counts = [asked.groups] if asked.groups else list(reversed(divisors(asked.workers)))
    for groups in counts:
        placing = Placing(asked, groups)
        for schedule in _schedules(placing):
            try:
                plan = placing.fitting(schedule)
            except PlanError as error:
                refused = error
                continue
            if best is None or _seconds(plan) < _seconds(best):
                best = plan
    if best is None:
        assert refused is not None
        raise refused
    return replace(best, method="place")


def _schedules(placing: Placing) -> Iterator[Schedule]:
    """Yield the placements that are simulated: the best by emulation."""
    nodes, devices = placing.training.nodes, placing.devices
    for each in portfolio(nodes, devices, placing.tied)[:SIMULATED]:
        yield each.schedule


def _seconds(plan: Plan) -> float:
    assert plan.step_seconds is not None
    return plan.step_seconds
