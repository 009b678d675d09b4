"""The frontier of step time and memory: plans that no other plan found beats, and what no plan can beat.

    points    pairs of the simulated time of an iteration and the largest arena of a worker, each with its
              plan; a plan is left out if another one is as fast, or faster, and takes as much memory or less
    lower     what no plan in steps can beat, see `frontier_bounds`

(TensorOpt, section 4, has pairs of estimated time and memory that are added up over operators, without
bounds.) Plans come from searches for the least bytes and for the least step time, each at several amounts of
memory (`within_memory.memory_front`), from their recombination (`recombine`), and from the baselines that are
whole plans. Then transfers of some of them go in several hops (`several_hops`). Less memory is also bought by
computing activations again, see `dataflow.recompute`. Every plan that a search measures is a candidate, not
only what it returns; a plan is measured once. Searches of both graphs and baselines are made next to
each other, see `support.at_once`. Implemented in: `_Tried` (plans), `unbeaten` (the points).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np

from ...dataflow.alike import numbered
from ...dataflow.graph import Graph
from ...dataflow.recompute import recomputed
from ...errors import PlanError
from ...machines.machine import Machine
from ...simulator.times import TaskTimes
from ...support.at_once import at_once
from ...support.checked_argument import is_number, require
from ...support.notebook_display import NotebookDisplay
from ..costs.plan_bytes import KnownCounts
from ..plans.plan import Plan
from ..plans.recounted import recounted
from ..plans.space import Space
from .frontier_bounds import Bounded, LowerPoint, lower_staircase
from .limit import parse_same_limit
from .method import Method, every_method, searching_method
from .recombine import recombined
from .search import prepared
from .settings import SearchSettings
from .several_hops import in_several_hops
from .within_memory import least_peak_bytes, memory_front

HOPPED = 3
"""The number of plans whose transfers may go in several hops, spread evenly over those that nothing beats."""

WHOLE = Space(replicate=True, feed="batch", keep=True)
"""The space of all plans that a search knows, with inputs as a loader has them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The time and memory that a plan takes."""

    seconds: float
    """The simulated time of an iteration."""

    peak_bytes: int
    """The largest arena of a worker."""


@dataclass(frozen=True, slots=True)
class Measures:
    """How plans are measured."""

    of: Callable[[Graph], Callable[[Plan], Measured]]
    """Returns the function that measures plans of a graph, for which it keeps what they share."""

    times: Callable[[Graph], TaskTimes]
    """Returns the times of a graph's tasks."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A plan that no other plan found beats."""

    seconds: float
    """The time of an iteration by the cost model of the frontier: the simulated time, or an estimate."""

    peak_bytes: int
    """The memory of a worker by that model: the largest arena, or an estimate."""

    plan: Plan
    """The plan; its `step_seconds` are the simulated time."""

    recompute: int = 1
    """The number of segments whose activations its graph computes again, see `training_graph`."""

    taken: Measured | None = None
    """The time and memory that the plan takes, if those above are estimates; else None."""


Point = TypeVar("Point", FrontierPoint, LowerPoint)


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

    cost_model: str = "simulated"
    """The model of times and memory: `simulated`, with arenas, or `tensoropt`, with estimates."""

    @property
    def bounded(self) -> str:
        """Say for which plans the bounds hold."""
        if self.cost_model == "simulated":
            return "every plan in steps"
        return f"by the cost model {self.cost_model!r}, every plan that {self.points[0].plan.space}"

    def plan(self, *, memory: int | str | None = None, seconds: float | None = None) -> Plan:
        """Return the fastest plan within an amount of memory, or the one with least memory that is as fast.

        `memory` is a number of bytes, or text such as `12GB` or `unlimited`. Raises PlanError if no point
        fits, unless exactly one of both is given, and if `seconds` is not a number. Raises MachineError if
        `memory` is not an amount of memory.
        """
        if (memory is None) == (seconds is None):
            raise PlanError(
                "give one of both: the memory of a worker in bytes, or the seconds of an iteration"
            )
        if memory is not None:
            limit = parse_same_limit(memory, "memory")
            if not isinstance(limit, int):
                return self.points[-1].plan
            fitting = [point for point in self.points if point.peak_bytes <= limit]
            if not fitting:
                least = self.points[0].peak_bytes
                raise PlanError(
                    f"no plan was found that takes at most {limit:,} bytes: the least is {least:,}, and "
                    f"{self.bounded} needs at least {self.lower[0].peak_bytes:,} (proven)"
                )
            return fitting[-1].plan
        require(is_number(seconds), seconds, "seconds", "a finite number of seconds", PlanError)
        assert seconds is not None
        fast = [point for point in self.points if point.seconds <= seconds]
        if not fast:
            raise PlanError(
                f"no plan was found that takes at most {seconds} seconds: the fastest takes "
                f"{self.points[-1].seconds}, and {self.bounded} takes at least {self.lower[-1].seconds} "
                f"(proven)"
            )
        return fast[0].plan


def find_frontier(
    graph: Graph,
    workers: int,
    machine: Machine,
    method: str | Method,
    measures: Measures,
    memory: int | None = None,
    recompute: Sequence[int] = (1,),
    space: Space = WHOLE,
) -> Frontier:
    """Find the frontier of plans of a graph in a space, up to a limit of memory.

    `recompute` are the numbers of segments in which activations may be computed again; 1 is the graph itself.
    Proofs hold for every space. Few plans that keep nothing are all considered.

    Raises PlanError if no plan is found that fits, and MachineError as `SearchSettings.made_objective`.
    """
    search = searching_method(method)
    variants = variants_of(graph, recompute)
    needs = [least_peak_bytes(variant, workers) for variant in variants.values()]
    least = min(needs)
    if memory is not None and memory < least:
        raise PlanError(
            f"no plan is searched within {memory:,} bytes: every plan in steps needs at least {least:,} "
            f"(proven)"
        )
    every = {each: _Tried(variants[each], workers, machine, each, measures) for each in variants}
    calls: list[Callable[[], list[FrontierPoint]]]
    calls = [partial(tried.searched, search, space) for tried in every.values()]
    calls += [every[1].baselines] if 1 in every and space == WHOLE else []
    points = unbeaten(chain(*at_once(calls)))
    if space.keep:
        spread = {place * (len(points) - 1) // (HOPPED - 1) for place in range(HOPPED)}
        hops = [every[points[number].recompute].hops(points[number].plan) for number in spread]
        points = unbeaten(chain(points, *hops))
    points = tuple(point for point in points if memory is None or point.peak_bytes <= memory)
    if not points:
        raise PlanError(
            f"no plan was found that takes at most {memory:,} bytes, and it is only proven that every plan "
            f"in steps needs at least {least:,}"
        )
    known = Bounded(tuple(variants.values()), workers, machine, search, measures.times, needs)
    lower = lower_staircase(known, [(point.peak_bytes, point.plan.cost_bytes) for point in points])
    return Frontier(workers, machine, points, lower)


def unbeaten(found: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that no other one beats, by rising memory; of equal ones the first."""
    points: list[Point] = []
    for point in sorted(found, key=lambda point: (point.peak_bytes, point.seconds)):
        if not points or point.seconds < points[-1].seconds:
            points.append(point)
    return tuple(points)


def variants_of(graph: Graph, recompute: Sequence[int]) -> dict[int, Graph]:
    """Return graphs that compute activations again, by the number of segments; of equal ones the first."""
    found: dict[str, tuple[int, Graph]] = {}
    for segments in recompute:
        variant = recomputed(graph, segments)
        found.setdefault(variant.fingerprint, (segments, variant))
    return dict(found.values())


class _Tried:
    """The plans of a graph that were tried, each measured once. Methods that try more return all of them."""

    def __init__(
        self, graph: Graph, workers: int, machine: Machine, segments: int, measures: Measures
    ) -> None:
        self.points: list[FrontierPoint] = []
        self._graph = graph
        self._workers = workers
        self._machine = machine
        self._segments = segments
        self._measure = measures.of(graph)
        self._measured: dict[object, Measured] = {}
        self._numbers: dict[Hashable, int] = {}
        """The numbers of the forms and layouts of plans."""

    def searched(self, method: Method, space: Space) -> list[FrontierPoint]:
        """Return plans of searches; if activations are computed again, only of those for the step time."""
        chosen = partial(SearchSettings, method, feed=space.feed)
        timed = chosen(machine=self._machine, objective="step-time", replicate=space.replicate)
        spaces = dict.fromkeys([(space.keep, space.replicate), (False, False)] if self._segments == 1 else [])
        plans: list[Plan] = []
        for settings in (timed, *[chosen(keep=keep, replicate=replicate) for keep, replicate in spaces]):
            front = memory_front(self._graph, self._workers, settings, self._arena, coarse=True)
            plans += [point.plan for point in reversed(front)]
        problem, _ = prepared(self._graph, self._workers, timed)
        for plan in recombined(problem, self._workers, plans, method):
            self._arena(replace(plan, space=timed.space()))
        return self.points

    def baselines(self) -> list[FrontierPoint]:
        """Return plans of the methods that make whole plans."""
        for each in every_method().values():
            if each.composes:
                try:
                    plan = each.search(self._graph, self._workers, SearchSettings(each).space())
                except PlanError:  # the graph lacks the layers for it
                    continue
                self._arena(plan)
        return self.points

    def hops(self, plan: Plan) -> list[FrontierPoint]:
        """Return plans whose transfers go in several hops, where the machine has groups."""
        graph, known = self._graph, KnownCounts(plan.factors)
        in_several_hops(
            graph, plan, self._machine, lambda made: self._taken(recounted(graph, made, known)).seconds
        )
        return self.points

    def _arena(self, plan: Plan) -> int:
        return self._taken(plan).peak_bytes

    def _taken(self, plan: Plan) -> Measured:
        """Return what a plan takes, which becomes a point."""
        forms = numbered((*plan.strategies.values(), *plan.layouts.values()), self._numbers)
        choices = np.array(forms, np.int64).tobytes(), tuple(plan.copies.items()), plan.written_order
        if choices not in self._measured:
            taken = self._measured[choices] = self._measure(plan)
            made = replace(plan, step_seconds=taken.seconds)
            self.points.append(FrontierPoint(taken.seconds, taken.peak_bytes, made, self._segments))
        return self._measured[choices]
