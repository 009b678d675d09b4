"""Measure the work of programs on this machine once, and keep the times in a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Protocol

from ..errors import MachineError
from ..machines.machine import Machine
from ..machines.machine_file import load_machine, with_profile
from ..machines.profile import AnyHost, EngineTimes, MeasuredTime, Profile, Sizes, WakeTime, check_host
from ..machines.profile_file import profile_path, save_profile
from ..machines.write_machine import save_machine
from ..programs.program import PartitionedGraph
from ..support.checked_argument import path_of
from .instruction_times import ProgramTimes, ProgramWork, Work, measure_instructions
from .numpy_engine import default_threads
from .processor import host, machine_name, measure_processor
from .step_moments import Clock

ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Added:
    """The work of a program that a profile gained, or had already."""

    measured: int
    """The number of different pieces of work that were measured."""

    known: int
    """The number of those that had been measured before."""


class Hardware(Protocol):
    """Devices of this machine that run programs, and how they are measured."""

    @property
    def engine(self) -> str:
        """Return the name of the engine that runs on them."""
        ...

    @property
    def name(self) -> str:
        """Return the name of this machine."""
        ...

    def host(self) -> AnyHost:
        """Return the hardware and the versions on which times depend."""
        ...

    def measure(self) -> Machine:
        """Measure the devices and the links between them. Raises MachineError."""
        ...

    def threads(self, machine: Machine, workers: int) -> int:
        """Return how many threads or cards run workers at the same time. Raises MachineError."""
        ...

    def work(self, program: PartitionedGraph) -> ProgramWork:
        """Return what is measured of a program."""
        ...

    def times(
        self, program: PartitionedGraph, work: ProgramWork, rounds: int, machine: Machine
    ) -> ProgramTimes:
        """Run a program and return the times of its work. Raises ExecutionError."""
        ...


class Processor:
    """The processor of this machine, with the NumPy engine."""

    engine = "numpy"

    def __init__(self, clock: Clock = perf_counter) -> None:
        self._clock = clock

    @property
    def name(self) -> str:
        return machine_name()

    def host(self) -> AnyHost:
        return host()

    def measure(self) -> Machine:
        return measure_processor()

    def threads(self, machine: Machine, workers: int) -> int:
        return default_threads(workers)

    def work(self, program: PartitionedGraph) -> ProgramWork:
        return ProgramWork.of(program)

    def times(
        self, program: PartitionedGraph, work: ProgramWork, rounds: int, machine: Machine
    ) -> ProgramTimes:
        return measure_instructions(program, work, rounds, self._clock)


def hardware_of(device: str) -> Hardware:
    """Return the hardware that `device` names: cpu or gpu.

    Raises MachineError for another name, and ExecutionError if there is no card.
    """
    match device:
        case "cpu":
            return Processor()
        case "gpu":
            from .cuda.card_times import Cards

            return Cards()
        case _:
            raise MachineError(f"device is {device!r}; it must be 'cpu' or 'gpu'")


def measure(
    programs: Iterable[PartitionedGraph],
    path: str | PathLike[str],
    *,
    device: str = "cpu",
    rounds: int = ROUNDS,
) -> Machine:
    """Measure the instructions of programs, which `tofu.lower` makes; return this machine with their times.

    `path` is a machine file of this machine's processor, or of its cards if `device` is `gpu`. If it does not
    exist, the devices are measured and the file is written. Times are kept in a profile next to it; times
    that it has are not measured again.

    Raises MachineError if the file or its profile is that of another machine or version, and ExecutionError
    if there is no card or a program cannot run here.
    """
    profiler = Profiler(path_of(path, "path", MachineError), hardware_of(device), rounds=rounds)
    for program in programs:
        profiler.add(program)
    return profiler.machine


class Profiler:
    """A machine file of this machine, and the profile next to it, which grows by programs."""

    def __init__(self, path: Path, hardware: Hardware, *, rounds: int = ROUNDS) -> None:
        """Read the machine file, or measure the hardware and write it. Raises MachineError."""
        if rounds < 1:
            raise MachineError(f"rounds is {rounds}; measuring takes at least one")
        self.profile_path = profile_path(path)
        self._rounds = rounds
        self._hardware = hardware
        if not path.exists():
            save_machine(hardware.measure(), path)
        self.machine = load_machine(str(path))
        require_hardware(self.machine, hardware, str(path))
        if self.machine.profile is not None:
            check_host(self.machine.profile.host, hardware.host(), self.machine.profile.path)

    def add(self, program: PartitionedGraph) -> Added:
        """Measure a program if some of its work is unknown, and save the times.

        Raises ExecutionError if the program cannot run here, and MachineError if there are too few devices.
        """
        threads = self._hardware.threads(self.machine, program.workers)
        known = self._known(threads)
        work = self._hardware.work(program)
        missing = [each for each in work.amounts if each[1] not in known.kinds.get(each[0], {})]
        if missing:
            found = self._hardware.times(program, work, self._rounds, self.machine)
            times = _merged(known.kinds, {each: found.times[each] for each in missing})
            wakes = known.wakes.joined(found.wakes)
            self._keep(EngineTimes(self._hardware.engine, threads, found.kernel_threads, wakes, times))
        return Added(len(missing), len(work.amounts) - len(missing))

    def _known(self, threads: int) -> EngineTimes:
        engines = () if self.machine.profile is None else self.machine.profile.engines
        nothing = EngineTimes(self._hardware.engine, threads, 1, WakeTime(0, 0.0), {})
        return next((each for each in engines if each.threads == threads), nothing)

    def _keep(self, times: EngineTimes) -> None:
        """Save times in place of those for the same number of threads."""
        engines = () if self.machine.profile is None else self.machine.profile.engines
        others = [each for each in engines if each.threads != times.threads]
        ordered = sorted([*others, times], key=lambda each: each.threads)
        profile = Profile(self.machine.name, self._hardware.host(), tuple(ordered), str(self.profile_path))
        save_profile(profile, self.profile_path)
        self.machine = with_profile(self.machine, profile)


def require_hardware(machine: Machine, hardware: Hardware, place: str) -> None:
    """Raise MachineError unless a machine is described as these devices of this one."""
    if machine.name != hardware.name:
        raise MachineError(
            f"the machine file {place!r} describes {machine.name!r}, but this machine is "
            f"{hardware.name!r}; save to another file"
        )
    engine = machine.kind(0).engine
    if engine != hardware.engine:
        in_turn = str(machine.kind(0).in_turn).lower()
        raise MachineError(
            f"the machine file {place!r} has devices with `in_turn: {in_turn}`, which run the engine "
            f"{engine}, but {hardware.engine} is to be measured; save to another file"
        )


def _merged(
    known: Mapping[str, Mapping[Sizes, MeasuredTime]], times: Mapping[Work, MeasuredTime]
) -> dict[str, dict[Sizes, MeasuredTime]]:
    found: dict[str, dict[Sizes, MeasuredTime]] = defaultdict(dict)
    found.update({kind: dict(by_size) for kind, by_size in known.items()})
    for (kind, sizes), time in times.items():
        found[kind][sizes] = time
    return dict(found)
