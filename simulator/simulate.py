"""`simulate`: the time line of a program on a machine."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import MachineError
from ..machines.machine import Machine
from ..machines.machine_file import machine_of
from ..programs.messages import Messages
from ..programs.process_programs import process_programs
from ..programs.program import PartitionedGraph, require_program
from ..programs.schedule import Schedule
from ..support.gc_pause import gc_paused
from .jobs import run
from .program_jobs import program_jobs
from .timeline import Timeline
from .times import NANOSECONDS, ComputeTimes, times_on


def simulate(
    program: PartitionedGraph,
    machine: Machine | str,
    schedule: Schedule | None = None,
    messages: Messages | None = None,
) -> Timeline:
    """Simulate one iteration of a program, which `tofu.lower` makes, on a machine.

    `machine` is a preset's name, a file or a Machine. The same program and machine give the same time line,
    to the nanosecond. `schedule` adds its waits: instructions then wait for memory that is used again.
    Without it memory is not used again, and transfers may run further ahead of computations. `messages` are
    those of `tofu.programs.messages`: pieces that travel together pay the latency of their message once.
    Without them, each transfer has a message from each worker that it reads from.

    If each device of the machine has a process, the messages are those of processes, each of which is sent
    and received by threads of its own.

    If the machine has a profile, times are measured or fitted to measured ones; `Timeline.times` says which.

    Raises ProgramError for a value that is not a program. Raises MachineError for a bad machine or profile,
    if the machine has too few devices or does not say how fast they are, and for messages on a machine whose
    profile has the times of whole transfers.
    """
    require_program(program)
    found = machine_of(machine)
    found.check_workers(program.workers)
    if found.processes:
        if messages is not None:
            raise MachineError(
                f"processes of machine {found.name!r} have messages of their own; leave out messages"
            )
        with gc_paused():
            return _simulated_processes(program, found, schedule)
    if messages is not None and found.profile is not None:
        raise MachineError(
            f"the profile of machine {found.name!r} has the times of whole transfers, each with messages of "
            "its own; leave out messages, or take a machine without a profile"
        )
    with gc_paused():
        return simulate_times(program, found, times_on(program, found), schedule, messages)


def simulate_times(
    program: PartitionedGraph,
    machine: Machine,
    times: ComputeTimes,
    schedule: Schedule | None = None,
    messages: Messages | None = None,
) -> Timeline:
    """Simulate one iteration whose computations take the given times. Raises MachineError as `simulate`."""
    work = program_jobs(program, machine, times, schedule, messages)
    return Timeline(
        program.graph, program.workers, program, machine, times.source, times.shares, work, run(work.jobs)
    )


def _simulated_processes(program: PartitionedGraph, machine: Machine, schedule: Schedule | None) -> Timeline:
    """Simulate one iteration of processes, one on each device, that exchange messages."""
    joint = process_programs(program, machine.devices_of(program.workers))
    times = times_on(joint.partitioned, machine, program.workers)
    work = program_jobs(joint.partitioned, machine, times, schedule, processes=joint)
    return Timeline(
        program.graph,
        program.workers,
        joint.partitioned,
        machine,
        times.source,
        times.shares,
        work,
        run(work.jobs),
        joint,
        times.around_nanoseconds + _ending_nanoseconds(machine, joint.places),
    )


def _ending_nanoseconds(machine: Machine, places: Sequence[int]) -> int:
    """Return the time of the links in which processes end an iteration together.

    The first process hears from all others that they are done, then they hear from it.
    """
    first, *others = sorted(set(places))
    latencies = [machine.path(first, other).latency_seconds for other in others]
    return round(2 * max(latencies, default=0.0) * NANOSECONDS)
