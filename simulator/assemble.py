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

from ..support.compiled import Numbers, compiled, zeros
from .flatten_block import flattened
from .message_times import AXES, BOUNDS, FIRST_TERM, KEPT, PIECE_FIRSTS, PIECES, READERS, WORKER, entry

_NONE = -1


@compiled
def _use(memory: Numbers, at: Numbers, kept: int, sources: int, slot: int, number: int) -> tuple[int, int]:
    """Return where a holding is: itself, or a holding that its worker has of what it is made from."""
    while at[kept + slot] != _NONE:
        other = entry(memory, at[kept + slot], KEPT, number)
        if other == _NONE:
            break
        slot, number = memory[sources + slot], other
    return slot, number


@compiled
def _same_part(memory: Numbers, one: int, part: int, other: int, with_part: int) -> bool:
    """Tell whether two transfers of a tensor to one worker are for the same region of the same term."""
    if entry(memory, one, FIRST_TERM, part) != entry(memory, other, FIRST_TERM, with_part):
        return False
    axes = memory[one + AXES]
    first = one + memory[one + BOUNDS] + part * axes
    second = other + memory[other + BOUNDS] + with_part * axes
    same = True
    for axis in range(axes):
        same = same and memory[first + axis] == memory[second + axis]
    return same


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
    made = [(0, 0, 0, 0, 0)] * 0
    needs = [(0, 0)] * 0  # an instruction, and one that it needs
    reads = [(0, 0, 0)] * 0  # an instruction, a version and a holding
    writes = [(0, 0, 0)] * 0
    tick = 0
    for slot in range(others, inputs):
        moved, source = at[making + slot - others], memory[sources + slot]
        for number in range(memory[moved + READERS]):
            if entry(memory, moved, KEPT, number) == _NONE:
                for piece in range(
                    entry(memory, moved, PIECE_FIRSTS, number), entry(memory, moved, PIECE_FIRSTS, number + 1)
                ):
                    version, holding = _use(
                        memory, at, kept, sources, source, entry(memory, moved, PIECES, piece)
                    )
                    reads.append((len(made), version, holding))
                writes.append((len(made), slot, number))
                made.append((tick, entry(memory, moved, WORKER, number), moved, number, slot))
        tick += 1
    # What tasks lack is transferred once to each worker; `latest` and `earlier` list its transfers.
    latest, earlier = zeros(len(computing)), [0] * 0
    used = [(0, 0, 0, 0)] * 0  # a task, a place, a version and a holding
    lacked = [(0, 0)] * 0  # a task, and a transfer that it needs
    first_transfer = len(made)
    for task in range(count):
        worker = memory[workers + task]
        for place in range(places):
            moved, slot = at[2 + place], memory[slot_of + place]
            number = entry(memory, moved, KEPT, task)
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
                    entry(memory, moved, PIECE_FIRSTS, task), entry(memory, moved, PIECE_FIRSTS, task + 1)
                ):
                    version, holding = _use(
                        memory, at, kept, sources, slot, entry(memory, moved, PIECES, piece)
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
                    entry(memory, stop, PIECE_FIRSTS, number), entry(memory, stop, PIECE_FIRSTS, number + 1)
                ):
                    needs.append((len(made), first_task + entry(memory, stop, PIECES, piece)))
                made.append((tick, entry(memory, stop, WORKER, number), stop, number, slot))
            tick += 1
        if home == _NONE:
            continue
        for number in range(memory[home + READERS]):
            if done[number]:
                continue
            for piece in range(
                entry(memory, home, PIECE_FIRSTS, number), entry(memory, home, PIECE_FIRSTS, number + 1)
            ):
                part = entry(memory, home, PIECES, piece)
                if stop == _NONE and written[part]:
                    reads.append((len(made), slot, written[part] - 1))
                else:
                    needs.append((len(made), makers + part))
            writes.append((len(made), slot, number))
            made.append((tick, entry(memory, home, WORKER, number), home, number, slot))
    return flattened(
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
