"""The search `auto`: many strategies by the fast model, the best of them and all builders by simulation.

    candidates    the strategies of all builders, and the best of those that `found` makes
    score         the simulated time of an iteration
    result        the candidate with the least score; of equal ones the first

So the result is never behind a builder, on the simulator's terms. The fast model only decides which
strategies are simulated. Servers have a proven gap, see `servers`; the time as a whole has no bound.

Implemented in: `search_strategies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from .....dataflow.graph import Graph
from .....errors import PlanError
from .....machines.machine import Machine
from ..builders import BUILDERS, all_reduce, poseidon
from ..strategy import AllReduce, Synchronisation, SyncStrategy
from .candidates import Candidates, Lower, SyncCandidate
from .found import Finder, FoundStrategy
from .model import SyncModel
from .sparse_variants import sparse_variants

SIMULATED = 6
"""The number of strategies of the finder that are simulated."""

IMPROVING_TRIALS = 200
"""The most changes of single variables that the fast model tries."""

IMPROVING_JOBS = 4_000_000
"""The most jobs of all these trials, counted as those of plain all-reduces: about ten seconds."""

PLAIN = "plain all-reduce"
"""The name of all-reduces, each variable's by itself, with which others are compared."""


@dataclass(frozen=True, slots=True)
class SyncSearch:
    """The outcome of a search."""

    best: SyncCandidate
    """The fastest candidate."""

    plain: SyncCandidate
    """All-reduces of single variables."""

    candidates: tuple[SyncCandidate, ...]
    """All candidates, the fastest first."""

    predicted: int
    """The number of strategies that the fast model has seen."""

    server_gap: float
    """The part by which the busiest lane of the best servers may be loaded less, if all have servers."""


def search_strategies(
    graph: Graph,
    workers: int,
    machine: Machine,
    lower: Lower,
    *,
    merged: bool = True,
    rewrites: bool = True,
) -> SyncSearch:
    """Search a strategy of the least simulated time.

    If not `merged`, every transfer has its own messages, as engines have today, and groups change nothing. If
    not `rewrites`, the plans are for this graph, and no lookups are masked.
    Raises PlanError if data parallelism has no plan, and MachineError as `tofu.simulate`.
    """
    machine.check_workers(workers)
    trying = Candidates(graph, workers, machine, lower, merged)
    reduced = all_reduce(graph, workers, chunk_size=1)
    plain, timeline = trying.simulated(PLAIN, reduced)
    model = SyncModel(graph, machine, timeline, merged)
    candidates = [plain]
    tried = {_key(reduced)}
    for name, build in BUILDERS.items():
        try:
            candidates.append(trying.simulated(name, build(graph, workers), model)[0])
        except PlanError:
            continue
    finder = Finder(model)
    found = sorted(((model.seconds(each.strategy), n, each) for n, each in enumerate(finder)), key=_rank)
    count = len(found)
    trials = min(IMPROVING_TRIALS, IMPROVING_JOBS // max(len(timeline.work.kinds), 1))
    if found:
        better = finder.improved(found[0][2], trials)
        found.insert(0, (model.seconds(better.strategy), count, better))
    for _, _, each in found:
        key = _key(each.strategy)
        if key not in tried and len(tried) <= SIMULATED:
            tried.add(key)
            candidates.append(trying.simulated(each.name, each.strategy, model)[0])
    candidates += _variants(graph, workers, trying, candidates)
    fastest = min(candidates, key=lambda each: each.seconds)
    candidates += sparse_variants(trying, fastest, finder.by_servers, rewrites)
    ranked = tuple(sorted(candidates, key=lambda each: each.seconds))
    return SyncSearch(ranked[0], plain, ranked, count + trials, finder.served.gap)


def _variants(
    graph: Graph, workers: int, trying: Candidates, candidates: Sequence[SyncCandidate]
) -> Iterator[SyncCandidate]:
    """Yield the fastest candidate that sums all gradients at once, in two levels, with factors, with both.

    The fast model knows neither. Factors are where Poseidon has them, and levels are those of the machine.
    """
    reduced = [c for c in candidates if any(map(_is_flat, c.strategy.variables.values()))]
    flat = [c for c in reduced if not any(how.factors for how in c.strategy.variables.values())]
    if not flat:
        return
    best = min(flat, key=lambda each: each.seconds)
    few = {name: how for name, how in poseidon(graph, workers).variables.items() if how.factors}
    of_machine = groups_of(trying.machine, workers)
    for groups, factors in product(((), of_machine) if of_machine else ((),), ({}, few) if few else ({},)):
        if not groups and not factors:
            continue
        levels = {
            name: _in_two_levels(how)
            for name, how in best.strategy.variables.items()
            if groups and _is_flat(how)
        }
        changed = replace(
            best.strategy,
            variables={**best.strategy.variables, **levels, **factors},
            replicas=groups,
            shares=None if groups else best.strategy.shares,
        )
        label = ", ".join([best.name, *["two levels"] * bool(groups), *["factors"] * bool(factors)])
        with suppress(PlanError):
            yield trying.simulated(label, changed)[0]


def _in_two_levels(how: Synchronisation) -> Synchronisation:
    parts = [replace(part, two_level=True) for part in how.parts if isinstance(part, AllReduce)]
    return replace(how, parts=tuple(parts))


def _is_flat(how: Synchronisation) -> bool:
    """Tell whether all of a gradient is reduced, so that it may be summed in two levels."""
    return not how.factors and all(isinstance(part, AllReduce) for part in how.parts)


def groups_of(machine: Machine, workers: int) -> tuple[tuple[int, ...], ...]:
    """Return the workers of each outermost group of a machine; none if they are not several of equal size."""
    found = machine.outermost_groups(workers)
    sizes = set(map(len, found))
    return () if len(found) < 2 or len(sizes) > 1 or sizes == {1} else found


def _rank(each: tuple[float, int, FoundStrategy]) -> tuple[float, int]:
    return each[:2]


def _key(strategy: SyncStrategy) -> tuple[object, ...]:
    return strategy.updates_last, strategy.shares, *strategy.variables.items()
