"""Cut a chain of gradients into groups, each of which is reduced at once, so that the last one is done first.

    given         when each gradient is made, in order; its bytes; what a group costs: a constant, and for
                  each byte and each gradient
    variables     where one group ends and the next one begins
    objective     when the last group is reduced
    recurrence    done[k] = min over j < k of max(done[j], made[k]) + cost of the gradients j to k

A group waits for its last gradient, and for the group before it. A group that is done earlier never hurts
those after it, so the recurrence is exact. It takes time quadratic in the number of gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def cut_chain(
    made: Sequence[float], nbytes: Sequence[float], constant: float, per_byte: float, per_gradient: float
) -> tuple[float, list[int]]:
    """Return when the last group is done, and the group of each gradient."""
    count = len(made)
    latest = np.maximum.accumulate(np.array(made, float)) if count else np.zeros(0)
    costs = np.concatenate([[0.0], np.cumsum(np.array(nbytes, float) * per_byte + per_gradient)])
    done = np.zeros(count + 1)
    before = np.zeros(count + 1, int)
    for last in range(1, count + 1):
        ends = np.maximum(done[:last], latest[last - 1]) + constant + costs[last] - costs[:last]
        before[last] = int(ends.argmin())
        done[last] = ends[before[last]]
    groups = [0] * count
    number, last = 0, count
    while last:
        first = int(before[last])
        groups[first:last] = [number] * (last - first)
        number, last = number + 1, first
    return float(done[count]), groups
