"""The bytes of an iteration by pairs of machines, planned and sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..partitioner.costs.traffic import worker_bytes
from ..programs.program import PartitionedGraph


def link_facts(
    partitioned: PartitionedGraph,
    places: Sequence[int],
    hosts: Sequence[str],
    sent: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    """Return what crosses from each machine to each, and within it, in the order of the processes.

    `places` has the process of each worker, and `hosts` the machine of each process. `sent` are bytes between
    processes, see `Executor.process_bytes`. Bytes between the workers of one process count as within its
    machine.
    """
    names = list(dict.fromkeys(hosts))
    machine = np.array([names.index(host) for host in hosts])
    planned = _summed(worker_bytes(partitioned), machine[list(places)], len(names))
    counted = _summed(np.array(sent, np.int64), machine, len(names))
    return [
        {
            "from": source,
            "to": reader,
            "planned_bytes": int(planned[i, j]),
            "sent_bytes": int(counted[i, j]),
        }
        for i, source in enumerate(names)
        for j, reader in enumerate(names)
    ]


def _summed(nbytes: np.ndarray, machine: np.ndarray, count: int) -> np.ndarray:
    """Add up the bytes between members of groups."""
    total = np.zeros((count, count), np.int64)
    np.add.at(total, (machine[:, None], machine[None, :]), nbytes)
    return total
