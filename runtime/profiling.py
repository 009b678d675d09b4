"""Measure the work of programs on this machine once, and keep the times in a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import perf_counter

from ..errors import MachineError
from ..machines.machine import Machine
from ..machines.machine_file import load_machine, with_profile
from ..machines.profile import EngineTimes, MeasuredTime, Profile, Sizes, WakeTime
from ..machines.profile_file import profile_path, save_profile
from ..machines.write_machine import save_machine
from ..programs.program import PartitionedGraph
from .instruction_times import ProgramWork, Work, measure_instructions
from .numpy_engine import default_threads
from .processor import host, measure_processor, require_this_machine
from .step_moments import Clock

ENGINE = "numpy"
ROUNDS = 9


@dataclass(frozen=True, slots=True)
class Added:
    """The work of a program that a profile gained, or had already."""

    measured: int
    """The number of different pieces of work that were measured."""

    known: int
    """The number of those that had been measured before."""


def measure(
    programs: Iterable[PartitionedGraph], path: str | PathLike[str], *, rounds: int = ROUNDS
) -> Machine:
    """Measure the instructions of programs, which `tofu.lower` makes; return this machine with their times.

    `path` is a machine file of this machine's processor. If it does not exist, the processor is measured and
    the file is written. Times are kept in a profile next to it; what it has is not measured again.

    Raises MachineError if the file or its profile is that of another machine or version, and ExecutionError
    if a program cannot run here.
    """
    profiler = Profiler(Path(path), rounds=rounds)
    for program in programs:
        profiler.add(program)
    return profiler.machine


class Profiler:
    """A machine file of this machine, and the profile next to it, which grows by programs."""

    def __init__(self, path: Path, *, rounds: int = ROUNDS, clock: Clock = perf_counter) -> None:
        """Read the machine file, or measure the processor and write it. Raises MachineError."""
        if rounds < 1:
            raise MachineError(f"rounds is {rounds}; measuring takes at least one")
        self.profile_path = profile_path(path)
        self._rounds = rounds
        self._clock = clock
        if not path.exists():
            save_machine(measure_processor(), path)
        self.machine = load_machine(str(path))
        require_this_machine(self.machine, str(path))
        if self.machine.profile is not None:
            self.machine.profile.host.check(host(), self.machine.profile.path)

    def add(self, program: PartitionedGraph) -> Added:
        """Measure a program if some of its work is unknown, and save the times. Raises ExecutionError."""
        threads = default_threads(program.workers)
        known = self._known(threads)
        work = ProgramWork.of(program)
        missing = [each for each in work.amounts if each[1] not in known.kinds.get(each[0], {})]
        if missing:
            found = measure_instructions(program, work, self._rounds, self._clock)
            times = _merged(known.kinds, {each: found.times[each] for each in missing})
            wakes = known.wakes.joined(found.wakes)
            self._keep(EngineTimes(ENGINE, threads, found.kernel_threads, wakes, times))
        return Added(len(missing), len(work.amounts) - len(missing))

    def _known(self, threads: int) -> EngineTimes:
        engines = () if self.machine.profile is None else self.machine.profile.engines
        nothing = EngineTimes(ENGINE, threads, 1, WakeTime(0, 0.0), {})
        return next((each for each in engines if each.threads == threads), nothing)

    def _keep(self, times: EngineTimes) -> None:
        """Save times in place of those for the same number of threads."""
        engines = () if self.machine.profile is None else self.machine.profile.engines
        others = [each for each in engines if each.threads != times.threads]
        ordered = sorted([*others, times], key=lambda each: each.threads)
        profile = Profile(self.machine.name, host(), tuple(ordered), str(self.profile_path))
        save_profile(profile, self.profile_path)
        self.machine = with_profile(self.machine, profile)


def _merged(
    known: Mapping[str, Mapping[Sizes, MeasuredTime]], times: Mapping[Work, MeasuredTime]
) -> dict[str, dict[Sizes, MeasuredTime]]:
    found: dict[str, dict[Sizes, MeasuredTime]] = defaultdict(dict)
    found.update({kind: dict(by_size) for kind, by_size in known.items()})
    for (kind, sizes), time in times.items():
        found[kind][sizes] = time
    return dict(found)
