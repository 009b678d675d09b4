"""Strategies that follow from the traffic of links: servers by branch and bound, parts, groups of a chain.

    reduced       all gradients are reduced; groups are cut so that the last one is done first
    served        every variable has one server, see `servers`
    cut           large variables have a part on every server, as large as a linear program says, so that slow
                  links get small parts; others are reduced or served
    eliminated    each variable is reduced, cut or served, whichever takes the least time by itself; those
                  that are reduced next to each other share a latency. Exact for the sum of these times
    sparse        sparse variables are cut or served, others are reduced

All keep what they fetched, and run updates last or in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from ....solvers.elimination import CostTable, eliminate
from ..strategy import AllReduce, Partition, Server, Synchronisation, SyncStrategy
from ..variables import TrainedVariable
from .chain import cut_chain
from .model import SyncModel
from .servers import Items, Reals, ServerChoice, choose
from .traffic import sync_traffic

SMALL = (0, 1 << 14, 1 << 18)
"""Bytes of a variable below which it stays whole."""

CHUNKS = (1, 8, 32, 128)
"""Sizes of groups that are tried besides those of the chain."""

NEAR = 0.01
"""The part by which the busiest lane may be loaded more than it must be, for shares that are more equal."""

REDUCED = Synchronisation((AllReduce(),))


@dataclass(frozen=True, slots=True)
class FoundStrategy:
    """A strategy, and how it was found."""

    name: str
    """How it was found."""

    strategy: SyncStrategy
    """The strategy."""


class Finder:
    """Makes strategies for a graph on a machine."""

    def __init__(self, model: SyncModel) -> None:
        self._model = model
        self._workers = model.pairs.workers
        self._variables = model.variables
        self._shares = self._byte_shares()
        self._cuts = {each.tensor.name: self._cut(each) for each in self._variables}
        self.served = self._served({})
        """The servers of all variables, if each has one."""
        self.by_servers = self._by_servers({}, self.served)
        """The synchronisation of each variable by its server."""

    def __iter__(self) -> Iterator[FoundStrategy]:
        """Yield strategies, with groups of every size and updates in either order."""
        for name, chosen in self._layouts():
            for grouping, groups in self._groupings(chosen):
                uneven = bool(grouping) and np.ptp(self._shares) > 0
                for last, shares in product(
                    (True, False), (None, tuple(self._shares.tolist()))[: 1 + uneven]
                ):
                    labels = (name, grouping, "updates last" if last else "", "in shares" if shares else "")
                    label = ", ".join(filter(None, labels))
                    yield FoundStrategy(label, SyncStrategy(groups, updates_last=last, shares=shares))

    def _layouts(self) -> Iterator[tuple[str, Mapping[str, Synchronisation]]]:
        names = [each.tensor.name for each in self._variables]
        yield "reduced", dict.fromkeys(names, REDUCED)
        yield "served", self.by_servers
        cut_before: set[tuple[str, ...]] = set()
        for small in SMALL:
            cut = {
                each.tensor.name: how
                for each in self._variables
                if each.tensor.nbytes >= small and (how := self._cuts[each.tensor.name]) is not None
            }
            if not cut or tuple(cut) in cut_before:
                continue
            cut_before.add(tuple(cut))
            over = f"cut from {small:,} bytes on"
            yield f"{over}, others reduced", {name: cut.get(name, REDUCED) for name in names}
            if len(cut) < len(names):
                yield f"{over}, others served", {**self._by_servers(cut, self._served(cut)), **cut}
        yield "eliminated", self._eliminated()
        sparse = {each.tensor.name for each in self._variables if each.sparse}
        if sparse and len(sparse) < len(names):
            for name, of in (("cut", self._cuts), ("served", self.by_servers)):
                found = {each: (of[each] or REDUCED) if each in sparse else REDUCED for each in names}
                yield f"sparse {name}, others reduced", found

    def _groupings(
        self, chosen: Mapping[str, Synchronisation]
    ) -> Iterator[tuple[str, dict[str, Synchronisation]]]:
        """Yield the same choices with groups of the chain, and of equal numbers of variables."""
        waiting = [
            number
            for number, each in enumerate(self._variables)
            if chosen[each.tensor.name] == REDUCED and self._model.can_wait(number)
        ]
        made = self._model.ready_nanoseconds
        waiting.sort(key=lambda number: (made[number], number))
        rest = set(range(len(self._variables))) - set(waiting)
        if not waiting:
            yield "", dict(chosen)
            return
        groupings = {"groups of a chain": self._chain(waiting, made)} if self._model.merged else {}
        for size in CHUNKS if self._model.merged else CHUNKS[:1]:
            groupings[f"groups of {size}"] = [place // size for place in range(len(waiting))]
        seen: set[tuple[int, ...]] = set()
        for name, groups in groupings.items():
            if tuple(groups) in seen:
                continue
            seen.add(tuple(groups))
            number_of = dict(zip(waiting, groups, strict=True))
            alone = max(groups) + 1
            found = {}
            for number, each in enumerate(self._variables):
                how = chosen[each.tensor.name]
                if how == REDUCED:
                    group = alone + number if number in rest else number_of[number]
                    how = Synchronisation((AllReduce(group),))
                found[each.tensor.name] = how
            yield name, found

    def _chain(self, waiting: Sequence[int], made: Sequence[float]) -> list[int]:
        """Return the groups of gradients in the order in which they are made."""
        empty, full = (self._all_reduce_time(nbytes) for nbytes in (1.0, 1e6))
        per_byte = (full - empty) / 1e6
        nbytes = [float(self._variables[number].tensor.nbytes) for number in waiting]
        starts = 2 * float(self._model.start.max())
        return cut_chain([made[number] for number in waiting], nbytes, empty, per_byte, starts)[1]

    def _all_reduce_time(self, nbytes: float) -> float:
        """Return how long the busiest lane takes to reduce a number of bytes in two hops."""
        each = (1 - np.eye(self._workers)) * nbytes / self._workers
        return 2 * float(self._model.pairs.loads(self._model.pairs.of(each)).max(initial=0.0))

    def _loads(self, variable: TrainedVariable, how: Synchronisation) -> Reals:
        """Return for how long each lane is occupied, if what is fetched is kept."""
        pairs, moved = self._model.pairs, sync_traffic(variable, how, self._workers)
        hops = (moved.gradient, moved.spread, moved.fetched)
        return sum((pairs.loads(pairs.of(each)) for each in hops), np.zeros(pairs.occupies.shape[0]))

    def _served(self, cut: Mapping[str, Synchronisation]) -> ServerChoice:
        """Choose a server for each variable that is not cut."""
        base = np.zeros(self._model.pairs.occupies.shape[0])
        for each in self._variables:
            if each.tensor.name in cut:
                base += self._loads(each, cut[each.tensor.name])
        kinds = [Items(len(members), self._server_loads(members[0])) for members in self._kinds(cut).values()]
        return choose(kinds, base)

    def _kinds(self, cut: Mapping[str, Synchronisation]) -> dict[int, list[TrainedVariable]]:
        """Return the variables that are not cut, those with as many bytes together."""
        found: dict[int, list[TrainedVariable]] = {}
        for each in self._variables:
            if each.tensor.name not in cut:
                found.setdefault(each.tensor.nbytes, []).append(each)
        return found

    def _server_loads(self, variable: TrainedVariable) -> Reals:
        return np.array([self._loads(variable, _server(worker)) for worker in range(self._workers)])

    def _by_servers(
        self, cut: Mapping[str, Synchronisation], choice: ServerChoice
    ) -> dict[str, Synchronisation]:
        found = {}
        for members, options in zip(self._kinds(cut).values(), choice.options, strict=True):
            for variable, worker in zip(members, options, strict=True):
                found[variable.tensor.name] = _server(worker)
        return {
            each.tensor.name: found[each.tensor.name] for each in self._variables if each.tensor.name in found
        }

    def _byte_shares(self) -> Reals:
        """Return the share of all bytes that each worker reduces if bytes can be cut anywhere."""
        total = float(sum(each.tensor.nbytes for each in self._variables))
        pairs, loads = self._model.pairs, []
        for worker in range(self._workers):
            moved = np.zeros((self._workers, self._workers))
            moved[:, worker] = total
            moved[worker, worker] = 0
            loads.append(pairs.loads(moved * pairs.per_byte) + pairs.loads(moved.T * pairs.per_byte))
        return even_shares(np.array(loads))

    def _cut(self, variable: TrainedVariable) -> Synchronisation | None:
        """Cut the longest dimension in proportion to the shares; None if it has fewer places than parts."""
        shape = variable.tensor.shape
        if not shape or max(shape) < self._workers:
            return None
        axis = int(np.argmax(shape))
        ends = np.rint(np.cumsum(self._shares) * shape[axis]).astype(int)
        ends[-1] = shape[axis]
        bounds = [0, *ends.tolist()]
        parts = [(w, up) for w, (low, up) in enumerate(pairwise(bounds)) if up > low]
        servers = tuple(Server(worker, True) for worker, _ in parts)
        if len(parts) == 1:
            return Synchronisation(servers)
        return Synchronisation(servers, Partition(axis, tuple(up for _, up in parts[:-1])))

    def _eliminated(self) -> dict[str, Synchronisation]:
        """Return for each variable what takes the least time alone, in nanoseconds of its busiest lane."""
        options, tables = [], []
        latency = round(self._all_reduce_time(1.0))
        for number, each in enumerate(self._variables):
            cut = self._cuts[each.tensor.name]
            own = [REDUCED, *([] if cut is None else [cut]), *map(_server, range(self._workers))]
            times = [round(float(self._loads(each, how).max(initial=0.0))) for how in own]
            times[0] = max(times[0] - latency, 0)
            options.append(own)
            tables.append(CostTable((number,), np.array(times, np.int64)))
            opens = np.zeros(len(own), np.int64)
            opens[0] = latency
            if number == 0:
                tables.append(CostTable((0,), opens))
            else:
                pair = np.tile(opens, (len(options[number - 1]), 1))
                pair[0] = 0
                tables.append(CostTable((number - 1, number), pair))
        chosen = eliminate([len(own) for own in options], tables).assignment
        return {
            each.tensor.name: own[option]
            for each, own, option in zip(self._variables, options, chosen, strict=True)
        }

    def improved(self, found: FoundStrategy, trials: int) -> FoundStrategy:
        """Change one variable after the other, the largest first, as long as the model says it is faster."""
        best, seconds = found.strategy, self._model.seconds(found.strategy)
        for variable in sorted(self._variables, key=lambda each: (-each.tensor.nbytes, each.tensor.index)):
            name = variable.tensor.name
            cut = self._cuts[name]
            for how in (REDUCED, *([] if cut is None else [cut]), *map(_server, range(self._workers))):
                if trials == 0 or how == best.variables[name]:
                    continue
                trials -= 1
                changed = replace(best, variables={**best.variables, name: how})
                taken = self._model.seconds(changed)
                if taken < seconds:
                    best, seconds = changed, taken
        name = found.name if best is found.strategy else f"{found.name}, improved"
        return FoundStrategy(name, best)


def even_shares(loads: Reals) -> Reals:
    """Share something among workers, the busiest lane loaded about as little as it can be.

    `loads` are those of each lane if a worker has all, `[worker, lane]`. Of such shares those are taken whose
    largest one is least.
    """
    from scipy.optimize import linprog

    workers, lanes = loads.shape
    even = np.full(workers, 1 / workers)
    scale = max(float(loads.max(initial=0.0)), 1e-12)
    table = loads / scale
    total, above = np.ones((1, workers + 1)), -np.ones((lanes, 1))
    total[0, -1] = 0
    last = np.zeros(workers + 1)
    last[-1] = 1
    least = linprog(last, np.hstack([table.T, above]), np.zeros(lanes), total, [1.0], method="highs")
    if least.status or (even @ table).max() <= least.fun * (1 + NEAR):
        return even
    capped = np.hstack([table.T, np.zeros((lanes, 1))])
    below = np.hstack([np.eye(workers), -np.ones((workers, 1))])
    limits = np.concatenate([np.full(lanes, least.fun * (1 + NEAR)), np.zeros(workers)])
    found = linprog(last, np.vstack([capped, below]), limits, total, [1.0], method="highs")
    return even if found.status else np.round(np.maximum(found.x[:-1], 0), 6)


def _server(worker: int) -> Synchronisation:
    return Synchronisation((Server(worker, True),))
