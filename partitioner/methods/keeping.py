"""Choose which copies of tensors to keep, and which replicated homes to split, for a plan that was found.

    variables    for every group of tensors one of its ways to be held (`problem.ways_to_hold`)
    objective    the bytes that move; at equal bytes the largest sum of bytes that are live at an instant
    given        the strategies of all operations

The bytes are a sum over groups, so each takes one of the ways that move the least. Which one is a game: one
side chooses ways, the other the instant at which they are weighed. The weights are how often each instant
was the fullest so far. The choice whose fullest instant holds least is lowered, and returned if the arena
of the fullest worker is no larger than it was, or if fewer bytes move. Implemented in: `lighter`, `Keeping`
(groups, menus, live bytes), `Keeping.plan_of` (a plan of chosen ways).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...dataflow.graph import Graph, Role
from ...support.gc_pause import gc_paused
from ..layouts.choices import Counts
from ..layouts.copies import Copy
from ..layouts.order import in_order
from ..layouts.step_split import Layout, is_stepped, plain_steps
from ..plans.plan import Plan
from ..problem.classes import build_problem
from ..problem.ways_to_hold import COMPUTE, PHASES, Group, Menu, Menus, Mask, Way, groups_of

ROUNDS = 60
"""The number of rounds of the game."""


@gc_paused()
def lighter(graph: Graph, plan: Plan, peak: Callable[[Plan], int], beyond: bool = False) -> Plan:
    """Return a plan with the same strategies that moves no more bytes, and at equal bytes needs less memory.

    `peak` is the memory that a plan needs. A plan that is not in steps, or to which nothing better is found,
    is returned as it is. Unless `beyond`, no fewer bytes move than if every operation read a home: such plans
    keep their lower bounds.
    """
    if plan.copies or not is_stepped([*plan.strategies.values(), *_homes(plan)]):
        return plan
    keeping = Keeping(graph, plan, beyond)
    menus = keeping.menus(least=True)
    found = keeping.plan_of(_least_full(keeping, menus))
    if found.cost_bytes == plan.cost_bytes and peak(found) >= peak(plan):
        return plan
    return found


def _homes(plan: Plan) -> list[Layout]:
    return [replace(layout, via=None) for layout in plan.layouts.values()]


def _least_full(keeping: Keeping, menus: Sequence[Menu]) -> list[Way]:
    """Return a way for every group, such that the fullest instant holds little."""
    chosen = [0] * len(menus)
    times = np.zeros(keeping.instants, np.int64)
    best, least = chosen, None
    for _ in range(ROUNDS):
        live = keeping.live(menus, chosen)
        fullest = int(live.argmax())
        if least is None or live[fullest] < least:
            best, least = chosen, int(live[fullest])
        times[fullest] += 1
        weights = keeping.weights(times)
        chosen = [
            int((menu.live @ weight).argmin()) if len(menu.ways) > 1 else 0
            for menu, weight in zip(menus, weights, strict=True)
        ]
    return [menu.ways[number] for menu, number in zip(menus, best, strict=True)]


@dataclass(frozen=True)
class Keeping:
    """The groups of tensors of a plan, and their ways to be held."""

    graph: Graph
    """The graph."""

    plan: Plan
    """The plan whose strategies are kept."""

    beyond: bool
    """Whether fewer bytes may move than if every operation read a home."""

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of tensors that are held in one home."""
        return groups_of(self.graph, in_order(self.graph, self.plan.written_order))

    @cached_property
    def instants(self) -> int:
        """The number of instants of an iteration."""
        return PHASES * len(self.graph.operations)

    def menus(self, least: bool) -> list[Menu]:
        """Return a menu for every group; if `least`, of the ways that move the least."""
        plan = self.plan
        menus = Menus(self.graph, plan.strategies, plan.factors, plan.space.replicate)  # type: ignore[arg-type]
        fed = plan.space.feed == "batch"
        arguments = []
        for group in self.groups:
            tensor = self.graph.tensors[group.tensors[0]]
            layout = plan.layouts[tensor.name]
            movable = not (fed and tensor.role is Role.DATA)
            arguments.append((group, plain_steps(layout.form), layout.via, movable))
        floors = [0] * len(arguments) if self.beyond else self._floors(menus, arguments)
        return [menus.menu(*each, floor, least) for each, floor in zip(arguments, floors, strict=True)]

    def _floors(self, menus: Menus, arguments) -> list[int]:
        """Return the bytes of each group if all operations read homes, tied groups having the best one."""
        problem = build_problem(self.graph)
        classes: dict[int, list[int]] = {}
        for number, group in enumerate(self.groups):
            classes.setdefault(problem.tensor_class[group.tensors[0]], []).append(number)
        floors = [0] * len(arguments)
        for numbers in classes.values():
            homes = [menus.homes(*arguments[number]) for number in numbers]
            best = int(sum(homes).argmin())
            for number, moved in zip(numbers, homes, strict=True):
                floors[number] = int(moved[best])
        return floors

    @cached_property
    def _spans(self) -> tuple[Counts, Counts, Counts]:
        """The first and the last instant of every span of every group, and where each group's spans begin."""
        firsts = []
        for group in self.groups:
            turns = np.array([event.turn for event in group.events], np.int64)
            starts = PHASES * turns[:, None] + np.arange(PHASES + 1)
            firsts.append(np.concatenate(([0], starts.ravel())))
        lasts = [np.append(first[1:], self.instants) for first in firsts]
        offsets = np.cumsum([0, *map(len, firsts)])
        return np.concatenate(firsts), np.concatenate(lasts), offsets

    @cached_property
    def counted(self) -> Mask:
        """Whether an instant counts: not if an output that is computed may share memory with an input."""
        found = np.ones(self.instants, bool)
        for turn, operation in enumerate(in_order(self.graph, self.plan.written_order)):
            found[PHASES * turn + COMPUTE] = not operation.bound.in_place
        return found

    def live(self, menus: Sequence[Menu], chosen: Sequence[int]) -> Counts:
        """Return the bytes that are live on all workers at every instant, 0 for those that do not count."""
        firsts, lasts, _ = self._spans
        rows = np.concatenate([menu.live[number] for menu, number in zip(menus, chosen, strict=True)])
        change = np.zeros(self.instants + 1, np.int64)
        np.add.at(change, firsts, rows)
        np.subtract.at(change, lasts, rows)
        return np.where(self.counted, change[:-1].cumsum(), 0)

    def weights(self, prices: Counts) -> list[Counts]:
        """Return the sum of the prices of the instants of every span, group by group."""
        firsts, lasts, offsets = self._spans
        sums = np.append(0, prices.cumsum())
        return np.split(sums[lasts] - sums[firsts], offsets[1:-1])

    def plan_of(self, ways: Sequence[Way]) -> Plan:
        """Return the plan with these ways; its bound is at most its cost."""
        plan, layouts, copies = self.plan, dict(self.plan.layouts), {}
        for group, way in zip(self.groups, ways, strict=True):
            names = [self.graph.tensors[tensor].name for tensor in group.tensors]
            own = layouts[names[0]]
            home = Layout(own.shape, way.home, plan.factors, way.via)
            layouts.update(dict.fromkeys(names, home if home != own else own))
            if way.copy is not None:
                read = [group.events[number] for number in way.readers]
                readers = tuple(self.graph.operations[event.operation].name for event in read)
                copies[names[read[0].member]] = (Copy(way.copy, readers),)
        found = replace(plan, layouts=layouts, copies=copies)
        totals = found.count(self.graph)
        return replace(
            found,
            cost_bytes=totals[-1],
            step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
            lower_bound_bytes=min(plan.lower_bound_bytes, totals[-1]),
        )
