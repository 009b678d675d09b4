"""Let transfers wait for each other, so that their pieces travel together.

All workers collect some tensors of a group, as gradients are reduced. Of each group all wait for the one that
is collected last, hop by hop. Instructions that touch what they write, or overwrite what they read, wait as
well and keep their order. Everything else keeps its place. Bytes and bits do not change: every instruction
does what it did, on the same values.

Assumes: the programs are in the order of the clock, and no tensor of a group is needed to make another one.
Guarantees: of two instructions of which one depends on the other, the earlier one stays earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ..errors import ProgramError
from .clock import reads, writes
from .program import Compute, Held, Instruction, PartitionedGraph, Program

_Position = tuple[int, int, int]
"""A tick, 0 or 1 if it follows those of that tick, and the tick at which it was before."""


@dataclass(slots=True)
class _Group:
    """Tensors that are collected together."""

    number: int
    """The group's number."""

    makers: frozenset[int]
    """The operations that make them."""

    last: int
    """The one whose output is collected last."""

    begin: int
    """The tick of the first hop of that one."""

    end: int
    """The tick of the last hop of any."""

    read: set[Held] = field(default_factory=set)
    """The buffers that waiting instructions read."""

    written: set[Held] = field(default_factory=set)
    """The buffers that they write."""

    def holds_back(self, worker: int, instruction: Instruction) -> bool:
        """Tell whether an instruction has to stay behind those that wait."""
        made = [(worker, buffer) for buffer in writes(instruction)]
        touched = [*reads(worker, instruction), *made]
        return not self.written.isdisjoint(touched) or not self.read.isdisjoint(made)

    def add(self, worker: int, instruction: Instruction) -> None:
        """Let an instruction wait."""
        self.read.update(reads(worker, instruction))
        self.written.update((worker, buffer) for buffer in writes(instruction))


def gather(partitioned: PartitionedGraph, groups: Sequence[Collection[int]]) -> PartitionedGraph:
    """Let the tensors of each group, given by their numbers, be collected together.

    Raises ProgramError if a tensor is in two groups, or has to be collected before another one of its group
    is made.
    """
    collected = _collected(partitioned, groups)
    found = _groups(partitioned, groups, collected)
    if not found:
        return partitioned
    positions = _positions(partitioned, found, collected)
    ticks = {position: tick for tick, position in enumerate(sorted(set(positions.values())))}
    programs = []
    for program in partitioned.programs:
        moved = [
            (ticks[positions[program.worker, index]], index) for index in range(len(program.instructions))
        ]
        listed = [replace(program.instructions[index], tick=tick) for tick, index in sorted(moved)]
        programs.append(Program(program.worker, program.buffers, tuple(listed)))
    return replace(partitioned, programs=tuple(programs))


def _collected(
    partitioned: PartitionedGraph, groups: Sequence[Collection[int]]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the group and the operation of each transfer that collects a tensor of a group, by place."""
    group_of: dict[int, int] = {}
    for number, tensors in enumerate(groups):
        for tensor in tensors:
            if group_of.setdefault(tensor, number) != number:
                name = partitioned.graph.tensors[tensor].name
                raise ProgramError(
                    f"tensor {name!r} is in groups {group_of[tensor]} and {number}; put it into one of them"
                )
    makers = {
        (operation.index, tensor): group_of[tensor]
        for operation in partitioned.graph.operations
        for tensor in operation.outputs
        if tensor in group_of
    }
    found = {}
    for program in partitioned.programs:
        for index, each in enumerate(program.instructions):
            if not isinstance(each, Compute):
                group = makers.get((each.operation, program.buffers[each.target].tensor))
                if group is not None:
                    found[program.worker, index] = group, each.operation
    return found


def _groups(
    partitioned: PartitionedGraph,
    groups: Sequence[Collection[int]],
    collected: dict[tuple[int, int], tuple[int, int]],
) -> dict[int, _Group]:
    """Return the groups of which several tensors are collected."""
    ticks: dict[int, dict[int, set[int]]] = {}
    for (worker, index), (group, operation) in collected.items():
        tick = partitioned.programs[worker].instructions[index].tick
        ticks.setdefault(group, {}).setdefault(operation, set()).add(tick)
    found = {}
    for number in range(len(groups)):
        hops = ticks.get(number, {})
        if len(hops) > 1:
            last = max(hops, key=lambda operation: min(hops[operation]))
            begin = min(hops[last])
            longest = max(max(each) - min(each) for each in hops.values())
            found[number] = _Group(number, frozenset(hops), last, begin, begin + longest)
    return found


def _positions(
    partitioned: PartitionedGraph,
    groups: dict[int, _Group],
    collected: dict[tuple[int, int], tuple[int, int]],
) -> dict[tuple[int, int], _Position]:
    """Return the new position of every instruction, visiting them in the order of the clock."""
    listed = sorted(
        (each.tick, program.worker, index)
        for program in partitioned.programs
        for index, each in enumerate(program.instructions)
    )
    firsts: dict[int, int] = {}
    waiting: list[_Group] = []
    found: dict[tuple[int, int], _Position] = {}
    for tick, worker, index in listed:
        waiting = [group for group in waiting if tick <= group.end]
        instruction = partitioned.programs[worker].instructions[index]
        behind = max(
            (each for each in waiting if each.holds_back(worker, instruction)),
            key=lambda each: each.end,
            default=None,
        )
        number, operation = collected.get((worker, index), (-1, instruction.operation))
        group = groups.get(number)
        if group is not None:
            if behind is not None and behind is not group and behind.end >= group.begin:
                raise _clash(partitioned, behind, operation)
            if group not in waiting:
                waiting.append(group)
            hop = tick - firsts.setdefault(operation, tick)
            found[worker, index] = group.begin + hop, 0, 0
            group.add(worker, instruction)
        elif behind is not None:
            if operation in behind.makers:
                raise _clash(partitioned, behind, operation)
            found[worker, index] = behind.end, 1, tick
            behind.add(worker, instruction)
        else:
            found[worker, index] = tick, 0, 0
    return found


def _clash(partitioned: PartitionedGraph, group: _Group, operation: int) -> ProgramError:
    names = [each.name for each in partitioned.graph.operations]
    return ProgramError(
        f"operation {names[operation]!r} needs tensors of group {group.number} before operation "
        f"{names[group.last]!r} makes the last one of them; put them into groups of their own"
    )
