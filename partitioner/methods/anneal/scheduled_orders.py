"""Other orders of a plan's operations, from list schedules of its jobs (`simulator.list_schedule`).

    jobs        those of a simulated iteration. A worker's computations occupy a lane of it in addition, which
                may serve them in any order; its transfers begin and finish without one
    early       lanes prefer the job with the longest path to the end of the iteration
    late        then time runs backward, and lanes prefer the job that ended last
    again       forward and backward once more, with the times of the schedule before

Each of these schedules gives an order: that of the mean start of the operation's computations. Only a
simulation tells how good it is. Implemented in: `scheduled_orders`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....dataflow.graph import Graph
from ....dataflow.order import dependency_order
from ....simulator.iteration_jobs import IterationJobs, JobKind
from ....simulator.jobs import Jobs
from ....simulator.list_schedule import rest, start_early, start_late
from ....simulator.simulation import Simulation

ROUNDS = 2
"""How often jobs are scheduled forward and backward."""


def scheduled_orders(graph: Graph, simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """Yield the names of a graph's operations in other orders, for the tasks that are simulated."""
    work = simulation.timeline.work
    jobs = _in_any_order(work)
    priority = [-each for each in rest(jobs)]
    for _ in range(ROUNDS):
        early = start_early(jobs, priority)
        yield _order(graph, work, early)
        ends = [start + time for start, time in zip(early, jobs.nanoseconds, strict=True)]
        priority = start_late(jobs, ends)
        yield _order(graph, work, priority)


def _in_any_order(work: IterationJobs) -> Jobs:
    """Return the jobs with a lane for the computations of each worker, in place of their order."""
    first = len(work.jobs.lane_names)
    names = [f"worker {worker}" for worker in range(max(work.workers, default=-1) + 1)]
    lanes = [
        (*own, first + work.workers[instruction]) if kind == JobKind.COMPUTE else own
        for own, kind, instruction in zip(work.jobs.lanes, work.kinds, work.instructions, strict=True)
    ]
    return replace(
        work.jobs, lanes=lanes, lane_names=[*work.jobs.lane_names, *names], order=work.jobs.order[:0]
    )


def _order(graph: Graph, work: IterationJobs, start: Sequence[int]) -> tuple[str, ...]:
    """Return the names of operations in the order of the mean starts of their computations."""
    computing = np.array(work.kinds) == JobKind.COMPUTE
    operation = np.array(work.operations)[np.array(work.instructions)[computing]]
    sums = np.bincount(operation, np.array(start)[computing], len(graph.operations))
    means = sums / np.maximum(np.bincount(operation, minlength=len(graph.operations)), 1)
    ordered = dependency_order(graph.tensors, graph.operations, means.tolist())
    return tuple([each.name for each in ordered])
