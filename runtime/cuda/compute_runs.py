"""Computations that are issued together while the host moves messages: those of a lane between two waits.

    waits      only the first one of a run waits for anything besides its lane
    awaited    only the last one is waited for

So a run may be one graph in its stream. Nothing begins later than if each were issued by itself, and nothing
else has to wait for more. A run may pass transfers that lie between its computations, because it does not
wait for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...programs.program import Lane
from ...programs.schedule import Schedule
from ..thread_tasks import Place


def compute_runs(
    groups: Iterable[Sequence[Place]], schedule: Schedule, awaited: Collection[Place]
) -> list[tuple[Place, ...]]:
    """Return runs of computations and groups of transfers, each at the place of its first instruction.

    `groups` are in the order of the clock. `awaited` are the instructions that others wait for.
    """
    found: list[list[Place]] = []
    runs: dict[int, list[Place]] = {}
    for group in groups:
        worker, index = group[0]
        if schedule.lanes[worker][index] is not Lane.COMPUTE:
            found.append(list(group))
            continue
        if worker not in runs or schedule.waits[worker][index]:
            runs[worker] = []
            found.append(runs[worker])
        runs[worker].append((worker, index))
        if (worker, index) in awaited:
            del runs[worker]
    return list(map(tuple, found))
