"""Merge runs of points in compiled loops. Import this module only if numba is installed, see `compiled`.

A reduced run takes another one in by a merge: both have rising memory, and a point stays if it is faster than
all before it. The union of many runs is merged one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...support.compiled import Numbers, compiled


@compiled
def merged(
    a_offsets: Numbers,
    a_times: Numbers,
    a_memory: Numbers,
    a_starts: Numbers,
    a_step: int,
    b_offsets: Numbers,
    b_times: Numbers,
    b_memory: Numbers,
    b_starts: Numbers,
    b_step: int,
    c_offsets: Numbers,
    c_times: Numbers,
    c_memory: Numbers,
    c_starts: Numbers,
    c_step: int,
    extent: int,
) -> Any:
    """Return offsets, times and memory of `runs.combined` of the tables a, b and c."""
    entries = len(a_starts)
    offsets = np.zeros(entries + 1, np.int64)
    times = np.empty(max(entries, 1), np.int64)
    memory = np.empty(max(entries, 1), np.int64)
    now_times, now_memory = np.empty(64, np.int64), np.empty(64, np.int64)
    new_times, new_memory = np.empty(64, np.int64), np.empty(64, np.int64)
    for entry in range(entries):
        count = 0
        for value in range(extent):
            a = a_starts[entry] + a_step * value
            b = b_starts[entry] + b_step * value
            c = c_starts[entry] + c_step * value
            c_first, c_end = c_offsets[c], c_offsets[c + 1]
            if c_first == c_end:
                continue
            for p in range(a_offsets[a], a_offsets[a + 1]):
                for q in range(b_offsets[b], b_offsets[b + 1]):
                    time, size = a_times[p] + b_times[q], a_memory[p] + b_memory[q]
                    # Find the points with less memory than the run, or as much: they stay.
                    low, high, first = 0, count, c_memory[c_first] + size
                    while low < high:
                        middle = (low + high) // 2
                        if now_memory[middle] <= first:
                            low = middle + 1
                        else:
                            high = middle
                    if low and now_times[low - 1] <= c_times[c_end - 1] + time:
                        continue
                    needed = count + c_end - c_first
                    if needed > len(new_times):
                        new_times = np.empty(2 * needed, np.int64)
                        new_memory = np.empty(2 * needed, np.int64)
                    if low and now_memory[low - 1] == first:
                        low -= 1
                    for i in range(low):
                        new_times[i], new_memory[i] = now_times[i], now_memory[i]
                    i, j, k = low, c_first, low
                    least = now_times[low - 1] if low else np.int64(2**63 - 1)
                    while i < count or j < c_end:
                        if j == c_end:
                            take = True
                        elif i == count:
                            take = False
                        else:
                            other = c_memory[j] + size
                            take = now_memory[i] < other or (
                                now_memory[i] == other and now_times[i] <= c_times[j] + time
                            )
                        if take:
                            here, there = now_times[i], now_memory[i]
                            i += 1
                        else:
                            here, there = c_times[j] + time, c_memory[j] + size
                            j += 1
                        if here < least:
                            new_times[k], new_memory[k], least = here, there, here
                            k += 1
                    count = k
                    now_times, new_times = new_times, now_times
                    now_memory, new_memory = new_memory, now_memory
        end = offsets[entry] + count
        if end > len(times):
            more_times, more_memory = np.empty(2 * end, np.int64), np.empty(2 * end, np.int64)
            more_times[: offsets[entry]] = times[: offsets[entry]]
            more_memory[: offsets[entry]] = memory[: offsets[entry]]
            times, memory = more_times, more_memory
        for i in range(count):
            times[offsets[entry] + i], memory[offsets[entry] + i] = now_times[i], now_memory[i]
        offsets[entry + 1] = end
    total = offsets[entries]
    return offsets, times[:total].copy(), memory[:total].copy()
