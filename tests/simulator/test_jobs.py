"""The rules of lanes, held against FlexFlow's example and against times found in other ways."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tofu.errors import ProgramError
from tofu.machines.machine_file import decode_machine
from tofu.simulator.check_timeline import check_moments
from tofu.simulator.deciding_path import deciding_path
from tofu.simulator.jobs import Jobs, Moments, run

from .random_jobs import random_jobs, settle

FLEXFLOW = decode_machine(
    {
        "machine": "figure-4",
        "levels": [{"name": "gpu", "bandwidth": "1 GB/s", "latency": "5 us"}],
        "devices": ["GPU1", "GPU2", "GPU3"],
        "link_per_pair": True,
    }
)
"""One link for each pair of devices and no latency (FlexFlow, section 5.1); a byte takes a nanosecond."""

Entry = tuple[str, str, int, tuple[str, ...]]


def figure_4(parts: int) -> tuple[list[str], Jobs]:
    """FlexFlow's example with operator 3 in two parts, or in one: the names of the tasks, and the jobs."""
    first, second = (FLEXFLOW.path(0, 1), FLEXFLOW.path(1, 2))
    entries: list[Entry] = [(f"{o}:{k}", "GPU1", 2, ()) for o in (1, 2) for k in (1, 2)]

    def send(name: str, way: object, nbytes: int, *after: str) -> None:
        (lane,) = way.lanes  # type: ignore[attr-defined]
        entries.append((name, lane, round(way.seconds(nbytes) * 1e9), after))  # type: ignore[attr-defined]

    for o in (1, 2):
        for k in (1, 2):
            send(f"c{o}:{k}", first, 1, f"{o}:{k}")
    thirds = range(1, parts + 1)
    for k in thirds:
        read = (f"c1:{k}",) if parts == 2 else ("c1:1", "c1:2")
        entries.append((f"3:{k}", "GPU2", 2 // parts, read))
        send(f"d3:{k}", second, 2 // parts, f"3:{k}")
    for k in (1, 2):
        entries.append((f"4:{k}", "GPU2", 1, (f"c2:{k}", f"3:{min(k, parts)}")))
        send(f"d4:{k}", second, 1, f"4:{k}")
    entries.append(("5:1", "GPU3", 3, tuple(f"d3:{k}" for k in thirds)))
    entries.append(("6:1", "GPU3", 3, ("d4:1", "d4:2")))
    names = [name for name, _, _, _ in entries]
    lanes = sorted({lane for _, lane, _, _ in entries})
    needs = [(names.index(other), job) for job, (_, _, _, after) in enumerate(entries) for other in after]
    return names, Jobs(
        [time for _, _, time, _ in entries],
        [(lanes.index(lane),) for _, lane, _, _ in entries],
        lanes,
        np.array(needs),
        np.empty((0, 2), np.int64),
    )


TWO_PARTS = {
    "1:1": (0, 0), "1:2": (0, 2), "2:1": (0, 4), "2:2": (0, 6),
    "c1:1": (2, 2), "c1:2": (4, 4), "c2:1": (6, 6), "c2:2": (8, 8),
    "3:1": (3, 3), "3:2": (5, 5), "4:1": (7, 7), "4:2": (9, 9),
    "d3:1": (4, 4), "d3:2": (6, 6), "d4:1": (8, 8), "d4:2": (10, 10),
    "5:1": (7, 7), "6:1": (11, 11),
}  # fmt: skip
"""Figure 4c: when each task is ready, and when it starts."""

ONE_PART = {
    **{name: TWO_PARTS[name] for name in ("1:1", "1:2", "2:1", "2:2", "c1:1", "c1:2", "c2:1", "c2:2")},
    "3:1": (5, 5), "4:1": (7, 7), "4:2": (9, 9),
    "d3:1": (7, 7), "d4:1": (8, 9), "d4:2": (10, 10),
    "5:1": (9, 9), "6:1": (11, 12),
}  # fmt: skip
"""Figure 4d."""


@pytest.mark.parametrize(("parts", "expected", "last"), [(2, TWO_PARTS, 14), (1, ONE_PART, 15)])
def test_figure_4_of_flexflow(parts: int, expected: dict[str, tuple[int, int]], last: int) -> None:
    names, jobs = figure_4(parts)
    found = run(jobs)
    assert dict(zip(names, zip(found.ready, found.start, strict=True), strict=True)) == expected
    assert makespan(jobs, found) == last
    check_moments(jobs, found)


def makespan(jobs: Jobs, found: Moments) -> int:
    return max(start + time for start, time in zip(found.start, jobs.nanoseconds, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_times_do_not_depend_on_the_order_of_visits(seed: int) -> None:
    draw = random.Random(seed)
    jobs = random_jobs(draw)
    found = run(jobs)
    check_moments(jobs, found)
    assert settle(jobs, draw) == found
    shuffled = replace(jobs, needs=np.random.default_rng(seed).permutation(jobs.needs))
    assert run(shuffled) == found


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold(seed: int) -> None:
    jobs = random_jobs(random.Random(seed))
    whole = makespan(jobs, run(jobs))
    unlimited = jobs.with_infinite_lanes()
    assert whole >= makespan(unlimited, run(unlimited))
    for lane in range(len(jobs.lane_names)):
        load = sum(t for t, lanes in zip(jobs.nanoseconds, jobs.lanes, strict=True) if lane in lanes)
        assert whole >= load


def longest_chain(jobs: Jobs) -> int:
    """The longest path over the needs alone, by their definition."""
    ends: list[int] = []
    for job, time in enumerate(jobs.nanoseconds):
        before = [ends[a] for a, b in jobs.needs.tolist() if b == job]
        ends.append(max(before, default=0) + time)
    return max(ends)


@pytest.mark.parametrize("seed", range(30))
def test_infinite_lanes_leave_the_longest_chain(seed: int) -> None:
    jobs = random_jobs(random.Random(seed))
    unlimited = jobs.with_infinite_lanes()
    assert makespan(unlimited, run(unlimited)) == longest_chain(jobs)


@pytest.mark.parametrize("seed", range(60))
def test_the_deciding_path_takes_the_whole_time(seed: int) -> None:
    jobs = random_jobs(random.Random(seed))
    found = run(jobs)
    path = deciding_path(jobs, found)
    clock = 0
    for job in path:
        assert found.start[job] == clock
        clock += jobs.nanoseconds[job]
    assert clock == makespan(jobs, found)
    edges = set(map(tuple, jobs.edges.tolist()))
    for one, other in pairwise(path):
        assert (one, other) in edges or set(jobs.lanes[one]) & set(jobs.lanes[other])


@pytest.mark.parametrize("seed", range(40))
def test_the_checker_finds_every_changed_time(seed: int) -> None:
    draw = random.Random(seed)
    jobs = random_jobs(draw, count=15)
    found = run(jobs)
    job = draw.randrange(15)
    for change in (-1, 1):
        later = list(found.start)
        later[job] += change
        with pytest.raises(ProgramError, match="by the rules of lanes"):
            check_moments(jobs, Moments(found.ready, later))
        readier = list(found.ready)
        readier[job] += change
        with pytest.raises(ProgramError, match="by the rules of lanes"):
            check_moments(jobs, Moments(readier, found.start))


def test_no_jobs_take_no_time() -> None:
    none = Jobs([], [], [], np.empty((0, 2), np.int64), np.empty((0, 2), np.int64))
    assert run(none) == Moments([], [])
    assert deciding_path(none, run(none)) == []
