"""Passes over operations: drop the dead ones, move weight updates forward, order by what each waits for."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from .graph import Operation, Phase, Tensor


def prune(
    tensors: Sequence[Tensor], operations: Sequence[Operation], outputs: Sequence[int]
) -> list[Operation]:
    """Keep the operations that an output or an updated persistent tensor depends on."""
    needed = set(outputs)
    kept: list[Operation] = []
    for operation in reversed(operations):
        produced = operation.outputs
        if not any(index in needed or tensors[index].alias is not None for index in produced):
            continue
        needed.update(operation.inputs)
        kept.append(operation)
    kept.reverse()
    return kept


def hoist_updates(tensors: Sequence[Tensor], operations: Sequence[Operation]) -> list[Operation]:
    """Place each update right after the last operation that it waits for.

    An update waits for the operations that produce its inputs, and for the last reader of every tensor
    that it overwrites. A gradient then lives no longer than it must.
    """
    produced_at: dict[int, int] = {}
    last_read: dict[int, int] = {}
    slots: list[list[Operation]] = [[] for _ in range(len(operations) + 1)]
    others = [operation for operation in operations if operation.phase is not Phase.UPDATE]
    updates = [operation for operation in operations if operation.phase is Phase.UPDATE]
    for position, operation in enumerate(others):
        for index in operation.inputs:
            last_read[index] = position
        for index in operation.outputs:
            produced_at[index] = position
    for update in updates:
        position = max((produced_at.get(index, -1) for index in update.inputs), default=-1)
        for index in update.outputs:
            alias = tensors[index].alias
            if alias is not None:
                position = max(position, last_read.get(alias, -1))
        for index in update.inputs:
            last_read[index] = max(last_read.get(index, -1), position)
        for index in update.outputs:
            produced_at[index] = position
        slots[position + 1].append(update)
    ordered = list(slots[0])
    for position, operation in enumerate(others):
        ordered.append(operation)
        ordered.extend(slots[position + 1])
    return ordered


def dependency_order(
    tensors: Sequence[Tensor], operations: Sequence[Operation], places: Sequence[float]
) -> list[Operation]:
    """Order operations so that each comes after those that it waits for, and those of low places early.

    An operation waits for the makers of its inputs, and for all readers of a tensor that it overwrites.
    """
    made = {output: number for number, each in enumerate(operations) for output in each.outputs}
    readers: dict[int, list[int]] = {}
    for number, operation in enumerate(operations):
        for index in operation.inputs:
            readers.setdefault(index, []).append(number)
    waits: list[set[int]] = []
    for number, operation in enumerate(operations):
        found = {made[index] for index in operation.inputs if index in made}
        for index in operation.outputs:
            found.update(readers.get(alias, ()) if (alias := tensors[index].alias) is not None else ())
        waits.append(found - {number})
    followers: list[list[int]] = [[] for _ in operations]
    for number, found in enumerate(waits):
        for each in found:
            followers[each].append(number)
    missing = [len(found) for found in waits]
    ready = [(places[number], number) for number, count in enumerate(missing) if not count]
    heapify(ready)
    ordered: list[Operation] = []
    while ready:
        _, number = heappop(ready)
        ordered.append(operations[number])
        for each in followers[number]:
            missing[each] -= 1
            if not missing[each]:
                heappush(ready, (places[each], each))
    return ordered
