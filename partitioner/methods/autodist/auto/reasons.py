"""Through what a strategy gains over plain all-reduce: its time where one feature is missing.

Both are simulated again on a machine, or with times, in which one feature is free or uniform. The feature
explains the part of the gain that is lost with it, the whole of it if nothing is left. Features depend on
each other, so parts need not add up.

    latency          messages without bytes take no time
    heterogeneity    all links of a kind are as wide as the widest of them, and all devices as fast
    hierarchy        all devices are neighbours, joined by the innermost level alone; links of a graph are all
                     as wide as the widest
    flow limits      a message may use the whole of a link
    overlap          computations take no time, so there is nothing to hide transfers behind
    shared updates   updates take no time, so that it does not matter how many workers repeat them
    sparsity         variables whose rows data choose are reduced as others are
    factors          gradients that are computed from factors are summed as others are
    levels           gradients that are summed in two levels are summed at once
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .....machines.links import DeviceLink
from .....machines.machine import Machine
from .....programs.program import Compute
from .....simulator.simulate import simulate_times
from .....simulator.times import ComputeTimes, times_on
from ..strategy import AllReduce, Synchronisation, SyncStrategy
from ..variables import find_variables
from .candidates import Candidates, SyncCandidate
from .search import SyncSearch

LEAST_SHARE = 0.01
"""The part of the plain time below which a gain is not stated."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A feature that a gain depends on."""

    feature: str
    """Its name."""

    seconds: float
    """The part of the gain that is lost without the feature."""


def reasons(found: SyncSearch, trying: Candidates) -> tuple[Reason, ...]:
    """Return the features that the gain over plain all-reduce depends on, the most important first."""
    least = LEAST_SHARE * found.plain.seconds
    gain = found.plain.seconds - found.best.seconds
    if gain < least:
        return ()
    parts = [Reason(name, min(gain, gain - without)) for name, without in _gains_without(found, trying)]
    return tuple(sorted((each for each in parts if each.seconds >= least), key=lambda each: -each.seconds))


def _gains_without(found: SyncSearch, trying: Candidates) -> Iterator[tuple[str, float]]:
    """Yield each feature that is there, and the gain without it."""
    machine, graph, pair = trying.machine, trying.graph, (found.plain, found.best)
    for name, change in MACHINE_FEATURES.items():
        changed = change(machine)
        if changed != machine:
            both = [_seconds(each, changed, times_on(each.program, changed)) for each in pair]
            yield name, both[0] - both[1]
    updates = {update.index for each in find_variables(graph) for update in each.updates}
    every = {operation.index for operation in graph.operations}
    for name, free in (("overlap", every), ("shared updates", updates)):
        both = [_seconds(each, machine, _without(each, machine, free)) for each in pair]
        yield name, both[0] - both[1]
    sparse = {each.tensor.name for each in find_variables(graph) if each.sparse}
    strategy = found.best.strategy
    changed_strategy = _all_reduced(strategy, sparse)
    if changed_strategy != strategy:
        dense, _ = trying.simulated("dense", changed_strategy)
        yield "sparsity", found.plain.seconds - dense.seconds
    summed = {name: replace(how, factors=False) for name, how in strategy.variables.items()}
    if summed != strategy.variables:
        others, _ = trying.simulated("summed", replace(strategy, variables=summed))
        yield "factors", found.plain.seconds - others.seconds
    at_once = {name: _at_once(how) for name, how in strategy.variables.items()}
    if at_once != strategy.variables:
        others, _ = trying.simulated("at once", replace(strategy, variables=at_once))
        yield "levels", found.plain.seconds - others.seconds


def _seconds(each: SyncCandidate, machine: Machine, times: ComputeTimes) -> float:
    return simulate_times(each.program, machine, times, messages=each.messages).seconds


def _without(each: SyncCandidate, machine: Machine, free: set[int]) -> ComputeTimes:
    """Return the times of a program in which some operations take no time."""
    times = times_on(each.program, machine)
    nanoseconds = [
        [
            0 if isinstance(instruction, Compute) and instruction.operation in free else time
            for instruction, time in zip(program.instructions, own, strict=True)
        ]
        for program, own in zip(each.program.programs, times.nanoseconds, strict=True)
    ]
    return replace(times, nanoseconds=nanoseconds)


def _all_reduced(strategy: SyncStrategy, names: set[str]) -> SyncStrategy:
    groups = {p.group for how in strategy.variables.values() for p in how.parts if isinstance(p, AllReduce)}
    alone = Synchronisation((AllReduce(max(groups, default=-1) + 1),))
    found = {
        name: alone if name in names and not _is_reduced(how) else how
        for name, how in strategy.variables.items()
    }
    return replace(strategy, variables=found)


def _at_once(how: Synchronisation) -> Synchronisation:
    """Return a synchronisation whose gradients are summed at once."""
    parts = [replace(part, two_level=False) if isinstance(part, AllReduce) else part for part in how.parts]
    return replace(how, parts=tuple(parts))


def _is_reduced(how: Synchronisation) -> bool:
    return all(isinstance(part, AllReduce) for part in how.parts)


def without_latency(machine: Machine) -> Machine:
    """Return a machine whose messages take no time besides that of their bytes."""
    return replace(
        machine,
        levels=tuple(replace(each, latency_seconds=0.0) for each in machine.levels),
        links=tuple(replace(each, latency_seconds=0.0) for each in machine.links),
    )


def without_heterogeneity(machine: Machine) -> Machine:
    """Return a machine whose links are as wide as the widest of their kind, and whose devices are equal.

    Links are of a kind if as many of their ends are devices.
    """
    devices = set(machine.devices)

    def kind(link: DeviceLink) -> int:
        return len(devices.intersection(link.ends))

    widest: dict[int, DeviceLink] = {}
    for link in machine.links:
        if kind(link) not in widest or link.bytes_per_second > widest[kind(link)].bytes_per_second:
            widest[kind(link)] = link
    best = max(machine.kinds, key=lambda each: each.bytes_per_second)
    return replace(
        machine,
        links=tuple(replace(widest[kind(link)], ends=link.ends) for link in machine.links),
        kinds=(best,) * len(machine.kinds),
    )


def without_hierarchy(machine: Machine) -> Machine:
    """Return a machine whose devices are joined by the innermost level alone, or by equally wide links."""
    if machine.levels:
        return replace(machine, levels=machine.levels[-1:], groups=machine.groups[-1:])
    devices = set(machine.devices)
    if len({len(devices.intersection(link.ends)) for link in machine.links}) < 2:
        return machine
    wide = max(link.bytes_per_second for link in machine.links)
    return replace(machine, links=tuple(replace(each, bytes_per_second=wide) for each in machine.links))


def without_flow_limits(machine: Machine) -> Machine:
    """Return a machine on which a message may use the whole of a link."""
    return replace(
        machine,
        levels=tuple(replace(each, rails=1) for each in machine.levels),
        links=tuple(replace(each, rails=1) for each in machine.links),
    )


MACHINE_FEATURES: dict[str, Callable[[Machine], Machine]] = {
    "latency": without_latency,
    "heterogeneity": without_heterogeneity,
    "hierarchy": without_hierarchy,
    "flow limits": without_flow_limits,
}
"""Features of machines, and machines without them."""
