"""The frontier of step time and memory: plans that no other plan found beats, and what no plan can beat.

    points    pairs of the simulated time of an iteration and the largest arena of a worker, each with its
              plan; a plan is left out if another one is as fast, or faster, and takes as much memory or less
    lower     for rising amounts of memory, the time that every plan in steps takes that has at most as much

(TensorOpt, section 4, has pairs of estimated time and memory that are added up over operators, without
bounds.) Plans come from searches for the least bytes and for the least step time, each at several amounts of
memory (`within_memory.memory_front`), and from the baselines that are whole plans.

Every operation is computed in some split, and the busiest worker computes at least the mean over all workers
of the sum over operations. The bound on time counts that alone, so it does not fall with more memory, and
there is one point. Implemented in: `find_frontier` (plans), `least_seconds` (the bound on time),
`within_memory.least_peak_bytes` (the bound on memory).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from ...analyzer.bind.bound import Bound
from ...dataflow.graph import Graph, Operation
from ...errors import PlanError
from ...machines.machine import Machine
from ...simulator.times import NANOSECONDS, TaskTimes
from ...support.notebook_display import NotebookDisplay
from ..layouts.choices import operator_choices, splittable
from ..layouts.step_split import prime_factors
from ..plans.plan import Plan
from ..problem.classes import build_problem
from ..problem.problem import Problem
from ..problem.sequences import all_sequences, sequence_count
from .method import Method, every_method, find_method
from .settings import SearchSettings
from .within_memory import least_peak_bytes, memory_front

MOST_SEQUENCES = 1 << 14
"""Operations that can be split in more ways count nothing in the bound on computations."""


@dataclass(frozen=True, slots=True)
class Measures:
    """How plans are measured."""

    seconds: Callable[[Plan], float]
    """Returns the simulated time of an iteration."""

    arena: Callable[[Plan], int]
    """Returns the largest arena of a worker, in bytes."""

    times: TaskTimes
    """Returns the times of tasks."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A plan that no other plan found beats."""

    seconds: float
    """The simulated time of an iteration."""

    peak_bytes: int
    """The largest arena of a worker."""

    plan: Plan
    """The plan; its `step_seconds` are the same time."""


@dataclass(frozen=True, slots=True)
class LowerPoint:
    """A bound on the time of plans with little memory."""

    seconds: float
    """The time of an iteration that every plan in steps takes that has less memory than the next point."""

    peak_bytes: int
    """The memory from which on that bound holds; every plan in steps takes that of the first point."""


@dataclass(frozen=True)
class Frontier(NotebookDisplay):
    """Step time against memory, for a number of workers on a machine."""

    workers: int
    """The number of workers."""

    machine: Machine
    """The machine."""

    points: tuple[FrontierPoint, ...]
    """The plans found, by rising memory and falling time."""

    lower: tuple[LowerPoint, ...]
    """The bounds that are proven, by rising memory and falling time."""

    def plan(self, *, memory: int | None = None, seconds: float | None = None) -> Plan:
        """Return the fastest plan within an amount of memory, or the one with least memory that is as fast.

        Raises PlanError if no point is, and unless exactly one of both is given.
        """
        if (memory is None) == (seconds is None):
            raise PlanError(
                "give one of both: the memory of a worker in bytes, or the seconds of an iteration"
            )
        if memory is not None:
            fitting = [point for point in self.points if point.peak_bytes <= memory]
            if not fitting:
                least = self.points[0].peak_bytes
                raise PlanError(
                    f"no plan was found that takes at most {memory:,} bytes: the least is {least:,}, and "
                    f"every plan in steps needs at least {self.lower[0].peak_bytes:,} (proven)"
                )
            return fitting[-1].plan
        assert seconds is not None
        fast = [point for point in self.points if point.seconds <= seconds]
        if not fast:
            raise PlanError(
                f"no plan was found that takes at most {seconds} seconds: the fastest takes "
                f"{self.points[-1].seconds}, and every plan in steps at least {self.lower[-1].seconds} "
                f"(proven)"
            )
        return fast[0].plan


def searching_method(given: str | Method) -> Method:
    """Return a method. Raises PlanError if there is none, or if it does not search for less memory."""
    method = find_method(given)
    if not method.takes_prices:
        able = ", ".join(sorted(each.name for each in every_method().values() if each.takes_prices))
        raise PlanError(
            f"the method {method.name!r} makes one plan, whatever memory it takes; a frontier needs a "
            f"search: {able}"
        )
    return method


def find_frontier(
    graph: Graph,
    workers: int,
    machine: Machine,
    method: str | Method,
    measures: Measures,
    memory: int | None = None,
) -> Frontier:
    """Find the frontier of plans of a graph, up to a limit of memory.

    Raises PlanError if no plan is found that fits, and MachineError as `SearchSettings.made_objective`.
    """
    search = searching_method(method)
    found: list[FrontierPoint] = []
    for plan, peak in _candidates(graph, workers, machine, search, measures.arena):
        if memory is None or peak <= memory:
            seconds = measures.seconds(plan)
            found.append(FrontierPoint(seconds, peak, replace(plan, step_seconds=seconds)))
    least = least_peak_bytes(graph, workers)
    if not found:
        proven = (
            f"; every plan in steps needs at least {least:,} bytes (proven)" if least > (memory or 0) else ""
        )
        raise PlanError(f"no plan was found that takes at most {memory:,} bytes{proven}")
    lower = LowerPoint(least_seconds(build_problem(graph), workers, measures.times), least)
    return Frontier(workers, machine, unbeaten(found), (lower,))


def unbeaten(found: Iterable[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """Return the points that no other one beats, by rising memory; of equal ones the first."""
    points: list[FrontierPoint] = []
    for point in sorted(found, key=lambda point: (point.peak_bytes, point.seconds)):
        if not points or point.seconds < points[-1].seconds:
            points.append(point)
    return tuple(points)


def _candidates(
    graph: Graph, workers: int, machine: Machine, method: Method, arena: Callable[[Plan], int]
) -> Iterator[tuple[Plan, int]]:
    """Yield plans with their arenas."""
    for settings in (
        SearchSettings(method),
        SearchSettings(method, keep=False, replicate=False),
        SearchSettings(method, machine=machine, objective="step-time"),
    ):
        for point in memory_front(graph, workers, settings, arena):
            yield point.plan, point.arena_bytes
    for each in every_method().values():
        if each.composes:
            try:
                plan: Plan = each.search(graph, workers, SearchSettings(each).space())
            except PlanError:  # the graph lacks the layers for it
                continue
            yield plan, arena(plan)


def least_seconds(problem: Problem, workers: int, times: TaskTimes) -> float:
    """Return a lower bound on the time in which some worker computes, for every plan in steps."""
    known: dict[tuple[Bound, tuple[str, ...]], float] = {}
    total = 0.0
    for number, (bound, operation) in enumerate(zip(problem.operators, problem.leaders, strict=True)):
        touched = (*operation.inputs, *operation.outputs)
        key = bound, tuple(problem.graph.tensors[tensor].dtype for tensor in touched)
        if key not in known:
            known[key] = _least_mean(operation, workers, times)
        total += known[key] * problem.members[number]
    return total / NANOSECONDS


def _least_mean(operation: Operation, workers: int, times: TaskTimes) -> float:
    """Return the least mean time of the workers in nanoseconds, over all splits in steps in any order."""
    bound = operation.bound
    labels = splittable(bound)
    least = []
    for factors in set(permutations(prime_factors(workers))):
        if sequence_count(labels, factors, True) > MOST_SEQUENCES:
            return 0.0
        boxes = operator_choices(bound, all_sequences(labels, factors, True), factors).boxes
        each = times(operation, np.tile(np.arange(workers), len(boxes)), boxes.reshape(-1, *boxes.shape[2:]))
        least.append(float(each.reshape(-1, workers).mean(axis=1).min()))
    return min(least)
