"""Measure the cards of this machine, and the instructions of programs that run on them.

The rates of products are those that cuBLAS reaches, with all bits of the factors. The bandwidths are those of
copies within a card and between two. The time to start a kernel is that of small copies in a graph.

A program runs on the engine for some rounds after a warm-up. Every instruction is launched by itself, between
two events in its stream, whose times the card notes. Nothing waits for the host within a round, so all cards
and both lanes of each run at the same time, as in training.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median

from ...errors import MachineError
from ...machines.device_kind import DeviceKind
from ...machines.machine import Level, Machine
from ...machines.profile import CardHost
from ...operators.cuda.launch.commands import Matrix, MatrixProduct, MemoryCopy
from ...operators.cuda.vendor.libraries import library
from ...operators.emit.datatypes import data_type
from ...operators.kernels_version import kernels_version
from ...programs.memory import MemoryPlan
from ...programs.program import PartitionedGraph
from ..choose_engine import engine_on
from ..context import gpu
from ..engine import Engine, Watch
from ..instruction_times import MeasuredRound, ProgramTimes, ProgramWork, Work, run_rounds, usual_times
from ..timing import StepSeconds
from .cards import require_cards
from .cupy_machine import CupyMachine
from .inspection import COPIED_BYTES, Card, copy_bandwidth, cuda_version, inspect
from .machine import CudaMachine

SQUARE = 4096
"""The rows and columns of the matrices whose product gives a rate."""

SMALL_BYTES = 256
"""The bytes of a copy for which starting it is all the time it takes."""

ROUNDS = 9
CALLS = 100
TYPES = ("float32", "float64", "float16")
"""The element types in which all cards compute."""

BFLOAT16_CAPABILITY = (8, 0)
"""The first compute capability whose products read bfloat16."""

EVENT_SECONDS = 5e-7
"""The resolution of the time of events; shorter times are unknown."""


class Cards:
    """The cards of this machine, with the CUDA engine."""

    engine = "cuda"

    def __init__(self) -> None:
        """Raises ExecutionError if there is no card, and MachineError if there are different ones."""
        require_cards()
        self._found = inspect(measure=False)
        names = sorted({card.name for card in self._found.cards})
        if len(names) > 1:
            raise MachineError(
                f"this machine has different cards: {', '.join(names)}; let CUDA_VISIBLE_DEVICES list those "
                f"of one kind"
            )

    @property
    def name(self) -> str:
        return f"{_kind_name(self._found.cards[0])}-{len(self._found.cards)}"

    def host(self) -> CardHost:
        versions = {part.name: part.version or "missing" for part in self._found.parts}
        runtime = library("cupy", "a GPU").cuda.runtime
        return CardHost(
            self._found.cards[0].name,
            len(self._found.cards),
            versions["NVIDIA driver"],
            cuda_version(int(runtime.runtimeGetVersion())),
            versions["CuPy"],
            versions["cuBLAS"],
            versions["cuDNN front end"],
            kernels_version(self.engine),
        )

    def measure(self) -> Machine:
        machine = CupyMachine(range(len(self._found.cards)))
        try:
            return measure_cards(machine, self.name, self._found.cards[0])
        finally:
            machine.close()

    def threads(self, machine: Machine, workers: int) -> int:
        machine.check_workers(workers)
        cards = len(set(machine.devices_of(workers)))
        if cards < workers:
            raise MachineError(
                f"{workers} workers of machine {machine.name!r} share {cards} of its cards, and would slow "
                f"each other while they are measured; measure at most {cards}"
            )
        return cards

    def work(self, program: PartitionedGraph) -> ProgramWork:
        return ProgramWork.of(program)

    def times(
        self, program: PartitionedGraph, work: ProgramWork, rounds: int, machine: Machine
    ) -> ProgramTimes:
        seconds = StepSeconds(program)
        make_engine = engine_on([gpu(card) for card in machine.devices_of(program.workers)], eager=True)

        def make(partitioned: PartitionedGraph, memory: MemoryPlan, watch: Watch) -> Engine:
            return make_engine(partitioned, memory, replace(watch, seconds=seconds))

        found = run_rounds(program, make, rounds, partial(card_round, seconds, work))
        return usual_times(1, found, work)


def card_round(seconds: StepSeconds, work: ProgramWork) -> MeasuredRound:
    """Return the times of the last iteration. No thread waits for a card within it."""
    found: dict[Work, list[float]] = defaultdict(list)
    for (worker, index), each in work.places.items():
        found[each].append(max(seconds.seconds[worker][index], EVENT_SECONDS))
    return MeasuredRound(found, ())


def measure_cards(
    machine: CudaMachine, name: str, card: Card, size: int = SQUARE, copied_bytes: int = COPIED_BYTES
) -> Machine:
    """Measure cards that are like `card`, one for each of the machine's workers.

    All pairs have the bandwidth of the slowest one.
    """
    types: tuple[str, ...] = TYPES
    if tuple(map(int, card.capability.split("."))) >= BFLOAT16_CAPABILITY:
        types += ("bfloat16",)
    copied = copy_bandwidth(machine, copied_bytes)
    slowest = min(rate for row in copied for rate in row)
    rates = tuple((dtype, _product_rate(machine, size, dtype)) for dtype in types)
    kind = DeviceKind(_kind_name(card), card.total_bytes, 2 * copied[0][0], rates, _start_seconds(machine))
    numbers = tuple(range(machine.workers))
    names = tuple(f"gpu{number}" for number in numbers)
    kinds = (kind,) * machine.workers
    return Machine(name, (Level("gpu", slowest),), names, (numbers,), kind.memory_bytes, kinds)


def _kind_name(card: Card) -> str:
    return "-".join(re.findall(r"[a-z0-9.]+", card.name.lower()))


def _product_rate(machine: CudaMachine, size: int, dtype: str) -> float:
    nbytes = size * size * data_type(dtype).numpy.itemsize
    block = machine.allocate(0, 3 * nbytes)
    left, right, result = (
        Matrix(block + number * nbytes, size, size, size, 1, 1, size * size, dtype) for number in range(3)
    )
    product = MatrixProduct(left, right, result)
    machine.load(0, [product])
    return 2 * size**3 / _seconds(machine, lambda: machine.issue(0, product))


def _start_seconds(machine: CudaMachine) -> float:
    block = machine.allocate(0, 2 * SMALL_BYTES)
    copy = MemoryCopy(block + SMALL_BYTES, block, SMALL_BYTES)

    def issue() -> None:
        for _ in range(CALLS):
            machine.issue(0, copy)

    graph = machine.captured(issue)
    return _seconds(machine, lambda: machine.launch(graph)) / CALLS


def _seconds(machine: CudaMachine, issue: Callable[[], None]) -> float:
    """Return the median time that worker 0's card takes for what `issue` puts into its stream."""
    taken = []
    for number in range(ROUNDS + 1):
        begin = machine.record(0, timed=True)
        issue()
        end = machine.record(0, timed=True)
        machine.synchronize()
        if number:  # the first one includes set-up work
            taken.append(machine.seconds_between(0, begin, end))
    return median(taken)
