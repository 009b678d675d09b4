"""Choose which copies of tensors to keep, and which replicated homes to split, for a plan that was found.

    variables    for every group of tensors one of its ways to be held (`problem.ways_to_hold`)
    objective    the bytes that move; at equal bytes the largest sum of bytes that are live at an instant
    given        the strategies of all operations

The bytes are a sum over groups, so each takes one of the ways that move the least. Which one is a game: one
side chooses ways, the other the instant at which they are weighed. The weights are how often each instant
was the fullest so far. The choice whose fullest instant holds least is lowered, and returned if the
arena of the fullest worker is smaller, or if fewer bytes move. Implemented in: `lighter`, `Keeping`
(groups, menus, live bytes), `Keeping.plan_of` (a plan of chosen ways).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...dataflow.graph import Graph, Role
from ...support.gc_pause import gc_paused
from ..layouts.choices import Counts
from ..layouts.copies import Copy
from ..layouts.forms import At, Partial
from ..layouts.order import in_order
from ..layouts.step_split import Layout
from ..plans.plan import Plan
from ..problem.classes import build_problem
from ..problem.storage_groups import StorageGroup, groups_of
from ..problem.ways_to_hold import COMPUTE, PHASES, SPANS, Mask, Menu, Menus, Present

ROUNDS = 60
"""The number of rounds of the game."""


@gc_paused()
def lighter(graph: Graph, plan: Plan, peak: Callable[[Plan], int], beyond: bool = False) -> Plan:
    """Return a plan with the same strategies that moves no more bytes, and at equal bytes needs less memory.

    `peak` is the memory that a plan needs. A plan that is not in steps, or to which nothing better is found,
    is returned as it is. Unless `beyond`, no fewer bytes move than if every operation read a home: such plans
    keep their lower bounds.
    """
    if not may_keep(graph, plan):
        return plan
    keeping = Keeping(graph, plan, beyond)
    offers = keeping.offers(least=True)
    found = keeping.plan_of(offers, _least_full(offers))
    return min(plan, found, key=lambda each: (each.cost_bytes, peak(each)))


def may_keep(graph: Graph, plan: Plan) -> bool:
    """Tell whether a plan is one of a search: in steps, or in terms, with copies in steps of what lasts."""
    forms = (*plan.strategies.values(), *(layout.form for layout in plan.layouts.values()))
    lasting = {tensor.name for tensor in graph.tensors if tensor.role.persistent}
    copies = [copy.form for listed in plan.copies.values() for copy in listed]
    return lasting.issuperset(plan.copies) and all(
        isinstance(form, tuple) and not any(isinstance(entry, At) for entry in form)
        for form in (*forms, *copies)
    )


def _least_full(offers: Offers) -> Counts:
    """Return a way for every group, such that the fullest instant holds little."""
    chosen = np.zeros(offers.groups, np.int64)
    times = np.zeros(offers.instants, np.int64)
    best, least = chosen, None
    for _ in range(ROUNDS):
        live = offers.live(chosen)
        fullest = int(live.argmax())
        if least is None or live[fullest] < least:
            best, least = chosen, int(live[fullest])
        times[fullest] += 1
        chosen, _ = offers.cheapest(times, 0)
    return best


@dataclass(frozen=True, slots=True, eq=False)
class MenuGroups:
    """The groups with one menu."""

    menu: Menu
    """The menu."""

    numbers: Counts
    """The numbers of the groups: `[groups]`."""

    firsts: Counts
    """The first instant of every span: `[groups, spans]`."""

    lasts: Counts
    """The instant after its last one, likewise; an empty span has its own first instant here."""


@dataclass(frozen=True, slots=True, eq=False)
class StrungMenus:
    """The menus of all groups, one after the other, and every span of every group."""

    moved: Counts
    """The bytes that each way moves, menu after menu."""

    live: Counts
    """The bytes that each way holds in each span, menu after menu and way after way."""

    ways: Counts
    """The place of the first way of each group in `moved`: `[groups]`."""

    groups: Counts
    """The group of each span: `[spans]`."""

    rows: Counts
    """The place of the span in `live`, for the first way of its group: `[spans]`."""

    lengths: Counts
    """The number of spans of its group, which is how far the next way is: `[spans]`."""

    firsts: Counts
    """The first instant of the span: `[spans]`."""

    lasts: Counts
    """The instant after its last one: `[spans]`."""

    @classmethod
    def of(cls, batches: Sequence[MenuGroups], groups: int) -> StrungMenus:
        """String the menus of all groups together."""
        ways, moved, live = np.zeros(groups, np.int64), 0, 0
        parts: list[tuple[Counts, ...]] = []
        for batch in batches:
            ways[batch.numbers] = moved
            count, length = batch.firsts.shape
            rows = np.tile(live + np.arange(length), count)
            lengths = np.full(count * length, length)
            parts.append((
                np.repeat(batch.numbers, length), rows, lengths, batch.firsts.ravel(), batch.lasts.ravel()
            ))  # fmt: skip
            moved, live = moved + batch.menu.moved.size, live + batch.menu.live.size
        menus = [batch.menu for batch in batches]
        return cls(
            np.concatenate([menu.moved for menu in menus]),
            np.concatenate([menu.live.ravel() for menu in menus]),
            ways,
            *map(np.concatenate, zip(*parts, strict=True)),
        )


@dataclass(frozen=True, eq=False)
class Offers:
    """The menus of all groups, with the instants of their spans."""

    batches: tuple[MenuGroups, ...]
    """The groups, by menu."""

    counted: Mask
    """Whether each instant counts: not if an output that is computed may share memory with an input."""

    groups: int
    """The number of groups."""

    @classmethod
    def of(cls, groups: Sequence[StorageGroup], menus: Sequence[Menu], counted: Mask) -> Offers:
        """Put groups with equal menus together."""
        numbers: dict[Menu, list[int]] = {}
        for number, menu in enumerate(menus):
            numbers.setdefault(menu, []).append(number)
        batches = []
        for menu, listed in numbers.items():
            turns = np.array([[event.turn for event in groups[number].events] for number in listed], np.int64)
            starts = PHASES * turns[:, :, None] + np.arange(SPANS)
            firsts = np.pad(starts.reshape(len(listed), -1), ((0, 0), (1, 0)))
            lasts = np.pad(firsts[:, 1:], ((0, 0), (0, 1)), constant_values=len(counted))
            batches.append(MenuGroups(menu, np.array(listed), firsts, lasts))
        return cls(tuple(batches), counted, len(groups))

    @property
    def instants(self) -> int:
        """Return the number of instants of an iteration."""
        return len(self.counted)

    @property
    def most(self) -> int:
        """Return the bytes that move if every group takes the way that moves the most."""
        return sum(int(batch.menu.moved.max()) * len(batch.numbers) for batch in self.batches)

    def moved(self, chosen: Counts) -> int:
        """Return the bytes that move."""
        return int(self._strung.moved[self._strung.ways + chosen].sum())

    def live(self, chosen: Counts) -> Counts:
        """Return the bytes that are live on all workers at every instant, 0 for those that do not count."""
        strung, change = self._strung, np.zeros(self.instants + 1, np.int64)
        held = strung.live[strung.rows + chosen[strung.groups] * strung.lengths]
        np.add.at(change, strung.firsts, held)
        np.subtract.at(change, strung.lasts, held)
        return np.where(self.counted, change[:-1].cumsum(), 0)

    @cached_property
    def _strung(self) -> StrungMenus:
        return StrungMenus.of(self.batches, self.groups)

    def cheapest(self, prices: Counts, unit: int) -> tuple[Counts, int]:
        """Return the best way of every group at prices on live bytes, and the sum of the costs of all.

        A byte that moves costs `unit`, and one that is live at an instant the instant's price.
        """
        sums, total = np.append(0, prices.cumsum()), 0
        chosen = np.zeros(self.groups, np.int64)
        for batch in self.batches:
            weights = sums[batch.lasts] - sums[batch.firsts]
            costs = weights @ batch.menu.live.T + unit * batch.menu.moved
            best = costs.argmin(axis=1)
            chosen[batch.numbers] = best
            total += int(costs[np.arange(len(best)), best].sum())
        return chosen, total


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
    def groups(self) -> list[StorageGroup]:
        """The groups of tensors that are held in one home."""
        return groups_of(self.graph, in_order(self.graph, self.plan.written_order))

    def offers(self, least: bool) -> Offers:
        """Return a menu for every group; if `least`, of the ways that move the least."""
        plan = self.plan
        counted = np.ones(PHASES * len(self.graph.operations), bool)
        for turn, operation in enumerate(in_order(self.graph, plan.written_order)):
            counted[PHASES * turn + COMPUTE] = not operation.bound.in_place
        strategies: Any = plan.strategies
        menus = Menus(self.graph, strategies, plan.factors, plan.space.replicate)
        present = [self._present(group) for group in self.groups]
        floors = [0] * len(present) if self.beyond else self._floors(menus, present)
        offered = [
            menus.menu(group, own, floor, least)
            for group, own, floor in zip(self.groups, present, floors, strict=True)
        ]
        return Offers.of(self.groups, offered, counted)

    def _present(self, group: StorageGroup) -> Present:
        tensor = self.graph.tensors[group.tensors[0]]
        layout = self.plan.layouts[tensor.name]
        fed = self.plan.space.feed == "batch" and tensor.role is Role.DATA
        home: Any = layout.form
        via: Any = layout.via if isinstance(layout.via, tuple) else None
        return Present(home, via, not fed and Partial() not in home)

    def _floors(self, menus: Menus, present: Sequence[Present]) -> list[int]:
        """Return the bytes of each group if all operations read homes, tied groups having the best one."""
        problem = build_problem(self.graph, space=self.plan.space)
        classes: dict[int, list[int]] = {}
        for number, group in enumerate(self.groups):
            classes.setdefault(problem.tensor_class[group.tensors[0]], []).append(number)
        floors = [0] * len(present)
        for numbers in classes.values():
            copied = problem.tensor_class[self.groups[numbers[0]].tensors[0]] in problem.fed - problem.unmoved
            held = menus.read_elsewhere if copied else menus.homes
            homes = [held(self.groups[number], present[number]) for number in numbers]
            best = int(np.sum(homes, axis=0).argmin())
            for number, moved in zip(numbers, homes, strict=True):
                floors[number] = int(moved[best])
        return floors

    def plan_of(self, offers: Offers, chosen: Counts) -> Plan:
        """Return the plan with the chosen ways; it has no bound if it moves less than plans of its space."""
        plan, layouts, copies = self.plan, dict(self.plan.layouts), {}
        for batch in offers.batches:
            for number in batch.numbers.tolist():
                group, way = self.groups[number], batch.menu.ways[chosen[number]]
                names = [self.graph.tensors[tensor].name for tensor in group.tensors]
                own = layouts[names[0]]
                home = Layout(own.shape, way.home, plan.factors, way.via)
                layouts.update(dict.fromkeys(names, home if home != own else own))
                if way.copy is not None:
                    read = [group.events[event] for event in way.readers]
                    readers = tuple(self.graph.operations[event.operation].name for event in read)
                    copies[names[read[0].member]] = (Copy(way.copy, readers),)
        found = replace(plan, layouts=layouts, copies=copies)
        totals = found.count(self.graph)
        return replace(
            found,
            cost_bytes=totals[-1],
            step_cost_bytes=tuple(after - before for before, after in pairwise(totals)),
            lower_bound_bytes=plan.lower_bound_bytes if plan.lower_bound_bytes <= totals[-1] else 0,
        )
