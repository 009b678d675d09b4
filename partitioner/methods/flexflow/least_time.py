"""A bound on the time of an iteration that holds for every strategy of the SOAP space.

    tasks      for every operation, the least that all tasks of one of its splits take together, each on the
               device that is fastest for it
    bound      the sum of these over all operations, shared evenly by the devices

The busiest device takes at least an even share of all tasks. What is computed more than once, transfers,
reductions and waiting come on top. Splits are those of `possible_degrees`. Implemented in: `least_seconds`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ....machines.machine import Machine
from ....simulator.times import NANOSECONDS, TaskTimes, task_times
from ...plans.space import Space
from .configurations import Configuration, possible_degrees
from .soap import Soap
from .strategy import Strategies


def least_seconds(soap: Soap, machine: Machine) -> float:
    """Return the bound, in seconds."""
    strategies = Strategies(soap, Space())
    times = task_times(soap.graph, machine, soap.workers)
    devices = machine.devices_of(soap.workers)
    kinds = {machine.kind(device).name: worker for worker, device in enumerate(devices)}
    found, known = 0, dict[object, int]()
    for number, decision in enumerate(soap.decisions):
        operations = [soap.graph.operations[each] for each in decision.operations]
        key = tuple(each.bound for each in operations), decision.dimensions
        if key not in known:
            known[key] = _least(strategies, number, times, list(kinds.values()))
        found += known[key]
    return found / soap.workers / NANOSECONDS


def _least(strategies: Strategies, number: int, times: TaskTimes, fastest: list[int]) -> int:
    """Return the least nanoseconds of all tasks of a decision. `fastest` has a worker of each kind."""
    soap, found = strategies.soap, []
    decision = soap.decisions[number]
    for degrees in possible_degrees(decision, soap.workers):
        taken = 0
        split = strategies.change(number, Configuration(degrees, tuple(range(prod(degrees))))).tasks
        for each in decision.operations:
            operation = soap.graph.operations[each]
            tasks = split[operation.name]
            boxes = np.array([task.box for task in tasks], np.int64).reshape(len(tasks), -1, 2)
            on_kinds = [times(operation, np.full(len(tasks), worker), boxes) for worker in fastest]
            taken += int(np.min(on_kinds, axis=0).sum())
        found.append(taken)
    return min(found)
