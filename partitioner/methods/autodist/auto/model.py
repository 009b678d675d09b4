"""A fast model of an iteration: the jobs of a strategy without its plan and its programs.

Operations and transfers are visited once, in the order in which they run, and become jobs on the lanes of the
simulator. The computations and transfers of data parallelism besides synchronisation are measured once, by a
simulation of all-reduces.

    exact         the bytes of each message, latencies, the order of transfers, what waits for what
    approximate   parts of a variable take their share of its update, and pieces their share of its bytes; a
                  transfer starts once for all variables of its group, and then takes the other starts
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from .....dataflow.graph import Graph, Role
from .....machines.machine import Machine
from .....programs.program import Compute, PartitionedGraph
from .....simulator.iteration_jobs import JobKind
from .....simulator.timeline import Timeline
from .....simulator.times import NANOSECONDS, ProfiledTimes
from ..strategy import Server, SyncStrategy
from ..variables import TrainedVariable, find_variables
from .coarse_jobs import CoarseJobs, Ends
from .traffic import PairTimes, Reals, SyncTraffic, sync_traffic
from .transfer_times import TransferTimes, sync_times


@dataclass(slots=True)
class _Fixed:
    """The messages of an operation besides synchronisation, in nanoseconds between pairs, hop by hop."""

    before: list[Reals] = field(default_factory=list)
    """The transfers before it computes."""

    after: list[Reals] = field(default_factory=list)
    """The transfers after it has computed."""


class SyncModel:
    """Predicts the time of an iteration of strategies for one graph on one machine."""

    def __init__(self, graph: Graph, machine: Machine, plain: Timeline, merged: bool = True) -> None:
        """`plain` is the time line of all-reduces without groups. If not `merged`, groups change nothing."""
        assert plain.program is not None
        self.graph = graph
        """The graph."""
        self.variables = find_variables(graph)
        """Its variables, in order."""
        profiled = None if machine.profile is None else ProfiledTimes(graph, machine, plain.workers)
        wake = None if profiled is None else profiled.wake_nanoseconds
        self.pairs = PairTimes(machine, plain.workers, wake)
        """The times of messages."""
        kinds = self.pairs.ways.kinds
        self._in_turn = kinds[0].in_turn
        self.merged = merged
        """Whether the pieces of a group travel together."""
        self.start = np.array([kind.start_seconds for kind in kinds]) * NANOSECONDS
        """The nanoseconds in which each worker starts a transfer."""
        self._times = sync_times(self.pairs, profiled)
        updates = {each.index: number for number, v in enumerate(self.variables) for each in v.updates}
        self._update_of = updates
        self._gradients = _gradients(graph, self.variables)
        self._computing = _computing(plain)
        self._fixed = _fixed(plain, plain.program, {t for of in self._gradients for t in of})
        makers = {tensor: each.index for each in graph.operations for tensor in each.outputs}
        self._made_by = [max((makers[t] for t in of if t in makers), default=-1) for of in self._gradients]
        self._readers = _readers(graph, self.variables)
        used = {t for each in graph.operations if each.index not in updates for t in each.inputs}
        self._waited_for = [any(t in used for t in of) for of in self._gradients]

    def alone(self) -> SyncModel:
        """Return the model of an iteration in which nothing moves but what synchronises variables."""
        found = copy(self)
        found._fixed = {}
        found._waited_for = [False] * len(self.variables)
        return found

    @property
    def ready_nanoseconds(self) -> list[float]:
        """When each variable's gradient is made, if transfers took no time."""
        ends = np.cumsum([0.0 if n in self._update_of else c.max() for n, c in enumerate(self._computing)])
        return [float(ends[made]) if made >= 0 else 0.0 for made in self._made_by]

    def can_wait(self, variable: int) -> bool:
        """Tell whether nothing but its update needs a variable's gradient."""
        return not self._waited_for[variable]

    def seconds(self, strategy: SyncStrategy) -> float:
        """Predict the time of an iteration."""
        workers = self.pairs.workers
        jobs = CoarseJobs(self.pairs, self._in_turn, self.merged)
        moved = [
            sync_traffic(v, strategy.variables[v.tensor.name], workers, strategy.shares)
            for v in self.variables
        ]
        members, last = self._groups(strategy)
        fetches = self._fetches(strategy)
        collects: dict[int, list[int]] = {}
        for number, made in enumerate(self._made_by):
            collects.setdefault(last.get(number, made), []).append(number)
        reduced: list[Ends] = [{} for _ in self.variables]
        none = np.zeros(workers)
        for operation in self._order(strategy, members):
            for number in fetches.get(operation, ()):
                jobs.wait(self._move(jobs, {}, self._times.fetch, [moved[number].fetched]))
            fixed = self._fixed.get(operation)
            for messages in () if fixed is None else fixed.before:
                jobs.wait(jobs.transfer(jobs.computed(), messages, self.start, none))
            time, update = self._computing[operation], self._update_of.get(operation)
            if update is None:
                jobs.compute(time.tolist())
            else:
                jobs.compute(self._share(time, moved[update]).tolist(), [reduced[update]])
            for messages in () if fixed is None else fixed.after:
                jobs.wait(jobs.transfer(jobs.computed(), messages, self.start, none))
            mine = collects.get(operation, ())
            if mine:
                ends = self._collect(jobs, [moved[number] for number in mine])
                for number in mine:
                    reduced[number] = ends
                if any(self._waited_for[number] for number in mine):
                    jobs.wait(ends)
        return jobs.run() / NANOSECONDS

    def _fetches(self, strategy: SyncStrategy) -> dict[int, list[int]]:
        """Return the variables that are fetched for each operation, if they have servers."""
        found: dict[int, list[int]] = {}
        for number, (variable, readers) in enumerate(zip(self.variables, self._readers, strict=True)):
            parts = strategy.variables[variable.tensor.name].parts
            proxied = any(isinstance(part, Server) and part.proxy for part in parts)
            for reader in readers[:1] if proxied else readers:
                found.setdefault(reader, []).append(number)
        return found

    def _collect(self, jobs: CoarseJobs, moved: list[SyncTraffic]) -> Ends:
        """Reduce the gradients of variables whose pieces travel together, in one hop or two."""
        ends: Ends = {}
        after = jobs.computed()
        for number, times in enumerate((self._times.reduce, self._times.fetch)):
            each = [one.spread if number else one.gradient for one in moved]
            if any(one.any() for one in each):
                ends = {**ends, **self._move(jobs, after, times, each)}
                after = dict(ends)
        return ends

    def _move(self, jobs: CoarseJobs, after: Ends, times: TransferTimes, moved: Sequence[Reals]) -> Ends:
        """Let readers fetch what moves `[sender, reader]` of each variable, or reduce it."""
        nbytes = np.sum(moved, axis=0)
        count = np.sum([each.any(axis=0) for each in moved], axis=0)
        if times is self._times.reduce:
            own = nbytes.max(axis=0)
            touched = (self.pairs.workers + 1) * own
        else:
            own = nbytes.max(axis=1)
            touched = 2 * own
        finish = np.maximum(count - 1, 0) * times.start + times.finish(own, touched)
        return jobs.transfer(after, times.messages(nbytes), times.start, finish)

    def _share(self, time: Reals, moved: SyncTraffic) -> Reals:
        """Return how long an update takes on each worker, by the part of the variable that it holds."""
        out = moved.fetched.max(axis=1)
        if not out.any():
            return time
        everywhere = moved.spread.any() or (moved.gradient.sum() > 0 and not moved.fetched.any())
        return time if everywhere else time * out / max(out.sum(), 1e-9)

    def _groups(self, strategy: SyncStrategy) -> tuple[dict[int, list[int]], dict[int, int]]:
        """Return the variables of each group, and for each of them the operation that all wait for."""
        members: dict[int, list[int]] = {}
        for number, variable in enumerate(self.variables):
            group = strategy.variables[variable.tensor.name].group
            if self.merged and group is not None and not self._waited_for[number]:
                members.setdefault(group, []).append(number)
        last = {}
        for listed in members.values():
            latest = max(self._made_by[number] for number in listed)
            last.update(dict.fromkeys(listed, latest))
        return members, last

    def _order(self, strategy: SyncStrategy, members: dict[int, list[int]]) -> list[int]:
        """Return the operations in the order in which they run: updates wait for their group."""
        count = len(self.graph.operations)
        place = [(number, 0) for number in range(count)]
        until = {}
        for listed in members.values():
            latest = max(self._made_by[number] for number in listed)
            until.update(dict.fromkeys(listed, latest))
        for operation, variable in self._update_of.items():
            if strategy.updates_last:
                place[operation] = (count, operation)
            elif variable in until and until[variable] > operation:
                place[operation] = (until[variable], operation)
        return sorted(range(count), key=lambda number: (place[number], number))


def _gradients(graph: Graph, variables: tuple[TrainedVariable, ...]) -> list[list[int]]:
    """Return the gradients of each variable."""
    numbers = {tensor.name: tensor for tensor in graph.tensors}
    return [
        [numbers[n].index for n in each.together if numbers[n].role is Role.GRADIENT] for each in variables
    ]


def _readers(graph: Graph, variables: tuple[TrainedVariable, ...]) -> list[list[int]]:
    """Return the operations that read elements of each variable, its updates excepted."""
    numbers = {each.name: each for each in graph.operations}
    found = []
    for variable in variables:
        named = sorted((numbers[name] for name in variable.readers), key=lambda each: each.index)
        read = [{each.inputs[place] for place, _ in each.bound.read_places} for each in named]
        own = zip(named, read, strict=True)
        found.append([each.index for each, taken in own if variable.tensor.index in taken])
    return found


def _computing(plain: Timeline) -> list[Reals]:
    """Return for each operation how long each worker computes it."""
    found = [np.zeros(plain.workers) for _ in plain.graph.operations]
    work = plain.work
    for job, kind in enumerate(work.kinds):
        if kind == JobKind.COMPUTE:
            instruction = work.instructions[job]
            found[work.operations[instruction]][work.workers[instruction]] += work.jobs.nanoseconds[job]
    return found


def _fixed(plain: Timeline, program: PartitionedGraph, gradients: set[int]) -> dict[int, _Fixed]:
    """Return what operations move besides gradients of variables."""
    places = sorted(
        (each.tick, of.worker, index) for of in program.programs for index, each in enumerate(of.instructions)
    )
    computed: dict[int, int] = {}
    for tick, worker, index in places:
        instruction = program.programs[worker].instructions[index]
        if isinstance(instruction, Compute):
            computed.setdefault(instruction.operation, tick)
    hops: dict[tuple[int, int], Reals] = {}
    sources = iter(plain.work.sources)
    for job, kind in enumerate(plain.work.kinds):
        if kind != JobKind.MESSAGE:
            continue
        sender = next(sources)
        tick, worker, index = places[plain.work.instructions[job]]
        instruction = program.programs[worker].instructions[index]
        assert not isinstance(instruction, Compute)
        if program.programs[worker].buffers[instruction.target].tensor in gradients:
            continue
        key = instruction.operation, tick
        if key not in hops:
            hops[key] = np.zeros((plain.workers, plain.workers))
        hops[key][sender, worker] += plain.work.jobs.nanoseconds[job]
    found: dict[int, _Fixed] = {}
    for (operation, tick), messages in sorted(hops.items()):
        own = found.setdefault(operation, _Fixed())
        (own.before if tick < computed[operation] else own.after).append(messages)
    return found
