"""Other orders of a plan's operations, from list schedules of its jobs (`simulator.list_schedule`).

    jobs        those of a simulated iteration. A worker's computations occupy a lane of it in addition, which
                may serve them in any order; its transfers begin and finish without one
    early       lanes prefer the job with the longest path to the end of the iteration
    late        then time runs backward, and lanes prefer the job that ended last
    again       forward and backward once more, with the times of the schedule before

Each of these schedules gives an order: that of the mean start of the operation's computations. Those that run
forward give a second one: an operation with messages comes where its inputs have arrived instead. Workers
begin transfers in the order of the operations as well. In the first order, an operation that can wait, such
as an update, holds up its own transfers and those after it. In the second one it holds up computations.
Only a simulation tells how good an order is. Implemented in: `scheduled_orders`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....dataflow.graph import Graph
from ....dataflow.order import dependency_order
from ....simulator.iteration_jobs import IterationJobs, JobKind
from ....simulator.jobs import Jobs
from ....simulator.list_schedule import rest, start_early, start_late
from ....simulator.simulation import Simulation

Moments = npt.NDArray[np.int64]
"""A moment of each job, in nanoseconds."""

ROUNDS = 2
"""How often jobs are scheduled forward and backward."""


def scheduled_orders(graph: Graph, simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """Yield the names of a graph's operations in other orders, for the tasks that are simulated."""
    work = simulation.timeline.work
    jobs = _in_any_order(work)
    priority: Sequence[int] = [-each for each in rest(jobs)]
    for _ in range(ROUNDS):
        early = np.array(start_early(jobs, priority))
        ends = early + np.array(jobs.nanoseconds)
        yield _order(graph, work, early)
        yield _order(graph, work, _with_arrivals(work, early, ends))
        priority = start_late(jobs, ends.tolist())
        yield _order(graph, work, np.array(priority))


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


def _with_arrivals(work: IterationJobs, start: Moments, ends: Moments) -> Moments:
    """Return when each job starts, or if its operation has messages, when all that it needs has ended."""
    needs, operation = work.jobs.needs, np.array(work.operations)[np.array(work.instructions)]
    ready = np.zeros_like(start)
    np.maximum.at(ready, needs[:, 1], ends[needs[:, 0]])
    receiving = np.unique(operation[np.array(work.kinds) == JobKind.MESSAGE])
    return np.where(np.isin(operation, receiving), ready, start)


def _order(graph: Graph, work: IterationJobs, moments: Moments) -> tuple[str, ...]:
    """Return the names of operations in the order of the mean moments of their computations."""
    computing = np.array(work.kinds) == JobKind.COMPUTE
    operation = np.array(work.operations)[np.array(work.instructions)[computing]]
    sums = np.bincount(operation, moments[computing], len(graph.operations))
    means = sums / np.maximum(np.bincount(operation, minlength=len(graph.operations)), 1)
    ordered = dependency_order(graph.tensors, graph.operations, means.tolist())
    return tuple([each.name for each in ordered])
