"""Number the jobs of transfers of one tick in rounds, so that lanes serve their messages in turn.

Jobs that become ready at the same time are served by their numbers. If all messages of one reader came before
those of the next, most readers would wait for the same sender. In rounds, the first message of every reader
comes before the second one of any.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..support.integers import Integers
from .iteration_jobs import IterationJobs, JobKind

_PHASE = {
    JobKind.WAKE: 0,
    JobKind.BEGIN: 1,
    JobKind.COMPUTE: 1,
    JobKind.MESSAGE: 2,
    JobKind.FINISH: 3,
}
"""The order of the jobs of an instruction."""


def in_rounds(made: IterationJobs, ticks: Integers, runners: Integers) -> IterationJobs:
    """Return the same jobs with other numbers.

    `ticks` and `runners` are those of the instructions, of which none has to wait for another one of its tick
    unless both have the same runner.
    """
    owners, kinds = np.array(made.instructions, np.int64), np.array(made.kinds, np.int64)
    count = len(kinds)
    within = np.arange(count) - np.searchsorted(owners, owners)
    phases = np.array([_PHASE[kind] for kind in JobKind], np.int64)[kinds]
    turns = _turns(ticks, runners)
    order = np.lexsort((np.arange(count), within, phases, turns[owners], ticks[owners]))
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    moved = order[kinds[order] == JobKind.MESSAGE]
    place = np.cumsum(kinds == JobKind.MESSAGE) - 1
    listed = order.tolist()
    jobs = replace(
        made.jobs,
        nanoseconds=[made.jobs.nanoseconds[job] for job in listed],
        lanes=[made.jobs.lanes[job] for job in listed],
        needs=number[made.jobs.needs],
        order=number[made.jobs.order],
    )
    return replace(
        made,
        jobs=jobs,
        kinds=kinds[order].tolist(),
        instructions=owners[order].tolist(),
        sources=[made.sources[message] for message in place[moved].tolist()],
        nbytes=[made.nbytes[message] for message in place[moved].tolist()],
    )


def _turns(ticks: Integers, runners: Integers) -> Integers:
    """Return the place of each instruction among those of its tick and runner."""
    by_both = np.lexsort((np.arange(len(ticks)), runners, ticks))
    same = np.zeros(len(ticks), bool)
    same[1:] = (np.diff(ticks[by_both]) == 0) & (np.diff(runners[by_both]) == 0)
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(len(ticks))))
    found = np.empty(len(ticks), np.int64)
    found[by_both] = np.arange(len(ticks)) - starts
    return found
