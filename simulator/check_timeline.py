"""Check time lines without simulating: sums, dependences, lanes and their order.

The checker takes the times of all jobs as they are, and the programs, unless tasks and holdings were
simulated without any. It knows nothing of how the times were found. The rules of `jobs` have one solution, so
a time line that passes is that solution. It verifies that

* every instruction has its jobs, once; messages carry the bytes that the plan moves;
* every job is ready exactly when the last job that it comes after has ended;
* every lane serves its jobs in the order in which they become ready, then by number, one at a time, and every
  job starts exactly when it is ready and its lanes are free;
* in the programs, every instruction begins after all earlier ones of its lane, or of the device that serves
  its workers in turn, have ended, after those that wrote what it reads, and after those that read or wrote
  what it overwrites.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ProgramError
from ..programs.clock import reads, writes
from ..programs.program import Held, Lane, PartitionedGraph, lane_of
from .iteration_jobs import JobKind
from .jobs import Jobs, Moments
from .timeline import Timeline


def check_timeline(timeline: Timeline) -> None:
    """Raise ProgramError naming the first job or instruction whose times are wrong."""
    check_moments(timeline.work.jobs, timeline.moments)
    if timeline.program is not None:
        places = _places(timeline, timeline.program)
        begins, ends = _instruction_times(timeline, places)
        _check_bytes(timeline, timeline.program)
        _check_programs(timeline, timeline.program, places, begins, ends)


def check_moments(jobs: Jobs, moments: Moments) -> None:
    """Raise ProgramError unless every job is ready and starts exactly when the rules say."""
    count = len(jobs.nanoseconds)
    latest = [0] * count
    for before, after in jobs.edges.tolist():
        latest[after] = max(latest[after], moments.start[before] + jobs.nanoseconds[before])
    free = [0] * len(jobs.lane_names)
    for job in sorted(range(count), key=lambda job: (moments.ready[job], job)):
        _expect(job, "is ready", moments.ready[job], latest[job])
        begin = max([latest[job], *(free[lane] for lane in jobs.lanes[job])])
        _expect(job, "starts", moments.start[job], begin)
        for lane in jobs.lanes[job]:
            free[lane] = begin + jobs.nanoseconds[job]


def _expect(job: int, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise ProgramError(f"job {job} {what} at {found} ns; by the rules of lanes it is {expected} ns")


def _places(timeline: Timeline, program: PartitionedGraph) -> list[Held]:
    """Return the (worker, index) of all instructions in the order of the clock.

    Raises ProgramError if the jobs are not those of the programs.
    """
    listed = [
        (instruction.tick, each.worker, index, instruction.operation)
        for each in program.programs
        for index, instruction in enumerate(each.instructions)
    ]
    listed.sort()
    found = list(zip(timeline.work.workers, timeline.work.operations, strict=True))
    numbered = set(timeline.work.instructions)
    expected = [(worker, operation) for _, worker, _, operation in listed]
    if found != expected or numbered != set(range(len(expected))):
        raise ProgramError(f"{len(expected)} instructions have jobs for {len(numbered)}")
    return [(worker, index) for _, worker, index, _ in listed]


def _instruction_times(timeline: Timeline, places: Sequence[Held]) -> tuple[dict[Held, int], dict[Held, int]]:
    """Return when every instruction begins and ends, by (worker, index)."""
    begins: dict[Held, int] = {}
    ends: dict[Held, int] = {}
    for job, number in enumerate(timeline.work.instructions):
        if timeline.work.kinds[job] == JobKind.WAKE:
            continue
        place, start = places[number], timeline.moments.start[job]
        begins[place] = min(begins.get(place, start), start)
        ends[place] = max(ends.get(place, 0), start + timeline.work.jobs.nanoseconds[job])
    return begins, ends


def _check_bytes(timeline: Timeline, program: PartitionedGraph) -> None:
    carried = sum(timeline.work.nbytes)
    planned = program.planned_bytes
    counted = sum(kind == JobKind.MESSAGE for kind in timeline.work.kinds)
    if carried != planned or counted != len(timeline.work.nbytes):
        raise ProgramError(f"{counted} messages carry {carried} bytes, but the plan moves {planned}")


def _check_programs(
    timeline: Timeline,
    program: PartitionedGraph,
    places: Sequence[Held],
    begins: dict[Held, int],
    ends: dict[Held, int],
) -> None:
    """Visit instructions in the order of the clock, and remember when each buffer was written and read."""
    machine = timeline.machine
    devices = machine.devices_of(timeline.workers)
    free: dict[tuple[int, Lane | None], int] = {}
    written: dict[Held, int] = {}
    used: dict[Held, int] = {}
    for worker, index in places:
        instruction = program.programs[worker].instructions[index]
        begin, end = begins[worker, index], ends[worker, index]
        in_turn = worker < timeline.workers and machine.kind(devices[worker]).in_turn
        lane = (devices[worker], None) if in_turn else (timeline.workers + worker, lane_of(instruction))
        taken = reads(worker, instruction)
        made = [(worker, buffer) for buffer in writes(instruction)]
        earliest = _latest(
            [free.get(lane, 0)],
            [written.get(held, 0) for held in taken],
            [used.get(held, 0) for held in made],
        )
        if begin < earliest:
            name = program.graph.operations[instruction.operation].name
            raise ProgramError(
                f"operation {name!r}, instruction {index} of worker {worker}: begins at {begin} ns, "
                f"but what it waits for ends at {earliest} ns"
            )
        free[lane] = end
        for held in taken:
            used[held] = max(used.get(held, 0), end)
        for held in made:
            written[held] = used[held] = end


def _latest(*times: Sequence[int]) -> int:
    return max(max(each, default=0) for each in times)
