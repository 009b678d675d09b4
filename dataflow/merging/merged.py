"""Make one operation of several that do the same to different tensors, where fewer bytes are touched then.

    given    a training graph
    result   a graph with the same outputs and updates, up to rounding, in which groups of operations are one

The tensors in which members of a group differ are stacked. The operator gets one variable more:

    siblings   y[part, n, h] = Sum(lambda k: x[part, n, k] * w[h, k]); each member's result is a slice of y
    terms      the sum of all members = Sum(lambda part, n: dy[part, n, h] * x[part, n, k])

Strategies, gradients and kernels of the new operation follow from its description. A stack is made once and
shared by all groups that read it, and slices are not stacked again. The group that saves most comes
first. Bytes that are touched:

    siblings   before  inputs and result of every member
               after   inputs and result of the new operation; twice each new stack; twice the slices
    terms      before  inputs and result of every member; three times the result for each addition
               after   inputs and result of the new operation; twice each new stack

Implemented in: `candidates` (the groups), `_Merging._saving` (the bytes), `_Merging._merge` (the graph).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ...operators.library import registry
from ...operators.stages.stage import Stage, derived
from ...support.gc_pause import gc_paused
from ...tdl import ast
from ..builder import Names, numbered
from ..graph import Graph, Operation, Phase, Role, Tensor
from ..order import dependency_order, hoist_updates, prune
from ..rewrites.lifted import applied, indexed, unused
from .candidates import Candidate, addition_tree, candidates, is_addition

PART = "part"
"""The new variable."""

MOST_PARTS = 64
"""The most operations that become one; more would nest the description of a stack too deeply."""


@gc_paused()
def merged(graph: Graph) -> Graph:
    """Return the graph with operations merged where fewer bytes are touched then.

    It is the same graph if that is nowhere.
    """
    return _Merging(graph).run()


@dataclass(frozen=True, slots=True)
class _Group:
    """Members of a candidate, in the order in which their tensors are stacked."""

    members: tuple[Operation, ...]
    """The operations."""

    shared: Mapping[str, int]
    """The tensors that all members read, by the name in the description."""

    stacked: Mapping[str, tuple[int, ...]]
    """The tensors of the members, by the name in the description, if they differ."""

    total: int | None
    """The tensor that is a sum of what the members make; None for siblings."""


@dataclass(frozen=True, slots=True)
class _Stack:
    """Tensors that exist as one."""

    parts: tuple[int, ...]
    """The tensors, in order."""

    whole: int
    """The tensor with one dimension more."""

    split: int | None
    """The operation that slices the parts out of the whole; None if the whole was made from the parts."""


class _Merging:
    """The graph in the making: operations by number, of which new ones have the highest."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors = list(graph.tensors)
        self._operations = {operation.index: operation for operation in graph.operations}
        self._places = {operation.index: operation.index for operation in graph.operations}
        self._next = len(graph.operations)
        self._maker = {output: each.index for each in graph.operations for output in each.outputs}
        self._readers: dict[int, set[int]] = {tensor.index: set() for tensor in graph.tensors}
        for operation in graph.operations:
            for index in operation.inputs:
                self._readers[index].add(operation.index)
        self._stacks: dict[frozenset[int], _Stack] = {}
        self._tensor_names = Names(tensor.name for tensor in graph.tensors)
        self._operation_names = Names(operation.name for operation in graph.operations)

    def run(self) -> Graph:
        """Merge the candidate that saves most, and go on until no merge saves anything."""
        waiting = [part for each in candidates(self._graph) for part in _parts(each)]
        found = True
        while found:
            found = False
            waiting.sort(key=self._saving, reverse=True)
            for candidate in waiting:
                group = self._group(candidate)
                if group is not None and self._saving(candidate) > 0 and not self._makes_cycle(group):
                    self._merge(group)
                    found = True
            waiting = [each for each in waiting if self._group(each) is not None]
        if self._next == len(self._graph.operations):
            return self._graph
        numbers = sorted(self._operations)
        operations = [self._operations[number] for number in numbers]
        ordered = dependency_order(self._tensors, operations, [self._places[number] for number in numbers])
        kept = prune(self._tensors, ordered, self._graph.outputs)
        return numbered(
            self._graph.name, self._tensors, hoist_updates(self._tensors, kept), self._graph.outputs
        )

    def _group(self, candidate: Candidate) -> _Group | None:
        """Return the group of a candidate; None if a member is gone, or nothing is to be stacked."""
        if any(number not in self._operations for number in candidate.members):
            return None
        members = [self._operations[number] for number in candidate.members]
        first = members[0]
        reads = {place for place, _ in first.bound.read_places}
        shared, stacked = {}, {}
        for place, name in enumerate(first.bound.description.tensor_names):
            given = tuple([each.inputs[place] for each in members])
            if place in reads and len(set(given)) > 1:
                stacked[name] = given
            else:
                shared[name] = given[0]
        made = [self._tensors[each.outputs[0]] for each in members]
        alike = [made, *([self._tensors[index] for index in given] for given in stacked.values())]
        if not stacked or any(len({tensor.dtype for tensor in each}) > 1 for each in alike):
            return None
        order = self._order(stacked)
        return _Group(
            tuple([members[place] for place in order]),
            shared,
            {name: tuple([given[place] for place in order]) for name, given in stacked.items()},
            candidate.total,
        )

    def _order(self, stacked: Mapping[str, tuple[int, ...]]) -> list[int]:
        """Return the order of members in which a stack exists, else that of their earliest tensors."""
        for given in stacked.values():
            known = self._stacks.get(frozenset(given))
            if known is not None and len(known.parts) == len(given):
                number = {index: place for place, index in enumerate(known.parts)}
                return sorted(range(len(given)), key=lambda place: number[given[place]])
        earliest = min(stacked.values(), key=min)
        return sorted(range(len(earliest)), key=lambda place: earliest[place])

    def _saving(self, candidate: Candidate) -> int:
        """Return how many bytes fewer are touched if a candidate is merged; 0 if it cannot be."""
        group = self._group(candidate)
        if group is None:
            return 0
        made = sum(self._nbytes(each.outputs[0]) for each in group.members)
        before = made + sum(
            self._nbytes(each.inputs[place]) for each in group.members for place, _ in each.bound.read_places
        )
        after = sum(self._nbytes(index) for given in group.stacked.values() for index in given)
        after += sum(
            self._nbytes(group.shared[name])
            for _, name in group.members[0].bound.read_places
            if name in group.shared
        )
        after += sum(self._stacking(group, given) for given in dict.fromkeys(group.stacked.values()))
        if group.total is None:
            return before - after - 3 * made
        one = made // len(group.members)
        return before + 3 * (made - one) - after - one

    def _stacking(self, group: _Group, parts: tuple[int, ...]) -> int:
        """Return the bytes that are touched to have a stack; below 0 if slices are not needed any more."""
        both = 2 * sum(self._nbytes(index) for index in parts)
        known = self._stacks.get(frozenset(parts))
        if known is None or known.parts != parts:
            return both
        merging = {each.index for each in group.members}
        if known.split is not None and all(self._readers[index] <= merging for index in parts):
            return -both
        return 0

    def _makes_cycle(self, group: _Group) -> bool:
        """Tell whether a sibling waits for another one. Terms never do: their sum waits for all of them."""
        if group.total is not None:
            return False
        members = {each.index for each in group.members}
        seen = set(members)
        waiting = list(members)
        while waiting:
            for output in self._operations[waiting.pop()].outputs:
                for reader in self._readers[output]:
                    if reader in members:
                        return True
                    if reader not in seen:
                        seen.add(reader)
                        waiting.append(reader)
        return False

    def _merge(self, group: _Group) -> None:
        """Put one operation in the place of the members of a group."""
        first, count = group.members[0], len(group.members)
        place = min(self._places[each.index] for each in group.members)
        description = first.bound.description
        part = unused(description, PART)
        stacks = {each: self._stack(parts, place, first) for each, parts in group.stacked.items()}
        inputs = {**group.shared, **stacks}
        name = f"merged({_common_name(group.members)})"
        for each in group.members:
            self._remove(each)
        if group.total is None:
            stage = derived(applied(description, frozenset(group.stacked), part, count))
            self._slice(group, self._make(name, stage, inputs, place, first), place)
        else:
            stage = derived(_summed(description, frozenset(group.stacked), part, count))
            self._add_up(group, group.total, stage, inputs, name, place)

    def _stack(self, parts: tuple[int, ...], place: int, reader: Operation) -> int:
        """Return the tensor that has tensors one after the other in its first dimension.

        A tensor that the forward pass reads is made there, even if it was first stacked for the backward
        pass.
        """
        known = self._stacks.get(frozenset(parts))
        if known is not None and known.parts == parts:
            maker = self._operations[self._maker[known.whole]]
            if reader.phase is Phase.FORWARD:
                self._operations[maker.index] = replace(maker, phase=Phase.FORWARD)
            return known.whole
        inputs = {f"arg{number}": index for number, index in enumerate(parts)}
        shapes = {name: self._tensors[index].shape for name, index in inputs.items()}
        (stage,) = registry.get("stack").stages({"num_args": len(parts), "axis": 0}, shapes)
        name = f"stacked({self._tensors[parts[0]].name})"
        whole = self._make(name, stage, inputs, place, replace(reader, outputs=parts[:1]))
        self._stacks[frozenset(parts)] = _Stack(parts, whole, None)
        return whole

    def _slice(self, group: _Group, whole: int, place: int) -> None:
        """Make the results of members slices of a tensor."""
        parts = tuple([each.outputs[0] for each in group.members])
        attributes = {"num_outputs": len(parts), "axis": 0, "squeeze_axis": True}
        (stage,) = registry.get("SliceChannel").stages(attributes, {"data": self._tensors[whole].shape})
        name = f"slices({self._tensors[whole].name})"
        split = self._put(name, stage, {"data": whole}, parts, place, group.members[0])
        self._stacks[frozenset(parts)] = _Stack(parts, whole, split)

    def _add_up(
        self, group: _Group, total: int, stage: Stage, inputs: Mapping[str, int], name: str, place: int
    ) -> None:
        """Make a total the sum of what an operator makes and of the terms that are not of members."""
        additions, terms = addition_tree(self._operations[self._maker[total]], self._inner)
        members = {each.outputs[0] for each in group.members}
        others = [index for index in terms if index not in members]
        for each in additions:
            self._remove(each)
        if not others:
            self._put(name, stage, inputs, (total,), place, group.members[0])
            return
        found = self._make(name, stage, inputs, place, group.members[0])
        for term, addition in zip(others, reversed(additions[: len(others)]), strict=True):
            self._enter(replace(addition, inputs=(found, term)))
            (found,) = addition.outputs

    def _inner(self, index: int) -> Operation | None:
        """Return the addition that makes a tensor, if nothing but one addition reads it."""
        number = self._maker.get(index)
        if number is None or len(self._readers[index]) != 1 or index in self._graph.outputs:
            return None
        operation = self._operations[number]
        return operation if is_addition(operation.bound.description) else None

    def _make(self, name: str, stage: Stage, inputs: Mapping[str, int], place: int, like: Operation) -> int:
        """Add an operation and the tensor that it makes, of the role and type of what another makes."""
        (shape,) = stage.bind(
            {each: self._tensors[index].shape for each, index in inputs.items()}
        ).output_shapes
        tensor = self._tensors[like.outputs[0]]
        made = Tensor(
            len(self._tensors), _taken(self._tensor_names, name), shape, _role(tensor), tensor.dtype
        )
        self._tensors.append(made)
        self._readers[made.index] = set()
        self._put(name, stage, inputs, (made.index,), place, like)
        return made.index

    def _put(
        self,
        name: str,
        stage: Stage,
        inputs: Mapping[str, int],
        outputs: tuple[int, ...],
        place: int,
        like: Operation,
    ) -> int:
        """Add an operation that makes given tensors, and return its number."""
        bound = stage.bind({each: self._tensors[index].shape for each, index in inputs.items()})
        given = tuple([inputs[each] for each in stage.inputs])
        number = self._next
        self._next += 1
        self._places[number] = place
        name = _taken(self._operation_names, name)
        self._enter(Operation(number, name, bound, given, outputs, like.phase, None, like.micro_batch))
        return number

    def _enter(self, operation: Operation) -> None:
        self._operations[operation.index] = operation
        for index in operation.outputs:
            self._maker[index] = operation.index
        for index in operation.inputs:
            self._readers[index].add(operation.index)

    def _remove(self, operation: Operation) -> None:
        del self._operations[operation.index]
        for index in operation.outputs:
            del self._maker[index]
        for index in operation.inputs:
            self._readers[index].discard(operation.index)

    def _nbytes(self, index: int) -> int:
        return self._tensors[index].nbytes


def _parts(candidate: Candidate) -> list[Candidate]:
    """Return candidates with as many members as one operation may have."""
    members = candidate.members
    cut = [members[first : first + MOST_PARTS] for first in range(0, len(members), MOST_PARTS)]
    return [replace(candidate, members=each) for each in cut if len(each) > 1]


def _summed(description: ast.Description, tensors: Set[str], part: str, count: int) -> ast.Description:
    """Return a description of the sum of an operator's results over a new first dimension of some tensors."""
    found = indexed(description, tensors, ast.Variable(part))
    (output,) = found.outputs
    first = ast.Binder(part, ast.Number(count))
    match output.body:
        case ast.ReducerCall(ast.Reducer.SUM, variables, body):
            body = ast.ReducerCall(ast.Reducer.SUM, (first, *variables), body)
        case _:
            body = ast.ReducerCall(ast.Reducer.SUM, (first,), output.body)
    return replace(found, outputs=(replace(output, body=body),))


def _role(tensor: Tensor) -> Role:
    """Return the role of a stack of tensors such as this one."""
    return Role.GRADIENT if tensor.role is Role.GRADIENT else Role.ACTIVATION


def _common_name(members: Sequence[Operation]) -> str:
    """Return the tie that all members share, or the name of the first one."""
    ties = {each.tie for each in members}
    tie = ties.pop()
    return members[0].name if ties or tie is None else tie


def _taken(names: Names, name: str) -> str:
    """Return an unused name, and mark it as used."""
    found = names.unused(name)
    names.taken.add(found)
    return found
