"""Prove what no plan can beat: the time of an iteration, for rising amounts of memory.

The busiest worker computes at least the mean over all workers of the sum over operations, each in the split
in which that is least. And every byte that moves passes the link of the worker that fetches it:

    time(x)  >=  sum over o of the least mean time of o                          for every plan x in steps
    time(x)  >=  least bytes moved within the memory / (workers * bandwidth)     if x repeats no computation

If all devices are equal, the order of equal steps decides only which of them computes which box, so the mean
depends on how often each variable is split. A graph that computes activations again computes for longer.
Below the memory that plans of the other graphs are proven to need, only its time counts. The bytes within a
limit of memory have a Lagrangian bound, see `lagrangian`. Neither bound counts that operations wait for what
they read, so simulated times are above. Implemented in: `least_seconds`, `_Moved` (the two bounds),
`_fitting` (which graphs count), `lower_staircase` (the higher bound, by memory).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from math import inf
from typing import TypeVar

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import flattened
from ...dataflow.graph import Graph, Operation
from ...machines.machine import Machine
from ...simulator.times import NANOSECONDS, TaskTimes
from ..layouts.choices import operator_choices, splittable
from ..layouts.step_split import prime_factors
from ..plans.space import Space
from ..problem.any_order import ascending
from ..problem.classes import build_problem
from ..problem.live_bytes import LiveBytes
from ..problem.plan_choices import Choices
from ..problem.problem import Chosen, Problem
from ..problem.sequences import all_sequences, sequence_count
from ..problem.solution import Solution
from .lagrangian import ascend
from .method import Method, find_method
from .search import searched

Item = TypeVar("Item")

MOST_SEQUENCES = 1 << 14
"""If devices differ, operations that can be split in more ways count nothing in the bound on computations."""

MOST_TIMES = 8
"""Prices rise until plans move this many times the bytes that they move without a limit."""

STAIRS = 5
"""The most limits of memory for which bytes are bounded."""


@dataclass(frozen=True, slots=True)
class LowerPoint:
    """A bound on the time of plans with little memory."""

    seconds: float
    """The time of an iteration that every plan in steps takes that has less memory than the next point.

    If it falls at the next point, it may hold only for plans that repeat no computation.
    """

    peak_bytes: int
    """The memory from which on that bound holds; every plan in steps takes that of the first point."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A search whose plans are to be bounded."""

    graphs: Sequence[Graph]
    """The graph, and those that compute activations again."""

    workers: int
    """The number of workers."""

    machine: Machine
    """The machine."""

    method: Method
    """The search that finds plans; its bounds hold for all."""

    times: Callable[[Graph], TaskTimes]
    """Returns the times of a graph's tasks."""

    least_bytes: Sequence[int]
    """For each graph, the memory that every plan in steps needs."""


def lower_staircase(known: Bounded, found: Sequence[tuple[int, int]]) -> tuple[LowerPoint, ...]:
    """Return what no plan in steps that repeats no computation is below.

    `found` are the memory and the moved bytes of plans, by rising memory. Where even their bytes take less
    time to move than operations to compute, bytes are not bounded.
    """
    computing = [_least_computing(known, graph) for graph in known.graphs]
    rate, least = _inward(known.machine, known.workers), min(known.least_bytes)
    limits = [memory for memory, _ in found if memory > least]
    limits = [limits[place * len(limits) // STAIRS] for place in range(STAIRS) if limits]
    cuts = sorted({*limits, *known.least_bytes} - {least})
    ends = [*cuts, None]
    slow = [end for end in ends if _moving(found, end) / rate > min(computing)]
    moving = _moving_seconds(known, slow, rate, min(computing))
    stairs = [
        LowerPoint(max(moving.get(end, 0.0), min(_fitting(known, computing, end))), start)
        for start, end in zip([least, *cuts], ends, strict=True)
    ]
    return _falling(stairs)


def _least_computing(known: Bounded, graph: Graph) -> float:
    """Return a bound on the time in which some worker computes, for every plan in steps of a graph."""
    equal_devices = has_equal_devices(known.machine, known.workers)
    return least_seconds(build_problem(graph), known.workers, known.times(graph), equal_devices=equal_devices)


def _fitting(known: Bounded, of: Sequence[Item], end: int | None) -> list[Item]:
    """Return what belongs to graphs that may need less memory than `end`; None stands for any amount."""
    return [item for item, least in zip(of, known.least_bytes, strict=True) if end is None or least < end]


def _moving_seconds(
    known: Bounded, ends: Sequence[int | None], rate: float, enough: float
) -> dict[int | None, float]:
    """Return bounds on the time in which bytes move, by rising memory, until one is not above `enough`."""
    every = [_Moved(known, graph) for graph in known.graphs]
    found: dict[int | None, float] = {}
    for end in ends:
        least = inf
        for moved in _fitting(known, every, end):
            least = min(least, moved.below(end) / rate)
            if least <= enough:
                return found
        found[end] = least
    return found


def _moving(found: Sequence[tuple[int, int]], end: int | None) -> float:
    """Return the least bytes that plans found move that take less memory than `end`."""
    return min((nbytes for memory, nbytes in found if end is None or memory < end), default=inf)


def _falling(stairs: Sequence[LowerPoint]) -> tuple[LowerPoint, ...]:
    """Return stairs that fall: what is proven for more memory holds for less."""
    falling: list[LowerPoint] = []
    for stair in reversed(stairs):
        if falling and stair.seconds <= falling[-1].seconds:
            falling[-1] = replace(falling[-1], peak_bytes=stair.peak_bytes)
        else:
            falling.append(stair)
    return tuple(reversed(falling))


def _inward(machine: Machine, workers: int) -> float:
    """Return the bytes a second that can reach all workers together; infinite if that is not known."""
    devices = machine.devices_of(workers)
    if not machine.levels or machine.link_per_pair or len(set(devices)) < workers or workers == 1:
        return inf
    return workers * machine.levels[-1].bytes_per_second / machine.levels[-1].rails


class _Moved:
    """Bounds on the bytes that plans of a graph move that repeat nothing."""

    def __init__(self, known: Bounded, graph: Graph) -> None:
        self._known = known
        self._graph = graph

    def below(self, memory: int | None) -> int:
        """Return a bound on plans that need less memory; None stands for all plans."""
        free = self._free
        if memory is None:
            return free.lower_bound.value
        start = ((free.strategies, free.dimensions), free.cost.value)
        workers, most = self._known.workers, MOST_TIMES * free.cost.value
        prices = ascend(self._live, workers, (memory - 1) * workers, start, most, self._search)
        if not prices.of:
            return free.lower_bound.value
        proof = searched(prices.priced(), workers, self._known.method)
        return max(free.lower_bound.value, prices.bound(proof.lower_bound.value))

    @cached_property
    def _problem(self) -> Problem:
        kept = build_problem(self._graph, space=Space(True, "batch", True))
        return replace(kept, repeats=frozenset(), priced=False)

    @cached_property
    def _free(self) -> Solution:
        """The best plan that the method finds without prices."""
        return searched(self._problem, self._known.workers, self._known.method)

    @cached_property
    def _live(self) -> LiveBytes:
        return LiveBytes.of(self._problem)

    def _search(self, priced: Problem) -> tuple[Choices, int]:
        """Return the choices of a quick search with prices, and their cost without them."""
        method = find_method("refine") if self._known.method.closes_gap else self._known.method
        solution = searched(priced, self._known.workers, method)
        chosen = Chosen.of(self._problem, solution)
        cost = self._problem.objective.total(chosen)
        return (solution.strategies, solution.dimensions), cost


def has_equal_devices(machine: Machine, workers: int) -> bool:
    """Tell whether all workers are on devices of one kind."""
    return len({machine.kind(device) for device in machine.devices_of(workers)}) == 1


def least_seconds(problem: Problem, workers: int, times: TaskTimes, *, equal_devices: bool) -> float:
    """Return a lower bound on the time in which some worker computes, for every plan in steps.

    `equal_devices` says that equal tasks take the same time on all devices.
    """
    known: dict[tuple[Bound, tuple[str, ...]], float] = {}
    total = 0.0
    for number, (bound, operation) in enumerate(zip(problem.operators, problem.leaders, strict=True)):
        touched = (*operation.inputs, *operation.outputs)
        key = bound, tuple(problem.graph.tensors[tensor].dtype for tensor in touched)
        if key not in known:
            known[key] = _least_mean(operation, workers, times, equal_devices)
        total += known[key] * problem.members[number]
    return total / NANOSECONDS


def _least_mean(operation: Operation, workers: int, times: TaskTimes, equal_devices: bool) -> float:
    """Return the least mean time of the workers in nanoseconds, over all splits in steps in any order."""
    bound = operation.bound
    labels = splittable(bound)
    least = []
    for factors in set(permutations(prime_factors(workers))):
        if not equal_devices and sequence_count(labels, factors, True) > MOST_SEQUENCES:
            return 0.0
        made = ascending(labels, factors, 0, True) if equal_devices else all_sequences(labels, factors, True)
        boxes = operator_choices(bound, made, factors).boxes
        each = times(operation, np.tile(np.arange(workers), len(boxes)), flattened(boxes))
        least.append(float(each.reshape(-1, workers).mean(axis=1).min()))
    return min(least)
