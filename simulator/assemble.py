"""The loop that puts the instructions of a block together, on integers alone.

It reads one list of integers (`memory`). A second one (`at`) tells where the following begin, in this order:

    the versions     how an operation touches them: the numbers of places that it reads, of versions, of those
                     that others make, and of those that are not outputs; the version of each place; the
                     version that each version is made from, or -1; the first version with its storage
    the tasks        their number; for each place whether it is read in place; for each task its worker, its
                     time and the source of its time
    the inputs       for each place, the transfers that tasks need
    the holdings     for each version, their number itself
    the sources      for each version, the transfers from the version that it is made from, if it may be held
                     there; -1 otherwise
    the copies       the transfers that make each
    the outputs      for each, which holding each task can make in place, the transfers to a stop, and those
                     home; -1 for what there is not
"""

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
from .message_times import (
    AXES,
    BOUNDS,
    FIRST_TERM,
    FIRSTS,
    KEPT,
    NBYTES,
    PIECE_FIRSTS,
    PIECES,
    READERS,
    SENDER,
)
from .message_times import BEGIN as PART_BEGIN
from .message_times import FINISH as PART_FINISH
from .message_times import TIME as MESSAGE_TIME
from .message_times import TIME_SOURCE as PART_SOURCE
from .message_times import WAY as MESSAGE_WAY
from .message_times import WORKER as PART_WORKER

_NONE = -1
_COMPUTE, _TRANSFER, _LANES = int(Lane.COMPUTE), int(Lane.TRANSFER), len(Lane)


@compiled
def _of(memory: Numbers, transfers: int, head: int, number: int) -> int:
    """Return an entry of a list of transfers."""
    return int(memory[transfers + memory[transfers + head] + number])


@compiled
def _use(memory: Numbers, at: Numbers, kept: int, sources: int, slot: int, number: int) -> tuple[int, int]:
    """Return where a holding is: itself, or a holding that its worker has of what it is made from."""
    while at[kept + slot] != _NONE:
        other = _of(memory, at[kept + slot], KEPT, number)
        if other == _NONE:
            break
        slot, number = memory[sources + slot], other
    return slot, number


@compiled
def _same_part(memory: Numbers, one: int, part: int, other: int, with_part: int) -> bool:
    """Tell whether two transfers of a tensor to one worker are for the same region of the same term."""
    if _of(memory, one, FIRST_TERM, part) != _of(memory, other, FIRST_TERM, with_part):
        return False
    axes = memory[one + AXES]
    first = one + memory[one + BOUNDS] + part * axes
    second = other + memory[other + BOUNDS] + with_part * axes
    same = True
    for axis in range(axes):
        same = same and memory[first + axis] == memory[second + axis]
    return same


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
def assemble(memory: Numbers, at: Numbers, runners: Numbers, computing: Numbers) -> tuple[Numbers, Numbers]:
    """Return the integers of a block and its notes.

    `runners` are the lanes of all workers, and `computing` the way of each worker's computations.
    """
    places, slots, others, inputs = memory[at[0]], memory[at[0] + 1], memory[at[0] + 2], memory[at[0] + 3]
    slot_of = at[0] + 4
    sources, storage = slot_of + places, slot_of + places + slots
    count, in_place = memory[at[1]], at[1] + 1
    workers = in_place + places
    spent, spent_sources = workers + count, workers + 2 * count
    held = 2 + places
    kept, making = held + slots, held + 2 * slots
    homes = making + inputs - others
    # The instructions: when in the operation, the worker, the transfers or -1, which of their parts or which
    # task, and the version.
    made = [(0, 0, 0, 0, 0)]
    made.pop()
    needs = [(0, 0)]  # an instruction, and one that it needs
    needs.pop()
    reads = [(0, 0, 0)]  # an instruction, a version and a holding
    reads.pop()
    writes = [(0, 0, 0)]
    writes.pop()
    tick = 0
    for slot in range(others, inputs):
        moved, source = at[making + slot - others], memory[sources + slot]
        for number in range(memory[moved + READERS]):
            if _of(memory, moved, KEPT, number) == _NONE:
                for piece in range(
                    _of(memory, moved, PIECE_FIRSTS, number), _of(memory, moved, PIECE_FIRSTS, number + 1)
                ):
                    version, holding = _use(
                        memory, at, kept, sources, source, _of(memory, moved, PIECES, piece)
                    )
                    reads.append((len(made), version, holding))
                writes.append((len(made), slot, number))
                made.append((tick, _of(memory, moved, PART_WORKER, number), moved, number, slot))
        tick += 1
    # What tasks lack is transferred once to each worker; `latest` and `earlier` list its transfers.
    latest, earlier = zeros(len(computing)), [0]
    earlier.pop()
    used = [(0, 0, 0, 0)]  # a task, a place, a version and a holding
    used.pop()
    lacked = [(0, 0)]  # a task, and a transfer that it needs
    lacked.pop()
    first_transfer = len(made)
    for task in range(count):
        worker = memory[workers + task]
        for place in range(places):
            moved, slot = at[2 + place], memory[slot_of + place]
            number = _of(memory, moved, KEPT, task)
            if number != _NONE:
                version, holding = _use(memory, at, kept, sources, slot, number)
                used.append((task, place, version, holding))
                continue
            same = latest[worker] - 1
            while same >= 0:
                _, _, known, part, version = made[first_transfer + same]
                if version == slot and _same_part(memory, moved, task, known, part):
                    break
                same = earlier[same] - 1
            if same < 0:
                same = len(earlier)
                earlier.append(latest[worker])
                latest[worker] = same + 1
                for piece in range(
                    _of(memory, moved, PIECE_FIRSTS, task), _of(memory, moved, PIECE_FIRSTS, task + 1)
                ):
                    version, holding = _use(
                        memory, at, kept, sources, slot, _of(memory, moved, PIECES, piece)
                    )
                    reads.append((len(made), version, holding))
                made.append((tick, worker, moved, task, slot))
            lacked.append((task, first_transfer + same))
    first_task, last = len(made), tick
    ticks = zeros(len(computing))
    for task in range(count):
        worker = memory[workers + task]
        ticks[worker] = max(ticks[worker], tick) + 1
        last = max(last, ticks[worker])
        made.append((ticks[worker], worker, _NONE, task, _NONE))
    tick = last + 1
    for task, transfer in lacked:
        needs.append((first_task + task, transfer))
    first_uses = zeros(count + 1)
    for task, _, _, _ in used:
        first_uses[task + 1] += 1
    for task in range(count):
        first_uses[task + 1] += first_uses[task]
    for task in range(count):
        for use in range(first_uses[task], first_uses[task + 1]):
            _, _, version, holding = used[use]
            again = False
            for before in range(first_uses[task], use):
                again = again or (used[before][2] == version and used[before][3] == holding)
            if not again:
                reads.append((first_task + task, version, holding))
    for slot in range(inputs, slots):
        matches, stop, home = at[homes], at[homes + 1], at[homes + 2]
        homes += 3
        written, done = zeros(count), zeros(at[held + slot])
        if matches != _NONE:
            for task in range(count):
                number = memory[matches + task]
                if number != _NONE and not _is_read(
                    memory, slot, task, number, storage, in_place, workers, inputs, used, first_uses
                ):
                    writes.append((first_task + task, slot, number))
                    written[task] = number + 1
                    done[number] = 1
        makers = first_task
        if stop != _NONE:
            makers = len(made)
            for number in range(memory[stop + READERS]):
                for piece in range(
                    _of(memory, stop, PIECE_FIRSTS, number), _of(memory, stop, PIECE_FIRSTS, number + 1)
                ):
                    needs.append((len(made), first_task + _of(memory, stop, PIECES, piece)))
                made.append((tick, _of(memory, stop, PART_WORKER, number), stop, number, slot))
            tick += 1
        if home == _NONE:
            continue
        for number in range(memory[home + READERS]):
            if done[number]:
                continue
            for piece in range(
                _of(memory, home, PIECE_FIRSTS, number), _of(memory, home, PIECE_FIRSTS, number + 1)
            ):
                part = _of(memory, home, PIECES, piece)
                if stop == _NONE and written[part]:
                    reads.append((len(made), slot, written[part] - 1))
                else:
                    needs.append((len(made), makers + part))
            writes.append((len(made), slot, number))
            made.append((tick, _of(memory, home, PART_WORKER, number), home, number, slot))
    return _flattened(
        memory, made, needs, reads, writes, at[held : held + slots], others, spent,
        spent_sources, runners, computing,
    )  # fmt: skip


@compiled
def _is_read(
    memory: Numbers,
    output: int,
    task: int,
    number: int,
    storage: int,
    in_place: int,
    workers: int,
    inputs: int,
    used: list[tuple[int, int, int, int]],
    first_uses: Numbers,
) -> bool:
    """Tell whether a task must not overwrite a holding, because it or another one of its worker reads it.

    The task itself may read it at the places at which each element is read only when it is written.
    """
    shared = False
    for slot in range(inputs):
        shared = shared or memory[storage + slot] == memory[storage + output]
    if not shared:
        return False
    for other in range(len(first_uses) - 1):
        if memory[workers + other] == memory[workers + task]:
            for use in range(first_uses[other], first_uses[other + 1]):
                _, place, version, holding = used[use]
                if (
                    holding == number
                    and memory[storage + version] == memory[storage + output]
                    and (other != task or memory[in_place + place] == 0)
                ):
                    return True
    return False


@compiled
def _flattened(
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
    _, by_worker = _grouped([each[1] for each in made], len(computing))
    _, by_tick = _grouped([made[each][0] for each in by_worker], last + 1)
    order, rank = zeros(count), zeros(count)
    for place in range(count):
        order[place] = by_worker[by_tick[place]]
        rank[order[place]] = place
    words = [0 for _ in range(USES + 2 * len(held))]
    notes = [0 for _ in range(NOTES + 1)]
    words[COUNT] = count
    begins, finishes, leg_firsts = zeros(count), zeros(count), zeros(count + 1)
    times, ways, owners = [0], [0], [0]
    times.pop()
    ways.pop()
    owners.pop()
    senders, nbytes = [0], [0]
    senders.pop()
    nbytes.pop()
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
            notes.append(_of(memory, moved, PART_SOURCE, part))
            begins[place] = _of(memory, moved, PART_BEGIN, part)
            finishes[place] = _of(memory, moved, PART_FINISH, part)
            for message in range(_of(memory, moved, FIRSTS, part), _of(memory, moved, FIRSTS, part + 1)):
                times.append(_of(memory, moved, MESSAGE_TIME, message))
                ways.append(_of(memory, moved, MESSAGE_WAY, message))
                owners.append(place)
                senders.append(_of(memory, moved, SENDER, message))
                nbytes.append(_of(memory, moved, NBYTES, message))
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
    # What needs what, in both directions.
    firsts, listed = _grouped([rank[each[0]] for each in needs], count)
    _put_firsts(words, NEED_FIRSTS, firsts, 0, count, 1)
    for place in listed:
        words.append(rank[needs[place][1]])
    follow_firsts, followers = _grouped([rank[needs[place][1]] for place in listed], count)
    _put_firsts(words, FOLLOW_FIRSTS, follow_firsts, 0, count, 1)
    for place in followers:
        words.append(rank[needs[listed[place]][0]])
    # Which instruction reads and writes which holding, in both directions.
    holdings = zeros(len(held) + 1)
    for slot in range(len(held)):
        holdings[slot + 1] = holdings[slot] + held[slot]
    firsts, listed = _grouped([rank[each[0]] for each in reads], count)
    _put_firsts(words, READ_FIRSTS, firsts, 0, count, 2)
    for place in listed:
        words.append(reads[place][1])
        words.append(reads[place][2])
    read_firsts, readers = _grouped(
        [holdings[reads[place][1]] + reads[place][2] for place in listed], holdings[len(held)]
    )
    for slot in range(len(held)):
        begin, end = holdings[slot], holdings[slot + 1]
        _put_firsts(words, USES + 2 * slot, read_firsts, begin, end, 1)
        for place in range(read_firsts[begin], read_firsts[end]):
            words.append(rank[reads[listed[readers[place]]][0]])
    firsts, listed = _grouped([rank[each[0]] for each in writes], count)
    _put_firsts(words, WRITE_FIRSTS, firsts, 0, count, 2)
    for place in listed:
        words.append(writes[place][1])
        words.append(writes[place][2])
    writers = [_NONE for _ in range(holdings[len(held)])]
    for each, slot, number in writes:
        writers[holdings[slot] + number] = rank[each]
    for slot in range(others, len(held)):
        words[USES + 2 * slot + 1] = len(words)
        words.extend(writers[holdings[slot] : holdings[slot + 1]])
    # The order of each runner.
    before, after = zeros(count), zeros(count)
    final = zeros(len(runners))
    ends = [(0, 0)]  # a runner and its first instruction
    ends.pop()
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
