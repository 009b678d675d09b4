"""Merge and thin runs of points in compiled loops. Import this module only if numba is installed, see
`compiled`.

The union of many runs is merged in pairs, and the results in pairs again. A point stays if it is faster than
all that have less memory or as much. If many points wait, they are merged first, so the room for them stays
in proportion to what is left of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...support.compiled import Numbers, machine_code

WAITING = 1 << 14
"""The number of points that wait before they are merged, if no more than half as many are left of them."""


@machine_code
def put(target: Numbers, first: int, source: Numbers, count: int) -> None:
    """Copy the first numbers of a source; numba compiles this loop far sooner than a slice of slices."""
    for place in range(count):
        target[first + place] = source[place]


@machine_code
def united(
    times: Numbers, memory: Numbers, firsts: Numbers, runs: int, other_times: Numbers, other_memory: Numbers
) -> Any:
    """Merge adjacent runs, which begin at `firsts`, into one at the beginning; return its length.

    The other two arrays are as long, and are room for the merge.
    """
    swapped = False
    while runs > 1:
        end, made = 0, 0
        for run in range(0, runs, 2):
            i, i_end = firsts[run], firsts[run + 1]
            j, j_end = i_end, (firsts[run + 2] if run + 1 < runs else i_end)
            firsts[made] = end
            made += 1
            least = np.int64(2**63 - 1)
            while i < i_end or j < j_end:
                if j == j_end or (
                    i < i_end and (memory[i] < memory[j] or (memory[i] == memory[j] and times[i] <= times[j]))
                ):
                    time, size = times[i], memory[i]
                    i += 1
                else:
                    time, size = times[j], memory[j]
                    j += 1
                if time < least:
                    other_times[end], other_memory[end], least = time, size, time
                    end += 1
        firsts[made] = end
        runs = made
        times, other_times = other_times, times
        memory, other_memory = other_memory, memory
        swapped = not swapped
    length = firsts[runs]
    if swapped:
        put(other_times, 0, times, length)
        put(other_memory, 0, memory, length)
    return length


@machine_code
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
    found_times, found_memory = np.empty(entries + 1, np.int64), np.empty(entries + 1, np.int64)
    times, memory = np.empty(WAITING, np.int64), np.empty(WAITING, np.int64)
    other_times, other_memory = np.empty(WAITING, np.int64), np.empty(WAITING, np.int64)
    firsts = np.zeros(WAITING + 2, np.int64)
    for entry in range(entries):
        end, runs, left = 0, 0, 0
        for value in range(extent):
            a = a_starts[entry] + a_step * value
            b = b_starts[entry] + b_step * value
            c = c_starts[entry] + c_step * value
            c_first, c_end = c_offsets[c], c_offsets[c + 1]
            if c_first == c_end:
                continue
            for p in range(a_offsets[a], a_offsets[a + 1]):
                for q in range(b_offsets[b], b_offsets[b + 1]):
                    if end + c_end - c_first > max(WAITING, 2 * left):
                        end = left = united(times, memory, firsts, runs, other_times, other_memory)
                        runs = 1 if end else 0
                    if end + c_end - c_first > len(times):
                        longer = 2 * (end + c_end - c_first)
                        more_times, more_memory = np.empty(longer, np.int64), np.empty(longer, np.int64)
                        put(more_times, 0, times, end)
                        put(more_memory, 0, memory, end)
                        times, memory = more_times, more_memory
                        other_times, other_memory = np.empty(longer, np.int64), np.empty(longer, np.int64)
                        more_firsts = np.zeros(longer + 2, np.int64)
                        put(more_firsts, 0, firsts, runs + 1)
                        firsts = more_firsts
                    time, size = a_times[p] + b_times[q], a_memory[p] + b_memory[q]
                    for i in range(c_first, c_end):
                        times[end], memory[end] = c_times[i] + time, c_memory[i] + size
                        end += 1
                    runs += 1
                    firsts[runs] = end
        count = united(times, memory, firsts, runs, other_times, other_memory) if runs else 0
        firsts[0] = 0
        last = offsets[entry] + count
        if last > len(found_times):
            more_times, more_memory = np.empty(2 * last, np.int64), np.empty(2 * last, np.int64)
            put(more_times, 0, found_times, offsets[entry])
            put(more_memory, 0, found_memory, offsets[entry])
            found_times, found_memory = more_times, more_memory
        put(found_times, offsets[entry], times, count)
        put(found_memory, offsets[entry], memory, count)
        offsets[entry + 1] = last
    total = offsets[entries]
    return offsets, found_times[:total].copy(), found_memory[:total].copy()


@machine_code
def fewer(offsets: Numbers, times: Numbers, memory: Numbers, limit: int, corners: bool) -> Any:
    """Return offsets, times and memory of `thinning.thinned`."""
    entries = len(offsets) - 1
    found = np.zeros(entries + 1, np.int64)
    found_times, found_memory = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    end = 0
    for entry in range(entries):
        first, last = offsets[entry], offsets[entry + 1] - 1
        longer = last - first >= limit
        memory_span, time_span = 1, 1
        if longer:
            memory_span = max(memory[last] - memory[first], 1)
            time_span = max(times[first] - times[last], 1)
        bucket, least = -1, 0.0
        for point in range(first, last + 1):
            before = bucket
            bucket = -1
            if longer and first < point < last:
                size = (memory[point] - memory[first]) / memory_span
                place = size + (times[first] - times[point]) / time_span
                bucket = min(int(place * ((limit - 2) / 2)), limit - 3)
                distance = size + (times[point] - times[last]) / time_span
                if bucket == before:
                    if corners:
                        found_times[end - 1] = times[point]
                    elif distance < least:
                        found_times[end - 1], found_memory[end - 1], least = (
                            times[point],
                            memory[point],
                            distance,
                        )
                    continue
                least = distance
            found_times[end], found_memory[end] = times[point], memory[point]
            end += 1
        found[entry + 1] = end
    return found, found_times[:end].copy(), found_memory[:end].copy()
