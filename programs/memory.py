"""Plan memory: an offset for every buffer in one arena per worker (Tofu, section 6).

    variables    offset[b] for every buffer b of a worker
    objective    the least arena, max over b of  offset[b] + bytes[b]
    constraints  if b and c are live at a common tick, their memory is disjoint

A shard of a tensor that persists is always live. Any other buffer is live from its first write to the last
read by any worker. There is one exception to the constraints: an operation overwrites an input that it is the
last to use, if it reads that input element by element. The minimum is not searched for: heuristics are
compared with the largest sum of live bytes, a lower bound. Arena sizes are known before anything runs.
Implemented in: `buffer_lifetimes`, `in_place_hosts` (the exception), `offsets.place` (the heuristics),
`offsets.live_sizes` (the bound).

Assumes: instructions run in the order of `clock`. Guarantees: no value is overwritten while it is needed, if
the waits of `schedule` are kept; `check_memory` checks both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..dataflow.graph import Graph
from ..errors import ProgramError
from ..operators.stages.bound_operator import BoundOperator
from ..support.gc_pause import gc_paused
from ..support.notebook_display import NotebookDisplay
from ..support.wording import counted
from .arena import Arena, plan_arena
from .clock import check_order, first_ticks, lasting_buffers, operation_at, reads, writes
from .program import Buffer, BufferKind, Compute, PartitionedGraph

Ticks = npt.NDArray[np.int64]
LARGEST_COUNT = 10

HeldBuffer = tuple[int, BufferKind, int]
"""The tensor, the kind and the size of a buffer."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The first and last tick of each buffer, both inclusive."""

    births: tuple[Ticks, ...]
    """`births[worker][buffer]`: the tick of the first write."""

    deaths: tuple[Ticks, ...]
    """`deaths[worker][buffer]`: the tick of the last use; before the birth if nothing touches the buffer."""


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """A buffer that is live when its worker needs the most memory."""

    name: str
    """The name of the tensor that it holds."""

    kind: BufferKind
    """The purpose of the buffer."""

    nbytes: int
    """The size of the buffer."""


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """The sizes of all arenas, and what they hold when it is the most."""

    arena_bytes: tuple[int, ...]
    """The size of each worker's arena."""

    live_bytes: tuple[Ticks, ...]
    """`live_bytes[worker][tick]`: the total size of the buffers that are live."""

    largest: tuple[tuple[LiveTensor, ...], ...]
    """For each worker, the largest buffers that are live at the tick with the most live bytes."""

    peak_kinds: tuple[Mapping[BufferKind, int], ...]
    """For each worker, the live bytes at that tick by kind of buffer."""

    @property
    def fullest(self) -> int:
        """Return the worker with the largest arena."""
        return int(np.argmax(self.arena_bytes))

    @property
    def lower_bound_bytes(self) -> tuple[int, ...]:
        """Return each worker's largest sum of live bytes: no plan with these lifetimes needs less."""
        return tuple(int(live.max(initial=0)) for live in self.live_bytes)


@dataclass(frozen=True, slots=True)
class MemoryPlan(MemoryFigures, NotebookDisplay):
    """The place of every buffer in its worker's arena."""

    offsets: tuple[tuple[int, ...], ...]
    """`offsets[worker][buffer]`: the buffer's first byte in the worker's arena."""

    begins: tuple[int, ...]
    """The tick at which each operation begins."""

    def __repr__(self) -> str:
        largest = max(self.arena_bytes, default=0)
        workers = counted(len(self.arena_bytes), "worker")
        return f"<memory plan of {workers}: {largest:,} bytes in the largest arena>"


@gc_paused()
def plan_memory(partitioned: PartitionedGraph) -> MemoryPlan:
    """Plan every worker's arena; workers with equal lifetimes and sizes share the work.

    Raises ProgramError if a buffer is read before anything was written to it.
    """
    lifetimes = buffer_lifetimes(partitioned)
    hosts = in_place_hosts(partitioned, lifetimes)
    known: dict[tuple[bytes, ...], Arena] = {}
    arenas: list[Arena] = []
    held: list[list[HeldBuffer]] = []
    for worker, program in enumerate(partitioned.programs):
        sizes = np.array([buffer.nbytes for buffer in program.buffers], np.int64)
        births, deaths = lifetimes.births[worker], lifetimes.deaths[worker]
        host = np.array(hosts[worker], np.int64)
        key = (sizes.tobytes(), births.tobytes(), deaths.tobytes(), host.tobytes())
        if key not in known:
            known[key] = plan_arena(sizes, births, deaths, host)
        arenas.append(known[key])
        live = [
            program.buffers[index] for index in fullest_buffers(known[key], births, deaths, hosts[worker])
        ]
        held.append([(buffer.tensor, buffer.kind, buffer.nbytes) for buffer in live])
    found = memory_figures(partitioned.graph, arenas, held)
    return MemoryPlan(
        found.arena_bytes,
        found.live_bytes,
        found.largest,
        found.peak_kinds,
        offsets=tuple(arena.offsets for arena in arenas),
        begins=tuple(first_ticks(partitioned)),
    )


def memory_figures(
    graph: Graph, arenas: Sequence[Arena], held: Sequence[Sequence[HeldBuffer]]
) -> MemoryFigures:
    """Return the figures of arenas, given the buffers that each holds when that is the most."""
    return MemoryFigures(
        arena_bytes=tuple(arena.nbytes for arena in arenas),
        live_bytes=tuple(arena.live_bytes for arena in arenas),
        largest=tuple(
            tuple(LiveTensor(graph.tensors[t].name, kind, nbytes) for t, kind, nbytes in each[:LARGEST_COUNT])
            for each in (sorted(buffers, key=lambda buffer: -buffer[2]) for buffers in held)
        ),
        peak_kinds=tuple(
            {kind: sum(nbytes for _, own, nbytes in each if own is kind) for kind in BufferKind}
            for each in held
        ),
    )


def fullest_buffers(arena: Arena, births: Ticks, deaths: Ticks, hosts: Sequence[int]) -> list[int]:
    """List the buffers that an arena holds when that is the most: of those that share memory, the one born
    last.
    """
    now = int(arena.live_bytes.argmax())
    live = np.flatnonzero((births <= now) & (now <= deaths))
    by_birth = live[np.argsort(births[live], kind="stable")].tolist()
    return sorted({hosts[index]: index for index in by_birth}.values())


def buffer_lifetimes(partitioned: PartitionedGraph) -> Lifetimes:
    """Find the first write and the last use of every buffer, including uses by other workers."""
    last = partitioned.ticks
    unborn = last + 1
    births = [[unborn] * len(program.buffers) for program in partitioned.programs]
    deaths = [[-1] * len(program.buffers) for program in partitioned.programs]
    for worker, buffers in enumerate(lasting_buffers(partitioned)):
        for buffer in buffers:
            births[worker][buffer], deaths[worker][buffer] = 0, last
    for worker, program in enumerate(partitioned.programs):
        check_order(program)
        own_births, own_deaths = births[worker], deaths[worker]
        for instruction in program.instructions:
            now = instruction.tick
            for buffer in writes(instruction):
                if own_births[buffer] > now:
                    own_births[buffer] = now
                if own_deaths[buffer] < now:
                    own_deaths[buffer] = now
            for owner, buffer in reads(worker, instruction):
                if deaths[owner][buffer] < now:
                    deaths[owner][buffer] = now
    for tensor in partitioned.graph.outputs:
        for worker, buffer in partitioned.homes[tensor]:
            deaths[worker][buffer] = last
    _check_written_first(partitioned, births, deaths)
    return Lifetimes(
        tuple(np.array(values, np.int64) for values in births),
        tuple(np.array(values, np.int64) for values in deaths),
    )


def _check_written_first(
    partitioned: PartitionedGraph, births: Sequence[Sequence[int]], deaths: Sequence[Sequence[int]]
) -> None:
    for program, born, died in zip(partitioned.programs, births, deaths, strict=True):
        for buffer, birth, death in zip(program.buffers, born, died, strict=True):
            if 0 <= death < birth and buffer.nbytes:
                tensor = partitioned.graph.tensors[buffer.tensor]
                raise ProgramError(
                    f"tensor '{tensor.name}': worker {program.worker} never writes its {buffer.kind} buffer "
                    f"{buffer.index} (region {buffer.region}), but operation "
                    f"'{operation_at(partitioned, death)}' reads it"
                )


def in_place_hosts(partitioned: PartitionedGraph, lifetimes: Lifetimes) -> list[list[int]]:
    """Return `hosts[worker][buffer]`: the buffer whose memory a buffer takes over, or the buffer itself.

    An output takes over an input of the same form if each element of the input is read only at the index that
    is written, and no worker uses the input after that computation.
    """
    hosts = [list(range(len(program.buffers))) for program in partitioned.programs]
    places = _places_in_place(partitioned.graph)
    for worker, program in enumerate(partitioned.programs):
        births, deaths = lifetimes.births[worker].tolist(), lifetimes.deaths[worker].tolist()
        for instruction in program.instructions:
            if not isinstance(instruction, Compute):
                continue
            here = places[instruction.operation]
            if not here:
                continue
            now, inputs = instruction.tick, instruction.inputs
            ending = [
                buffer
                for place in here
                if (buffer := inputs[place]) is not None and deaths[buffer] == now > births[buffer]
            ]
            if not ending:
                continue
            elsewhere = [buffer for place, buffer in enumerate(inputs) if place not in here]
            dying = [buffer for buffer in dict.fromkeys(ending) if buffer not in elsewhere]
            for output in instruction.outputs:
                if births[output] != now:
                    continue
                form = program.buffers[output]
                host = next(
                    (b for b in dying if have_same_form(partitioned.graph, program.buffers[b], form)), None
                )
                if host is not None:
                    hosts[worker][output] = hosts[worker][host]
                    dying.remove(host)
    return hosts


def _places_in_place(graph: Graph) -> list[tuple[int, ...]]:
    """Return, for each operation, the places of the inputs that are read only at the index written."""
    known: dict[BoundOperator, tuple[int, ...]] = {}
    for operation in graph.operations:
        bound = operation.bound
        if bound not in known:
            names = bound.description.tensor_names
            known[bound] = tuple(place for place, name in enumerate(names) if name in bound.in_place)
    return [known[operation.bound] for operation in graph.operations]


def have_same_form(graph: Graph, one: Buffer, other: Buffer) -> bool:
    """Tell whether two buffers hold the same region with elements of the same type."""
    return one.region == other.region and graph.tensors[one.tensor].dtype == graph.tensors[other.tensor].dtype
