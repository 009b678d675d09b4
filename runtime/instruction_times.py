"""Measure the instructions of a program in the iterations that run it, here on the NumPy engine.

The program runs on the engine as in training, for some rounds after a warm-up, and every instruction is timed
by the clock on the wall. So a kernel finds the caches as the instructions before it left them, other workers
run at the same time, and threads share the processor and the interpreter as they do in training. The time of
an instruction begins when its thread is done with the one before, or when its step begins if the thread had
to wait for another one. The time to wake passes between the end of that wait and the beginning.

Equal work (`programs.instruction_work`) has one time. In a round it is the mean of all that is equal. The
rounds count that lie between the quartiles by the sum of all their times, and the mean of those is the time.
So a round in which the machine did something else has no effect, and the times add up to those of a usual
round. A median for each instruction would leave out what small kernels now and then lose to each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, quantiles

import numpy as np

from ..dataflow.graph import Graph, Role, Tensor
from ..errors import DataError
from ..machines.profile import MeasuredTime, Sizes, WakeTime
from ..operators.kernels.kernel import Array
from ..programs.instruction_work import box_sizes, computations, count_work, kind_of, transfers
from ..programs.memory import MemoryPlan
from ..programs.program import PartitionedGraph
from ..programs.schedule import Schedule, schedule
from .engine import MakeEngine, Watch
from .executor import Executor
from .initializer import Uniform, generator, initial_value
from .numpy_engine import NumpyEngine
from .step_moments import Clock, StepMoments

WARM_UP = 2
SCALAR = 1e-3
"""The value of learning rates and other scalars: small, so that parameters hardly change."""

Work = tuple[str, Sizes]
"""The kind and the sizes of an instruction."""

Place = tuple[int, int]
"""A worker and the index of one of its instructions."""

Moments = Sequence[Sequence[tuple[float, float]]]
"""`[worker][index]`: when an instruction begins and ends."""


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """The work of a program's instructions."""

    places: Mapping[Place, Work]
    """The work of every instruction."""

    amounts: Mapping[Work, Sizes]
    """The amounts of all work."""

    @classmethod
    def of(cls, program: PartitionedGraph) -> ProgramWork:
        """Return the work of every instruction of a program."""
        places: dict[Place, Work] = {}
        amounts: dict[Work, Sizes] = {}
        for group in computations(program):
            kind = kind_of(program.graph, group.operation)
            counted = count_work(program.graph, group.operation, group.boxes)
            listed = box_sizes(group.operation, group.boxes)
            rows = zip(group.places, listed, counted.amounts.tolist(), strict=True)
            for place, sizes, each in rows:
                places[place] = (kind, sizes)
                amounts[kind, sizes] = tuple(each)
        for transfer in transfers(program):
            places[transfer.place] = (transfer.kind, transfer.sizes)
            amounts[transfer.kind, transfer.sizes] = transfer.amounts
        return cls(places, amounts)


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """The measured times of a program's instructions."""

    kernel_threads: int
    """The threads that products inside a kernel could use."""

    wakes: WakeTime
    """How long threads took to wake."""

    times: Mapping[Work, MeasuredTime]
    """The time of all work."""


@dataclass(frozen=True, slots=True)
class MeasuredRound:
    """The times of one iteration."""

    seconds: Mapping[Work, Sequence[float]]
    """Those of all instructions, by their work."""

    wakes: Sequence[float]
    """Those from the end of an instruction to the start of one on another thread that waited for it."""


def measure_instructions(
    program: PartitionedGraph, work: ProgramWork, rounds: int, clock: Clock
) -> ProgramTimes:
    """Run a program on this machine's processor and return the times of its work. Raises ExecutionError."""
    moments = StepMoments(program, clock)
    engines: list[tuple[NumpyEngine, Schedule]] = []

    def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> NumpyEngine:
        waits = schedule(partitioned, memory)
        watched = replace(watch, seconds=moments)
        engine = NumpyEngine(partitioned, memory, waits, watch=watched, threads=None)
        engines.append((engine, waits))
        return engine

    def measured() -> MeasuredRound:
        engine, waits = engines[0]
        return measured_round(engine.places, waits, moments.moments, work)

    found = run_rounds(program, make, rounds, measured)
    return usual_times(engines[0][0].kernel_threads, found, work)


def run_rounds(
    program: PartitionedGraph, make_engine: MakeEngine, rounds: int, measured: Callable[[], MeasuredRound]
) -> list[MeasuredRound]:
    """Run a program from the start of training, and return what `measured` finds after each round."""
    found: list[MeasuredRound] = []
    with Executor(program, make_engine=make_engine) as executor:
        for name, value in initial_values(program.graph):
            executor.write(name, value)
        for number in range(WARM_UP + rounds):
            executor.run()
            if number >= WARM_UP:
                found.append(measured())
    return found


def usual_times(kernel_threads: int, rounds: Sequence[MeasuredRound], work: ProgramWork) -> ProgramTimes:
    """Return the times of the rounds between the quartiles, by the sum of all their times."""
    totals = [sum(map(sum, each.seconds.values())) for each in rounds]
    order = sorted(range(len(rounds)), key=totals.__getitem__)
    quarter = len(rounds) // 4
    usual = order[quarter : len(rounds) - quarter]
    times = {}
    for each, amounts in work.amounts.items():
        means = [fmean(measured.seconds[each]) for measured in rounds]
        times[each] = MeasuredTime(fmean(means[number] for number in usual), _spread(means), amounts)
    wakes = [seconds for number in usual for seconds in rounds[number].wakes]
    return ProgramTimes(kernel_threads, WakeTime(len(wakes), fmean(wakes) if wakes else 0.0), times)


def measured_round(
    threads: Sequence[Sequence[Place]], waits: Schedule, moments: Moments, work: ProgramWork
) -> MeasuredRound:
    """Return the times of an iteration, of which `moments[worker][index]` are the beginnings and ends.

    `threads` are the instructions that each thread runs, in order. A thread that waits for the end of another
    one's instruction has woken when its next instruction begins. Otherwise that one's time begins when the
    thread is done with the one before.
    """
    thread_of = {place: thread for thread, places in enumerate(threads) for place in places}
    found: dict[Work, list[float]] = defaultdict(list)
    wakes: list[float] = []
    for thread, places in enumerate(threads):
        free: float | None = None
        for worker, index in places:
            begin, end = moments[worker][index]
            awaited = [
                moments[other][number][1]
                for other, number in waits.waits[worker][index]
                if thread_of[other, number] != thread
            ]
            if free is None or max(awaited, default=free) > free:
                wakes += [begin - max(awaited)] if awaited else []
                free = begin
            found[work.places[worker, index]].append(end - free)
            free = end
    return MeasuredRound(found, wakes)


def _spread(seconds: Sequence[float]) -> float:
    """Return the distance between the quartiles."""
    if len(seconds) == 1:
        return 0.0
    lower, _, upper = quantiles(seconds, n=4, method="inclusive")
    return upper - lower


def initial_values(graph: Graph) -> Iterator[tuple[str, Array]]:
    """Yield values of the tensors that live across iterations, as at the start of training."""
    for tensor in graph.tensors:
        if tensor.role.persistent and tensor.alias is None:
            yield tensor.name, _value(tensor)


def _value(tensor: Tensor) -> Array:
    match tensor.role:
        case Role.DATA:
            return generator(tensor.name, 0).integers(0, 2, tensor.shape).astype(np.float32)
        case Role.PARAMETER | Role.AUXILIARY:
            try:
                return initial_value(tensor.name, tensor.shape, Uniform(), 0)
            except DataError:
                return np.ones(tensor.shape, np.float32)
        case Role.SCALAR:
            return np.full(tensor.shape, SCALAR, np.float32)
        case _:
            return np.zeros(tensor.shape, np.float32)
