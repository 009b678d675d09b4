"""Choose one option for each item so that the busiest lane is occupied for the least time.

    given         items of some kinds; options of each kind, each of which loads lanes for a while; loads that
                  are there anyway
    variables     how many items of a kind take each option
    objective     the load of the busiest lane
    bound         the linear program in which items may be shared among options

Items are variables, options their servers, and lanes the directions of links. With equal lanes this is the
scheduling of jobs on machines, and the bound is at least the load over the number of lanes, and at least the
largest item. Items of a kind are equal, so only their number counts.

Branch and bound: kinds with large loads are decided first. At a node, each lane has at least what is decided
and the least that the others must add, and so has any weighted sum of lanes; the weights are the dual values
of the linear program. The search ends after `NODES` nodes. Then the gap to the bound is stated.

Implemented in: `_relaxed` (bound), `_greedy` and `_improved` (first solution), `_Search`. Guarantees:
`lower_bound <= optimum <= load`; they are equal if the search ended by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

NODES = 20_000
"""The most nodes of a search, about a second."""

TOLERANCE = 1e-9
"""The part of a load below which two loads count as equal."""


@dataclass(frozen=True, slots=True)
class Items:
    """Equal items."""

    count: int
    """Their number."""

    loads: Reals
    """`[option, lane]`: for how long an item that takes an option occupies each lane."""


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Options for all items."""

    load: float
    """The load of the busiest lane."""

    lower_bound: float
    """Less than this no choice has."""

    options: tuple[tuple[int, ...], ...]
    """For each kind the option of every item, in ascending order."""

    shares: tuple[Reals, ...]
    """For each kind the part of its items that takes each option in the linear program."""

    nodes: int
    """The number of nodes of the search."""

    @property
    def gap(self) -> float:
        """The part of the load by which the optimum may be lower."""
        return 0.0 if self.load <= 0 else max(0.0, 1 - self.lower_bound / self.load)


def choose(kinds: Sequence[Items], base: Reals, nodes: int = NODES) -> ServerChoice:
    """Choose the option of each item. `base` has the load of each lane without any item."""
    order = sorted(range(len(kinds)), key=lambda kind: (-float(kinds[kind].loads.min(0).max()), kind))
    order.sort(key=lambda kind: -float(kinds[kind].loads.max()))
    ordered = [kinds[kind] for kind in order]
    bound, weights, shares = _relaxed(ordered, base)
    start = _improved(ordered, base, _greedy(ordered, base))
    search = _Search(ordered, base, weights, bound, start, nodes)
    best = search.run()
    proven = search.ended
    load = _load(ordered, base, best)
    options: list[tuple[int, ...]] = [()] * len(kinds)
    spread: list[Reals] = [np.zeros(0)] * len(kinds)
    for place, kind in enumerate(order):
        options[kind] = tuple(sorted(best[place]))
        spread[kind] = shares[place]
    return ServerChoice(
        load, load if proven else min(bound, load), tuple(options), tuple(spread), search.nodes
    )


def _load(kinds: Sequence[Items], base: Reals, options: Sequence[Sequence[int]]) -> float:
    loads = base.copy()
    for kind, chosen in zip(kinds, options, strict=True):
        loads += kind.loads[list(chosen)].sum(axis=0)
    return float(loads.max(initial=0.0))


def _relaxed(kinds: Sequence[Items], base: Reals) -> tuple[float, Reals, list[Reals]]:
    """Return the optimum of the linear program, as its dual values prove it, those values, and the shares."""
    from scipy.optimize import linprog

    lanes = len(base)
    weights = np.full(lanes, 1 / max(lanes, 1))
    shares = [np.full(len(kind.loads), 1 / len(kind.loads)) for kind in kinds]
    if kinds and lanes:
        columns = np.concatenate([kind.count * kind.loads for kind in kinds]).T
        scale = max(float(columns.max()), float(base.max()), 1e-12)
        above = np.concatenate([columns / scale, -np.ones((lanes, 1))], axis=1)
        ends = np.cumsum([len(kind.loads) for kind in kinds])
        equal = np.zeros((len(kinds), columns.shape[1] + 1))
        for number, (end, kind) in enumerate(zip(ends, kinds, strict=True)):
            equal[number, end - len(kind.loads) : end] = 1
        costs = np.zeros(columns.shape[1] + 1)
        costs[-1] = 1
        found = linprog(costs, above, -base / scale, equal, np.ones(len(kinds)), method="highs")
        if found.status == 0:
            duals = np.maximum(-np.asarray(found.ineqlin.marginals), 0)
            if duals.sum() > 0:
                weights = duals / duals.sum()
            shares = np.split(np.asarray(found.x[:-1]), ends[:-1])
    bound = float(weights @ base) + sum(kind.count * float((kind.loads @ weights).min()) for kind in kinds)
    least = base + sum((kind.count * kind.loads.min(axis=0) for kind in kinds), np.zeros(lanes))
    largest = [(base + kind.loads).max(axis=1, initial=0.0).min() for kind in kinds]
    return max(bound, float(least.max(initial=0.0)), *map(float, largest)), weights, shares


def _greedy(kinds: Sequence[Items], base: Reals) -> list[list[int]]:
    """Give each item the option after which the busiest lane is least loaded, then all lanes together."""
    loads, found = base.copy(), []
    for kind in kinds:
        chosen = []
        for _ in range(kind.count):
            after = loads + kind.loads
            option = int(np.lexsort((after.sum(axis=1), after.max(axis=1)))[0])
            loads = after[option]
            chosen.append(option)
        found.append(chosen)
    return found


def _improved(kinds: Sequence[Items], base: Reals, options: list[list[int]]) -> list[list[int]]:
    """Move items from option to option as long as the busiest lane gets less."""
    loads = base + sum((k.loads[c].sum(axis=0) for k, c in zip(kinds, options, strict=True)), 0 * base)
    improving = True
    while improving:
        improving = False
        for kind, chosen in zip(kinds, options, strict=True):
            for place, option in enumerate(chosen):
                after = loads - kind.loads[option] + kind.loads
                peaks = after.max(axis=1, initial=0.0)
                other = int(peaks.argmin())
                if peaks[other] < peaks[option] * (1 - TOLERANCE):
                    chosen[place], loads = other, after[other]
                    improving = True
    return options


class _Search:
    """Decides kinds one after the other, items of a kind in ascending order of their options."""

    def __init__(
        self,
        kinds: Sequence[Items],
        base: Reals,
        weights: Reals,
        bound: float,
        best: list[list[int]],
        nodes: int,
    ) -> None:
        self._kinds = kinds
        self._base = base
        self._weights = weights
        self._bound = bound
        self._best = best
        self._least = _load(kinds, base, best)
        self._most = nodes
        self.nodes = 0
        """The nodes visited."""
        self.ended = False
        """Whether the search ended by itself, or met its bound."""
        self._items = [kind for kind, each in enumerate(kinds) for _ in range(each.count)]
        lanes = len(base)
        lowest = np.array([kinds[kind].loads.min(axis=0) for kind in self._items]).reshape(-1, lanes)
        priced = np.array([(kinds[kind].loads @ weights).min() for kind in self._items])
        self._rest = np.concatenate([lowest[::-1].cumsum(axis=0)[::-1], np.zeros((1, lanes))])
        self._priced = np.concatenate([priced[::-1].cumsum()[::-1], [0.0]])

    def run(self) -> list[list[int]]:
        """Return the best options of all items, kind by kind."""
        stack: list[tuple[tuple[int, ...], Reals]] = [((), self._base)]
        while stack and self._least > self._bound * (1 + TOLERANCE):
            if self.nodes >= self._most:
                return self._best
            self.nodes += 1
            chosen, loads = stack.pop()
            depth = len(chosen)
            if depth == len(self._items):
                self._note(chosen, loads)
                continue
            stack += self._children(chosen, loads)
        self.ended = True
        return self._best

    def _children(self, chosen: tuple[int, ...], loads: Reals) -> list[tuple[tuple[int, ...], Reals]]:
        """Return the nodes below one that may be better than the best, the most promising last."""
        depth = len(chosen)
        kind = self._items[depth]
        again = depth > 0 and self._items[depth - 1] == kind
        first = chosen[-1] if again else 0
        after = loads + self._kinds[kind].loads[first:]
        bounds = np.maximum(
            (after + self._rest[depth + 1]).max(axis=1),
            after @ self._weights + self._priced[depth + 1],
        )
        better = np.flatnonzero(bounds < self._least * (1 - TOLERANCE))
        by_bound = better[np.lexsort((after[better].max(axis=1), bounds[better]))[::-1]]
        return [((*chosen, first + int(option)), after[option]) for option in by_bound]

    def _note(self, chosen: tuple[int, ...], loads: Reals) -> None:
        load = float(loads.max(initial=0.0))
        if load < self._least:
            self._least = load
            self._best = [[] for _ in self._kinds]
            for kind, option in zip(self._items, chosen, strict=True):
                self._best[kind].append(option)
