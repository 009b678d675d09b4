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
from functools import partial

import numpy as np

from ....dataflow.graph import Graph
from ....dataflow.order import dependency_order
from ....simulator.iteration_jobs import IterationJobs, JobKind
from ....simulator.jobs import Jobs
from ....simulator.list_schedule import rest, start_early, start_late
from ....simulator.simulation import Simulation
from ....support.integers import Integers

ROUNDS = 2
"""How often jobs are scheduled forward and backward."""


def scheduled_orders(graph: Graph, simulation: Simulation) -> Iterator[tuple[str, ...]]:
    """Yield the names of a graph's operations in other orders, for the tasks that are simulated."""
    work = simulation.timeline.work
    jobs = _in_any_order(work)
    kinds, operation = np.array(work.kinds), np.array(work.operations)[np.array(work.instructions)]
    computing = kinds == JobKind.COMPUTE
    receiving = np.isin(operation, operation[kinds == JobKind.MESSAGE])
    nanoseconds = np.array(jobs.nanoseconds)
    order = partial(_order, graph, operation[computing])
    priority: Sequence[int] = [-each for each in rest(jobs)]
    for _ in range(ROUNDS):
        early = np.array(start_early(jobs, priority))
        ends = early + nanoseconds
        yield order(early[computing])
        yield order(np.where(receiving, _ready(jobs, ends), early)[computing])
        priority = start_late(jobs, ends.tolist())
        yield order(np.array(priority)[computing])


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


def _ready(jobs: Jobs, ends: Integers) -> Integers:
    """Return when all that each job needs has ended."""
    found = np.zeros_like(ends)
    np.maximum.at(found, jobs.needs[:, 1], ends[jobs.needs[:, 0]])
    return found


def _order(graph: Graph, operation: Integers, moments: Integers) -> tuple[str, ...]:
    """Return the names of operations in the order of the mean moments of their computations.

    `operation` and `moments` have those of each computation.
    """
    sums = np.bincount(operation, moments, len(graph.operations))
    means = sums / np.maximum(np.bincount(operation, minlength=len(graph.operations)), 1)
    ordered = dependency_order(graph.tensors, graph.operations, means.tolist())
    return tuple([each.name for each in ordered])
