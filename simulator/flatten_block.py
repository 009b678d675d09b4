"""The loop that writes the instructions of a block as one list of integers, in the order of the clock."""

from __future__ import annotations

from ..programs.program import Lane
from ..support.compiled import Numbers, compiled, packed, zeros
from .blocks import (
    AFTER,
    BEFORE,
    BEGIN,
    COUNT,
    FINISH,
    FOLLOW_FIRSTS,
    LEG_FIRSTS,
    LEG_OWNER,
    LEG_TIME,
    LEG_WAY,
    LEGS,
    MESSAGE_BYTES,
    NEED_FIRSTS,
    NOTES,
    READ_FIRSTS,
    RUNNER,
    RUNNER_ENDS,
    RUNNERS,
    SENDERS,
    TIME_SOURCES,
    TRANSFERS,
    USES,
    WORKERS,
    WRITE_FIRSTS,
)
from .message_times import BEGIN as PART_BEGIN
from .message_times import FINISH as PART_FINISH
from .message_times import (
    FIRSTS,
    NBYTES,
    SENDER,
    entry,
)
from .message_times import TIME as MESSAGE_TIME
from .message_times import TIME_SOURCE as PART_SOURCE
from .message_times import WAY as MESSAGE_WAY

_NONE = -1
_COMPUTE, _TRANSFER, _LANES = int(Lane.COMPUTE), int(Lane.TRANSFER), len(Lane)


@compiled
def _grouped(keys: list[int], count: int) -> tuple[Numbers, Numbers]:
    """Return where each key from 0 to `count` begins if keys are sorted, and their places in that order."""
    firsts, order = zeros(count + 1), zeros(len(keys))
    for key in keys:
        firsts[key + 1] += 1
    for key in range(count):
        firsts[key + 1] += firsts[key]
    for place in range(len(keys)):
        key = keys[place]
        order[firsts[key]] = place
        firsts[key] += 1
    for key in range(count, 0, -1):
        firsts[key] = firsts[key - 1]
    firsts[0] = 0
    return firsts, order


@compiled
def _put_firsts(words: list[int], head: int, firsts: Numbers, begin: int, end: int, width: int) -> None:
    """Append where the entries of keys from `begin` on begin, as they follow, and the end at `end`."""
    words[head] = len(words)
    after = len(words) + end - begin + 1
    for key in range(begin, end + 1):
        words.append(after + width * (firsts[key] - firsts[begin]))


@compiled
def flattened(
    memory: Numbers,
    made: list[tuple[int, int, int, int, int]],
    needs: list[tuple[int, int]],
    reads: list[tuple[int, int, int]],
    writes: list[tuple[int, int, int]],
    held: Numbers,
    others: int,
    spent: int,
    spent_sources: int,
    runners: Numbers,
    computing: Numbers,
) -> tuple[Numbers, Numbers]:
    """Return instructions in the order of the clock, in integers, and their notes."""
    count = len(made)
    last = 0
    for tick, _, _, _, _ in made:
        last = max(last, tick)
    by_worker = _grouped([one[1] for one in made], len(computing))[1]
    by_tick = _grouped([made[own][0] for own in by_worker], last + 1)[1]
    order, rank = zeros(count), zeros(count)
    for place in range(count):
        order[place] = by_worker[by_tick[place]]
        rank[order[place]] = place
    words, notes = [0] * (USES + 2 * len(held)), [0] * (NOTES + 1)
    words[COUNT] = count
    begins, finishes, leg_firsts = zeros(count), zeros(count), zeros(count + 1)
    times, ways, owners = [0] * 0, [0] * 0, [0] * 0
    senders, nbytes = [0] * 0, [0] * 0
    notes[WORKERS] = len(notes)
    for each in order:
        notes.append(made[each][1])
    notes[TRANSFERS] = len(notes)
    for each in order:
        notes.append(1 if made[each][2] != _NONE else 0)
    notes[TIME_SOURCES] = len(notes)
    words[RUNNER] = len(words)
    for place in range(count):
        _, worker, moved, part, _ = made[order[place]]
        if moved == _NONE:
            words.append(runners[worker * _LANES + _COMPUTE])
            notes.append(memory[spent_sources + part])
            times.append(memory[spent + part])
            ways.append(computing[worker])
            owners.append(place)
        else:
            words.append(runners[worker * _LANES + _TRANSFER])
            notes.append(entry(memory, moved, PART_SOURCE, part))
            begins[place] = entry(memory, moved, PART_BEGIN, part)
            finishes[place] = entry(memory, moved, PART_FINISH, part)
            for message in range(entry(memory, moved, FIRSTS, part), entry(memory, moved, FIRSTS, part + 1)):
                times.append(entry(memory, moved, MESSAGE_TIME, message))
                ways.append(entry(memory, moved, MESSAGE_WAY, message))
                owners.append(place)
                senders.append(entry(memory, moved, SENDER, message))
                nbytes.append(entry(memory, moved, NBYTES, message))
        leg_firsts[place + 1] = len(owners)
    words[LEGS] = len(owners)
    notes[SENDERS] = len(notes)
    notes.extend(senders)
    notes[MESSAGE_BYTES] = len(notes)
    notes.extend(nbytes)
    notes[NOTES] = len(notes)
    words[BEGIN] = len(words)
    words.extend(begins)
    words[FINISH] = len(words)
    words.extend(finishes)
    words[LEG_FIRSTS] = len(words)
    words.extend(leg_firsts)
    words[LEG_TIME] = len(words)
    words.extend(times)
    words[LEG_WAY] = len(words)
    words.extend(ways)
    words[LEG_OWNER] = len(words)
    words.extend(owners)
    # The needs of jobs, in both directions.
    firsts, listed = _grouped([rank[need[0]] for need in needs], count)
    _put_firsts(words, NEED_FIRSTS, firsts, 0, count, 1)
    for place in listed:
        words.append(rank[needs[place][1]])
    follow_firsts, followers = _grouped([rank[needs[at][1]] for at in listed], count)
    _put_firsts(words, FOLLOW_FIRSTS, follow_firsts, 0, count, 1)
    for place in followers:
        words.append(rank[needs[listed[place]][0]])
    # Which instruction reads and writes which holding, in both directions.
    holdings = zeros(len(held) + 1)
    for slot in range(len(held)):
        holdings[slot + 1] = holdings[slot] + held[slot]
    firsts, listed = _grouped([rank[read[0]] for read in reads], count)
    _put_firsts(words, READ_FIRSTS, firsts, 0, count, 2)
    for place in listed:
        words.append(reads[place][1])
        words.append(reads[place][2])
    read_firsts, readers = _grouped(
        [holdings[reads[at][1]] + reads[at][2] for at in listed], holdings[len(held)]
    )
    for slot in range(len(held)):
        begin, end = holdings[slot], holdings[slot + 1]
        _put_firsts(words, USES + 2 * slot, read_firsts, begin, end, 1)
        for place in range(read_firsts[begin], read_firsts[end]):
            words.append(rank[reads[listed[readers[place]]][0]])
    firsts, listed = _grouped([rank[write[0]] for write in writes], count)
    _put_firsts(words, WRITE_FIRSTS, firsts, 0, count, 2)
    for place in listed:
        words.append(writes[place][1])
        words.append(writes[place][2])
    writers = [_NONE] * holdings[len(held)]
    for each, slot, number in writes:
        writers[holdings[slot] + number] = rank[each]
    for slot in range(others, len(held)):
        words[USES + 2 * slot + 1] = len(words)
        words.extend(writers[holdings[slot] : holdings[slot + 1]])
    # The order of each runner.
    before, after = zeros(count), zeros(count)
    final = zeros(len(runners))
    ends = [(0, 0)] * 0  # a runner and its first instruction
    for place in range(count):
        runner = words[words[RUNNER] + place]
        before[place], after[place] = final[runner] - 1, _NONE
        if final[runner]:
            after[final[runner] - 1] = place
        else:
            ends.append((runner, place))
        final[runner] = place + 1
    words[BEFORE] = len(words)
    words.extend(before)
    words[AFTER] = len(words)
    words.extend(after)
    words[RUNNERS] = len(ends)
    words[RUNNER_ENDS] = len(words)
    for runner, first in ends:
        words.append(runner)
        words.append(first)
        words.append(final[runner] - 1)
    return packed(words), packed(notes)
