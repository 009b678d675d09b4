"""Let what moves between workers go in several hops, where the links of a machine differ.

    made  ->  sums of groups  ->  home  ->  shares of groups  ->  what a reader needs

A tensor goes from the tasks that make it to its home, and from there to its readers. On both ways it may stop
at one more layout, for each level of the machine:

    sums of groups      each group sums its partial results first, so that one term leaves it
    shares of groups    each group shares out what its readers need, so that all of it enters the group once;
                        or one worker of each group has it, which takes fewer messages

The home is that of the plan, or with the tasks that make it, or shared out over all its holders. Every
tensor takes the shortest way. A hop takes as long as its busiest lane, with all else idle. That ignores what
overlaps, so ways are proposals: those of equal tensors are tried together, and kept if an iteration takes
less time. The plan language has all of it: sums are stops on the way home, and shares are copies that readers
read.
Implemented in: `hop_seconds.Hops` (a hop), `SeveralHops._shortest` (the way of tensors), `in_several_hops`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...analyzer.indices.region import Region, to_region
from ...dataflow.graph import Graph, Operation, Role, Tensor
from ...errors import PlanError
from ...machines.machine import Machine
from ...programs.cover import elements
from ..costs.movement import Movements, WorkerRegions
from ..layouts.copies import Copy
from ..layouts.forms import Form, Parts
from ..layouts.shared_out import shared_out
from ..layouts.step_split import Layout
from ..plans.plan import Plan
from ..plans.recounted import recounted

if TYPE_CHECKING:
    from .hop_seconds import Groups

TRIED = 8
"""The most kinds of tensors whose ways are tried one after the other."""


def in_several_hops(graph: Graph, plan: Plan, machine: Machine, seconds: Callable[[Plan], float]) -> Plan:
    """Return the plan found with the same strategies whose iteration takes least, by `seconds`.

    `seconds` is given plans whose bytes are not counted again.
    Tensors that have copies or terms at home stay as they are, and so does a plan for a machine whose devices
    are in one group.
    """
    found = SeveralHops(graph, machine, plan.workers, plan.factors).faster(plan, seconds)
    return plan if found is plan else recounted(graph, found)


@dataclass(frozen=True, slots=True)
class _Way:
    """The way of a tensor."""

    home: Form
    """Its home."""

    via: Form | None
    """Where its partial results are summed on their way there, if they are."""

    copies: tuple[tuple[Form, tuple[int, ...]], ...]
    """The copies that readers read instead of the home, with the places of these among all readers."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A way for tensors that are made, held and read alike."""

    way: _Way
    """The way."""

    tensors: Sequence[_Moving]
    """The tensors."""

    saved: float
    """The seconds that all of them save, if nothing overlaps."""


@dataclass(frozen=True, slots=True)
class _Moving:
    """A tensor that may take another way."""

    names: tuple[str, ...]
    """Its name, and those of the tensors that overwrite it."""

    readers: tuple[str, ...]
    """The names of the operations that read it."""


def _changed(plan: Plan, proposals: Iterable[_Proposal]) -> Plan:
    """Return a plan with other ways of tensors, whose bytes are not counted again."""
    layouts, copies = dict(plan.layouts), dict(plan.copies)
    for proposal in proposals:
        way = proposal.way
        homes: dict[Layout, Layout] = {}
        for tensor in proposal.tensors:
            old = layouts[tensor.names[0]]
            if old not in homes:
                homes[old] = replace(old, form=way.home, via=way.via)
            layouts.update(dict.fromkeys(tensor.names, homes[old]))
            if way.copies:
                copies[tensor.names[0]] = tuple([
                    Copy(form, tuple([tensor.readers[place] for place in places]))
                    for form, places in way.copies
                ])  # fmt: skip
    return replace(plan, layouts=layouts, copies=copies, unproven=())


@dataclass(frozen=True, slots=True)
class _Kind:
    """The facts that decide the ways of tensors."""

    layout: Layout
    """Their home in the plan."""

    made: WorkerRegions | None
    """Where they are made; None if no operation makes them."""

    needs: tuple[WorkerRegions, ...]
    """The regions that each of their readers needs."""

    fixed: bool
    """Whether the home may not be another one."""

    itemsize: int
    """The bytes of an element."""


class SeveralHops:
    """The ways that the tensors of a graph may take in plans with the same factors, each found once."""

    def __init__(self, graph: Graph, machine: Machine, workers: int, factors: tuple[int, ...]) -> None:
        from .hop_seconds import Hops

        self.movements = Movements(workers, factors)
        """The movements of these plans."""
        self._graph = graph
        self._hops = Hops(machine, workers)
        self._ways: dict[_Kind, tuple[_Way | None, float]] = {}
        """The shortest way of each kind of tensors, and what it saves."""
        self._layouts: dict[tuple[object, ...], Layout | None] = {}
        """The layouts that were checked, by shape and form; None for those that do not fit."""
        self._copies: dict[tuple[WorkerRegions, Groups, int], tuple[Form, ...]] = {}
        """Copies inside groups, by the regions that readers need, the groups, and a place in them."""

    def faster(self, plan: Plan, seconds: Callable[[Plan], float]) -> Plan:
        """Return the plan of `in_several_hops`, whose bytes are not counted again."""
        proposals = self._proposals(plan)
        best, least = plan, seconds(plan)
        if not proposals:
            return plan
        together = _changed(plan, proposals)
        for number in range(min(len(proposals), TRIED)):
            made = _changed(best, proposals[number : number + 1])
            taken = seconds(made)
            if taken < least:
                best, least = made, taken
        return together if seconds(together) < least else best

    def _proposals(self, plan: Plan) -> list[_Proposal]:
        """Return the ways that save time, if nothing overlaps, those that save most first."""
        if not self._hops.levels:
            return []
        alike: dict[_Kind, list[_Moving]] = {}
        for kind, tensor in self._moving(plan):
            alike.setdefault(kind, []).append(tensor)
        found = []
        for kind, tensors in alike.items():
            if kind not in self._ways:
                self._ways[kind] = self._shortest(kind)
            way, saved = self._ways[kind]
            if way is not None:
                found.append(_Proposal(way, tensors, saved * len(tensors)))
        return sorted(found, key=lambda proposal: -proposal.saved)

    def _moving(self, plan: Plan) -> Iterator[tuple[_Kind, _Moving]]:
        """Yield tensors with what their ways depend on."""
        graph = self._graph
        readers: dict[int, list[tuple[Operation, tuple[str, ...]]]] = {}
        makers: dict[int, list[WorkerRegions]] = {}
        followers: dict[int, list[Tensor]] = {}
        for tensor in graph.tensors:
            if tensor.alias is not None:
                followers.setdefault(tensor.alias, []).append(tensor)
        for operation in graph.operations:
            by_tensor: dict[int, list[str]] = {}
            for place, name in operation.bound.read_places:
                by_tensor.setdefault(operation.inputs[place], []).append(name)
            for index, names in by_tensor.items():
                readers.setdefault(index, []).append((operation, tuple(names)))
            regions = self.movements.operator(operation.bound, plan.strategies[operation.name])
            for output, index in enumerate(operation.outputs):
                makers.setdefault(index, []).append(regions.outputs[output])
        for tensor in graph.tensors:
            reading = readers.get(tensor.index, [])
            alone = all(len(names) == 1 for _, names in reading)
            if tensor.alias is not None or tensor.name in plan.copies or not reading or not alone:
                continue
            layout = plan.layouts[tensor.name]
            if self.movements.layout(layout).terms > 1:
                continue
            others = followers.get(tensor.index, [])
            stays = any(each.index in readers or each.index in followers for each in others)
            made = [regions for each in (tensor, *others) for regions in makers.get(each.index, [])]
            needs = tuple([
                self.movements.operator(operation.bound, plan.strategies[operation.name]).inputs[name]
                for operation, (name,) in reading
            ])  # fmt: skip
            fixed = stays or len(made) != 1 or tensor.role is Role.DATA
            moving = tensor.name, *(each.name for each in others)
            kind = _Kind(layout, made[0] if len(made) == 1 else None, needs, fixed, tensor.itemsize)
            yield kind, _Moving(moving, tuple([operation.name for operation, _ in reading]))

    def _shortest(self, kind: _Kind) -> tuple[_Way | None, float]:
        """Return the shortest way and what it saves; None if that is the plan's own."""
        layout, readers = kind.layout, Counter(kind.needs)
        held = self.movements.layout(layout)
        present = self._to_home(kind, layout, layout.via)
        present += sum(count * self._seconds(kind, held, need) for need, count in readers.items())
        best, least = None, present
        for home in [layout] if kind.fixed else [layout, *self._homes(kind)]:
            vias = [home.via, *self._sums(kind, home)]
            total, via = min(
                ((self._to_home(kind, home, via), via) for via in vias), key=lambda each: each[0]
            )
            copies = []
            for need, count in readers.items():
                taken, form = self._to_readers(kind, home, need, count)
                total += taken
                if form is not None:
                    copies.append((form, tuple([n for n, each in enumerate(kind.needs) if each is need])))
            if total < least:
                best, least = _Way(home.form, via, tuple(copies)), total
        return best, present - least

    def _seconds(
        self, kind: _Kind, source: WorkerRegions, target: WorkerRegions, made: bool = False
    ) -> float:
        return self._hops.seconds(source, target, kind.itemsize, made)

    def _to_home(self, kind: _Kind, home: Layout, via: Form | None) -> float:
        """Return the time of the hops from tasks to a home."""
        made, held = kind.made, self.movements.layout(home)
        if made is None:
            return 0.0
        if via is None or made.terms == 1:
            return self._seconds(kind, made, held, made=True)
        stop = self.movements.layout(replace(home, form=via, via=None))
        return self._seconds(kind, made, stop, made=True) + self._seconds(kind, stop, held, made=True)

    def _to_readers(
        self, kind: _Kind, home: Layout, need: WorkerRegions, count: int
    ) -> tuple[float, Form | None]:
        """Return the time of the hops from a home to equal readers, and the copy that they read, if any."""
        held = self.movements.layout(home)
        best: tuple[float, Form | None] = count * self._seconds(kind, held, need), None
        for groups in self._hops.levels:
            for form in self._inside(need, groups, held.workers[0]):
                copy = self._valid(home, form)
                if copy is None:
                    continue
                between = self.movements.layout(copy)
                taken = self._seconds(kind, held, between) + count * self._seconds(kind, between, need)
                if taken < best[0]:
                    best = taken, copy.form
        return best

    def _inside(self, need: WorkerRegions, groups: Groups, holder: int) -> tuple[Form, ...]:
        """Return what readers need, shared out inside each group, or by one worker of each."""
        place = groups[:holder].count(groups[holder])
        key = need, groups, place
        if key not in self._copies:
            self._copies[key] = _shares(need, groups), *_on_one(need, groups, place)
        return self._copies[key]

    def _homes(self, kind: _Kind) -> list[Layout]:
        """Return other homes: shared out over all holders, and where the tensor is made."""
        found, made = kind.layout.expanded, kind.made
        regions = shared_out(found.boxes)
        forms = [Parts(tuple(zip(found.workers.tolist(), map(to_region, regions), strict=True)))]
        if made is not None and made.terms == 1:
            forms.append(Parts(tuple(zip(made.workers, made.regions, strict=True))))
        valid = [self._valid(kind.layout, form) for form in forms]
        return [home for home in valid if home is not None]

    def _sums(self, kind: _Kind, home: Layout) -> list[Form]:
        """Return, for each level, where groups sum their terms before they reach a home.

        The parts of the home are dealt to workers of all groups that have the same place in their groups.
        """
        made = kind.made
        if made is None or made.terms == 1:
            return []
        held = self.movements.layout(home)
        parts = dict(zip(held.regions, held.workers, strict=True))
        found: list[Form] = []
        for groups in self._hops.levels:
            members = _members(groups)
            each, uneven = divmod(made.terms, len(members))
            numbers = {group: number for number, group in enumerate(members)}
            own = [numbers[groups[worker]] for worker in made.workers]
            if uneven or own != [term // each for term in made.term]:
                continue
            place = {worker: number for listed in members.values() for number, worker in enumerate(listed)}
            form = Parts(tuple([
                (listed[place[worker] % len(listed)], region, numbers[group])
                for group, listed in members.items()
                for region, worker in parts.items()
            ]))  # fmt: skip
            if self._valid(home, form) is not None:
                found.append(form)
        return found

    def _valid(self, like: Layout, form: Form) -> Layout | None:
        """Return a layout with another form; None if it does not fit."""
        key = like.shape, form
        if key not in self._layouts:
            layout = Layout(like.shape, form, like.factors)
            try:
                layout.check("tensor")
            except PlanError:
                self._layouts[key] = None
            else:
                self._layouts[key] = layout
        return self._layouts[key]


def _on_one(need: WorkerRegions, groups: Groups, place: int) -> list[Form]:
    """Return what readers need on one worker of each group, the one at a place.

    Returns nothing if the readers of a group need different parts.
    """
    needed: dict[int, set[Region]] = {}
    for worker, region in zip(need.workers, need.regions, strict=True):
        if elements(region):
            needed.setdefault(groups[worker], set()).add(region)
    if any(len(regions) > 1 for regions in needed.values()):
        return []
    members = _members(groups)
    holders = {group: members[group][place % len(members[group])] for group in needed}
    return [Parts(tuple([(holders[group], region) for group, (region,) in needed.items()]))]


def _shares(need: WorkerRegions, groups: Groups) -> Form:
    """Return what readers need, shared out inside each group."""
    parts: list[tuple[int, Region]] = []
    for members in _members(groups).values():
        own = [place for place, worker in enumerate(need.workers) if worker in members]
        if own:
            boxes = np.array([need.regions[place] for place in own], np.int64).reshape(len(own), -1, 2)
            shared = map(to_region, shared_out(boxes))
            parts += [(need.workers[place], region) for place, region in zip(own, shared, strict=True)]
    return Parts(tuple([(worker, region) for worker, region in parts if elements(region)]))


def _members(groups: Groups) -> dict[int, list[int]]:
    """Return the workers of each group."""
    found: dict[int, list[int]] = {}
    for worker, group in enumerate(groups):
        found.setdefault(group, []).append(worker)
    return found
