"""A fast model of an iteration: whole transfers in the order of the clock, where the simulator has messages.

Operations and transfers are visited once, in the order in which they run. Each worker has a lane of
computations and one of transfers, and each direction of a link is occupied by all messages over it, one after
the other. A transfer ends when its messages have left their lanes. What data parallelism computes and moves
besides synchronisation is measured once, by a simulation of all-reduces; a strategy then takes milliseconds.

    exact         the bytes of each message, latencies, the order of transfers, what waits for what
    approximate   messages of a transfer share a lane in any order; updates take as long as on all workers
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .....dataflow.graph import Graph, Role
from .....machines.machine import Machine
from .....programs.program import Compute, PartitionedGraph
from .....simulator.iteration_jobs import JobKind
from .....simulator.timeline import Timeline
from .....simulator.times import NANOSECONDS
from .....support.compiled import Numbers, compiled, looped, zeros
from ..strategy import AllReduce, Server, SyncStrategy
from ..variables import TrainedVariable, find_variables
from .traffic import PairTimes, Reals, SyncTraffic, sync_traffic


@dataclass(slots=True)
class _Fixed:
    """The messages of an operation besides synchronisation, in nanoseconds between pairs, hop by hop."""

    before: list[Reals] = field(default_factory=list)
    """The transfers before it computes."""

    after: list[Reals] = field(default_factory=list)
    """The transfers after it has computed."""


@compiled
def serve(
    messages: Numbers, begin: Numbers, free: Numbers, lanes: Numbers, width: int, rounds: bool
) -> Numbers:
    """Serve the messages of transfers that begin at given times; return when the last of each ends.

    They are served in `rounds`, or else all of one reader before those of the next. `messages` are
    nanoseconds by sender and reader, `lanes` those of each pair, `width` for each. Write until when lanes are
    occupied to `free`, whose last lane is nobody's.
    """
    workers = len(begin)
    ends = zeros(workers)
    for reader in range(workers):
        ends[reader] = begin[reader]
    for number in range(workers * workers):
        turn, reader = number // workers, number % workers
        sender = (reader + turn) % workers
        if not rounds:
            reader, sender = turn, reader
        pair = sender * workers + reader
        if messages[pair] == 0:
            continue
        start = begin[reader]
        for place in range(pair * width, pair * width + width):
            start = max(start, free[lanes[place]])
        for place in range(pair * width, pair * width + width):
            free[lanes[place]] = start + messages[pair]
        free[len(free) - 1] = 0
        ends[reader] = max(ends[reader], start + messages[pair])
    return ends


class _State:
    """How far every lane has come."""

    def __init__(self, pairs: PairTimes, in_turn: bool, rounds: bool) -> None:
        self.computing = np.zeros(pairs.workers)
        self.moving = np.zeros(pairs.workers)
        self._free = zeros(pairs.occupies.shape[0])
        self._pairs = pairs
        self._in_turn = in_turn
        self._rounds = rounds

    def compute(self, nanoseconds: Reals, after: Reals | float = 0.0) -> None:
        """Let every worker compute for a while. Only those that compute wait."""
        waiting = np.where(nanoseconds > 0, np.maximum(self.computing, after), self.computing)
        self.computing = waiting + nanoseconds
        if self._in_turn:
            self.moving = np.maximum(self.moving, self.computing)

    def wait(self, until: Reals | float) -> None:
        """Let every worker wait before it computes."""
        self.computing = np.maximum(self.computing, until)

    def transfer(self, ready: Reals | float, messages: Reals, start: Reals, finish: Reals | float) -> Reals:
        """Let every worker that reads run a transfer; return when each has ended, 0 for the others."""
        reading = messages.any(axis=0)
        if not reading.any():
            return np.zeros(len(self.moving))
        begin = np.maximum(self.moving, ready)
        if self._in_turn:
            begin = np.maximum(begin, self.computing)
        begin = begin + start
        pairs = self._pairs
        rounded = np.rint(begin).astype(np.int64), np.rint(messages).astype(np.int64)
        given = looped(rounded[1]), looped(rounded[0]), self._free, pairs.looped_lanes, pairs.width
        ends = serve(*given, self._rounds)
        found: Reals = np.where(reading, np.array(ends, float) + finish, 0.0)
        self.moving = np.maximum(self.moving, found)
        if self._in_turn:
            self.computing = np.maximum(self.computing, found)
        return found


class SyncModel:
    """Predicts the time of an iteration of strategies for one graph on one machine."""

    def __init__(self, graph: Graph, machine: Machine, plain: Timeline, merged: bool = True) -> None:
        """`plain` is the time line of all-reduces without groups. If not `merged`, groups change nothing."""
        assert plain.program is not None
        self.graph = graph
        """The graph."""
        self.variables = find_variables(graph)
        """Its variables, in order."""
        self.pairs = PairTimes(machine, plain.workers)
        """The times of messages."""
        kinds = self.pairs.ways.kinds
        self._in_turn = kinds[0].in_turn
        self.merged = merged
        """Whether the pieces of a group travel together."""
        self.start = np.array([kind.start_seconds for kind in kinds]) * NANOSECONDS
        """The nanoseconds in which each worker starts a transfer."""
        self._per_byte = np.array([1 / kind.bytes_per_second for kind in kinds]) * NANOSECONDS
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
        state = _State(self.pairs, self._in_turn, self.merged)
        workers = self.pairs.workers
        moved = [
            sync_traffic(v, strategy.variables[v.tensor.name], workers, strategy.shares)
            for v in self.variables
        ]
        members, last = self._groups(strategy)
        proxied = [
            any(isinstance(p, Server) and p.proxy for p in strategy.variables[v.tensor.name].parts)
            for v in self.variables
        ]
        fetches: dict[int, list[int]] = {}
        for number, readers in enumerate(self._readers):
            for reader in readers[:1] if proxied[number] else readers:
                fetches.setdefault(reader, []).append(number)
        collects: dict[int, list[int]] = {}
        for number, made in enumerate(self._made_by):
            collects.setdefault(last.get(number, made), []).append(number)
        reduced = [np.zeros(workers)] * len(self.variables)
        for operation in self._order(strategy, members):
            needed: Reals | float = 0.0
            for number in fetches.get(operation, ()):
                needed = np.maximum(needed, self._fetch(state, moved[number]))
            update = self._update_of.get(operation)
            if update is not None:
                needed = np.maximum(needed, reduced[update])
            fixed = self._fixed.get(operation)
            for messages in () if fixed is None else fixed.before:
                needed = state.transfer(state.computing.max(), messages, self.start, 0.0)
            time = self._computing[operation]
            state.compute(time if update is None else self._share(time, moved[update]), needed)
            for messages in () if fixed is None else fixed.after:
                state.wait(state.transfer(state.computing.max(), messages, self.start, 0.0))
            mine = collects.get(operation, ())
            if mine:
                self._collect(state, moved, mine, reduced)
                if any(self._waited_for[number] for number in mine):
                    state.wait(np.max([reduced[n] for n in mine], axis=0))
        return float(max(state.computing.max(), state.moving.max())) / NANOSECONDS

    def _fetch(self, state: _State, moved: SyncTraffic) -> Reals:
        messages = self.pairs.of(moved.fetched)
        return state.transfer(0.0, messages, self.start, 0.0)

    def _collect(
        self, state: _State, moved: list[SyncTraffic], mine: list[int], reduced: list[Reals]
    ) -> None:
        """Reduce the gradients of variables whose pieces travel together, in one hop or two."""
        ends: Reals = state.computing
        for number in range(2):
            each = [moved[n].spread if number else moved[n].gradient for n in mine]
            nbytes = np.sum(each, axis=0)
            if not nbytes.any():
                continue
            arriving = nbytes.max(axis=0)
            count = np.sum([one.any(axis=0) for one in each], axis=0)
            finish = 0.0 if number else (self.pairs.workers + 1) * arriving * self._per_byte
            others = np.maximum(count - 1, 0) * self.start
            ends = state.transfer(np.max(ends), self.pairs.of(nbytes), self.start, finish + others)
        for number in mine:
            reduced[number] = ends

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
            parts = strategy.variables[variable.tensor.name].parts
            group = next((part.group for part in parts if isinstance(part, AllReduce)), None)
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
