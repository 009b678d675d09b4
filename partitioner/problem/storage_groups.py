"""Groups of tensors that share their storage, and the operations that touch them, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dataflow.graph import Graph, Operation
from ..layouts.uses import touched

RUNS = 6
"""The most runs into which the readers of a tensor are cut."""


@dataclass(frozen=True, slots=True)
class Event:
    """An operation that touches a group of tensors."""

    operation: int
    """The operation's number in the graph."""

    turn: int
    """Its place in the order."""

    reads: tuple[str, ...]
    """The parameters through which it reads a tensor of the group; empty if it reads none."""

    member: int
    """The number, within the group, of the tensor that it reads."""

    makes: int | None
    """The number of its output that belongs to the group; None if it makes none of it."""


@dataclass(frozen=True, slots=True)
class StorageGroup:
    """A tensor and those that overwrite it, one after the other."""

    tensors: tuple[int, ...]
    """Their numbers in the graph."""

    events: tuple[Event, ...]
    """The operations that touch them, in order."""

    lasting: bool
    """Whether they live across iterations."""

    returned: bool
    """Whether one of them is a result of the graph, which lives to the end."""


def groups_of(graph: Graph, order: Sequence[Operation]) -> list[StorageGroup]:
    """Group the tensors of a graph by storage, in the order of their first tensors."""
    root = graph.roots
    members: dict[int, list[int]] = {}
    for tensor in graph.tensors:
        members.setdefault(root[tensor.index], []).append(tensor.index)
    place = {index: number for listed in members.values() for number, index in enumerate(listed)}
    events: dict[int, list[Event]] = {number: [] for number in members}
    for turn, operation in enumerate(order):
        reads: dict[int, tuple[tuple[str, ...], int]] = {}
        makes: dict[int, int] = {}
        for index, use in touched(operation):
            if isinstance(use, int):
                makes[root[index]] = use
            else:
                reads[root[index]] = use, place[index]
        for number in dict.fromkeys((*reads, *makes)):
            names, member = reads.get(number, ((), 0))
            events[number].append(Event(operation.index, turn, names, member, makes.get(number)))
    returned = {root[tensor] for tensor in graph.outputs}
    return [
        StorageGroup(
            tuple(listed), tuple(events[number]), graph.tensors[number].role.persistent, number in returned
        )
        for number, listed in members.items()
    ]


def windows_of(group: StorageGroup) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the events of every window of readers."""
    found: list[tuple[int, ...]] = []
    for member in range(len(group.tensors)):
        readers = [n for n, event in enumerate(group.events) if event.reads and event.member == member]
        turns = [group.events[number].turn for number in readers]
        waits = sorted(range(1, len(readers)), key=lambda place: turns[place - 1] - turns[place])
        bounds = [0, *sorted(waits[: RUNS - 1]), len(readers)]
        found += [
            tuple(readers[start:stop])
            for number, start in enumerate(bounds)
            for stop in bounds[number + 1 :]
            if stop - start > 1
        ]
    return tuple(found)
