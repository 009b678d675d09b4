"""Compute activations again in the backward pass instead of keeping them (Chen et al., 2016, section 4).

    given    a training graph, whose forward operations are cut into segments of consecutive ones
    kept     what a later segment reads, outputs, and small results; of the last segment everything
    result   a graph in which the backward pass reads `recomputed(x)` in place of any other x

The operations that make `recomputed(x)` are those that make x, right before the first reader. They read what
is kept, or was computed again before, so each runs at most twice, and results are the same to the bit if both
runs add in the same order. A plan may split them in two ways. So an operation that compares a result with its
operands for equality, such as the gradient of a maximum, reads the result of the second run as well.

Cuts are placed where few bytes pass from one segment to the next:

    minimise     sum of the bytes that pass cuts  +  room
    constraint   activations of a segment that the backward pass reads  <=  room

over some rooms that need no more segments than asked for. Implemented in: `recomputed` (the graph), `_cuts`
(where segments begin), `_cuts_within` (the best cuts for a room).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod

from ..errors import GraphError
from ..support.checked_argument import require_count
from .builder import Names, numbered
from .equality import compared_tensors
from .graph import Graph, Operation, Phase, Role, Tensor
from .order import hoist_updates

ROOMS = 40
"""The number of rooms that are tried; each is smaller than the one before by the same factor."""

SHRINK = 0.85
"""That factor."""

SMALL = 16
"""A result this many times smaller than what it was computed from is kept."""


def recomputed(graph: Graph, segments: int) -> Graph:
    """Return the graph whose forward pass is cut into this many segments at most; 1 leaves it as it is.

    A graph without a backward pass stays as it is. Raises GraphError for fewer segments than 1.
    """
    require_count(segments, "recompute", GraphError, 1)
    forward = [operation for operation in graph.operations if operation.phase is Phase.FORWARD]
    if segments == 1 or len(forward) == len(graph.operations):
        return graph
    dropped = _dropped(graph, forward, _cuts(graph, forward, segments))
    return _Rewrite(graph, dropped).run() if dropped else graph


class _Rewrite:
    """Inserts operations into the backward pass."""

    def __init__(self, graph: Graph, dropped: set[int]) -> None:
        self._graph = graph
        self._dropped = dropped
        self._tensors = list(graph.tensors)
        self._operations: list[Operation] = []
        self._made: dict[int, int] = {}
        self._second: dict[int, int] = {}
        """Second runs of results that are kept, by the tensor."""
        self._producers = {index: o for o in graph.operations for index in o.outputs}
        self._tensor_names = Names(tensor.name for tensor in graph.tensors)
        self._operation_names = Names(operation.name for operation in graph.operations)

    def run(self) -> Graph:
        for operation in self._graph.operations:
            if operation.phase is not Phase.FORWARD:
                for index in operation.inputs:
                    self._recompute(index)
                compared = self._compared(operation)
                read = [compared.get(index, index) for index in self._read(operation.inputs)]
                operation = replace(operation, inputs=tuple(read))
            self._operations.append(operation)
        ordered = hoist_updates(self._tensors, self._operations)
        return numbered(self._graph.name, self._tensors, ordered, self._graph.outputs)

    def _recompute(self, wanted: int) -> None:
        """Add the operations that make a tensor again, unless it is kept or was made before."""
        waiting = [wanted]
        while waiting:
            index = waiting[-1]
            if index not in self._dropped or index in self._made:
                waiting.pop()
                continue
            producer = self._producers[index]
            missing = [i for i in producer.inputs if i in self._dropped and i not in self._made]
            if missing:
                waiting += missing
            else:
                waiting.pop()
                self._again(producer)

    def _compared(self, operation: Operation) -> dict[int, int]:
        """Return what stands for kept results that an operation compares with operands computed again."""
        description = operation.bound.description
        names = compared_tensors(description)
        inputs = zip(description.tensor_names, operation.inputs, strict=True)
        compared = {index for name, index in inputs if name in names}
        again = compared & self._dropped
        for index in sorted(compared - again - self._second.keys()):
            producer = self._producers.get(index)
            if producer is None or producer.phase is not Phase.FORWARD:
                continue
            if not again.isdisjoint(producer.inputs):
                for each in producer.inputs:
                    self._recompute(each)
                self._again(producer)
        return self._second if again else {}

    def _again(self, operation: Operation) -> None:
        outputs = tuple([self._copy(self._graph.tensors[index]) for index in operation.outputs])
        self._operations.append(
            Operation(
                len(self._operations),
                _named(self._operation_names, operation.name),
                operation.bound,
                self._read(operation.inputs),
                outputs,
                Phase.BACKWARD,
                operation.tie and f"recomputed({operation.tie})",
                operation.micro_batch,
            )
        )
        for old, new in zip(operation.outputs, outputs, strict=True):
            (self._made if old in self._dropped else self._second)[old] = new

    def _copy(self, tensor: Tensor) -> int:
        name = _named(self._tensor_names, tensor.name)
        self._tensors.append(replace(tensor, index=len(self._tensors), name=name))
        return len(self._tensors) - 1

    def _read(self, inputs: Sequence[int]) -> tuple[int, ...]:
        return tuple([self._made.get(index, index) for index in inputs])


def _named(names: Names, name: str) -> str:
    found = names.unused(f"recomputed({name})")
    names.taken.add(found)
    return found


def _dropped(graph: Graph, forward: Sequence[Operation], cuts: Sequence[int]) -> set[int]:
    """Return the tensors that are not kept until the backward pass, given the first places of segments."""
    segment = {}
    for number, (first, end) in enumerate(pairwise([*cuts, len(forward)])):
        for operation in forward[first:end]:
            segment.update(dict.fromkeys(operation.outputs, number))
    found = {index for index, number in segment.items() if number < len(cuts) - 1}
    found.difference_update(graph.outputs)
    overwritten = {tensor.alias for tensor in graph.tensors if tensor.alias is not None}
    overwritten -= {tensor.index for tensor in graph.tensors if tensor.role is Role.PARAMETER}
    for operation in forward:
        number = segment[operation.outputs[0]]
        found.difference_update(index for index in operation.inputs if segment.get(index, number) < number)
        if not overwritten.isdisjoint(operation.inputs) or _is_reduction(graph, operation):
            found.difference_update(operation.outputs)
    return found


def _is_reduction(graph: Graph, operation: Operation) -> bool:
    """Tell whether an operation overwrites something, or makes little from much."""
    if any(graph.tensors[index].alias is not None for index in operation.outputs):
        return True
    made = sum(_nbytes(graph.tensors[index]) for index in operation.outputs)
    return SMALL * made <= max((_nbytes(graph.tensors[index]) for index in operation.inputs), default=0)


def _cuts(graph: Graph, forward: Sequence[Operation], segments: int) -> list[int]:
    """Return the first places of at most this many segments."""
    passing, read = _passing(graph, forward), _read_backward(graph, forward)
    upto = [0, *accumulate(read)]
    rooms = sorted({max(*read, int(upto[-1] * SHRINK**number)) for number in range(ROOMS)}, reverse=True)
    best, least = [0], upto[-1]
    for room in rooms:
        cuts = _cuts_within(passing, upto, room)
        cost = sum(passing[cut] for cut in cuts) + room
        if len(cuts) <= segments and cost < least:
            best, least = cuts, cost
    return best


def _cuts_within(passing: Sequence[int], upto: Sequence[int], room: int) -> list[int]:
    """Return the first places of segments that read at most `room`, between which the fewest bytes pass.

    Place p is before the operation p; the best last cut before it is the least in a window of places.
    """
    least, before = [0], [0]
    window = deque([0])
    for place in range(1, len(upto)):
        while upto[place] - upto[window[0]] > room:
            window.popleft()
        best = window[0]
        least.append(least[best] + (passing[place] if place < len(passing) else 0))
        before.append(best)
        while window and least[window[-1]] > least[place]:
            window.pop()
        window.append(place)
    cuts = [before[-1]]
    while cuts[-1]:
        cuts.append(before[cuts[-1]])
    return cuts[::-1]


def _passing(graph: Graph, forward: Sequence[Operation]) -> list[int]:
    """Return, for the place before each operation, the bytes made before it that it or a later one reads."""
    made: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, operation in enumerate(forward):
        last.update(dict.fromkeys(operation.inputs, place))
        made.update(dict.fromkeys(operation.outputs, place))
    change = [0] * (len(forward) + 1)
    for index, place in made.items():
        if last.get(index, place) > place:
            change[place + 1] += _nbytes(graph.tensors[index])
            change[last[index] + 1] -= _nbytes(graph.tensors[index])
    return list(accumulate(change))[:-1]


def _read_backward(graph: Graph, forward: Sequence[Operation]) -> list[int]:
    """Return, for each operation, the bytes of its results that the backward pass reads."""
    later = {i for o in graph.operations if o.phase is not Phase.FORWARD for i in o.inputs}
    return [
        sum(_nbytes(graph.tensors[index]) for index in operation.outputs if index in later)
        for operation in forward
    ]


def _nbytes(tensor: Tensor) -> int:
    return prod(tensor.shape) * tensor.itemsize
