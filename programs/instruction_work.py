"""The work of instructions, on which their time depends: a kind, sizes, and amounts that time grows with.

Instructions of the same kind and sizes are *equal work*: they take the same time on the same machine. A kind
of computations is the text of a description, the kernel that is attached to it, and element types. Their
sizes are those of the box and of the regions that it reads. A kind of transfers is a fetch or a reducer, and
an element type. Their sizes are those of the pieces, own and from other workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..analyzer.indices.region import Boxes, Region, volume
from ..dataflow.graph import Graph, Operation
from ..support.integers import Integers
from ..tdl.printer import format as text_of
from .program import MESSAGES, BufferKind, Compute, MultiFetch, PartitionedGraph, Reduce

Sizes = tuple[int, ...]
"""Sizes of work, or its amounts."""


@dataclass(frozen=True, slots=True)
class BoxWork:
    """The work of several boxes of an operation."""

    flops: Integers | None
    """The floating-point operations of each; None if an opaque function hides them."""

    nbytes: Integers
    """The bytes that each reads and makes."""

    @property
    def amounts(self) -> Integers:
        """`[box, amount]`: 1 for its start, operations that are not hidden, and bytes."""
        flops = np.zeros_like(self.nbytes) if self.flops is None else self.flops
        return np.stack([np.ones_like(flops), flops, self.nbytes], axis=1)


@dataclass(frozen=True, slots=True)
class Computations:
    """All computations of a program with equal bound operators and element types."""

    operation: Operation
    """One of the operations."""

    places: list[tuple[int, int]]
    """The worker and the index of each computation."""

    boxes: Boxes
    """The box of each, `[computation, variable, 2]`."""


@dataclass(frozen=True, slots=True)
class TransferWork:
    """A transfer of a program."""

    place: tuple[int, int]
    """Its worker and index."""

    kind: str
    """Whether it fetches or how it reduces, and the element type."""

    sizes: tuple[int, ...]
    """For each piece, 1 if another worker holds it, else 0, and the lengths of its region."""

    amounts: tuple[int, int, int]
    """Pieces, bytes that are touched besides messages, and bytes from other workers."""


def computations(partitioned: PartitionedGraph) -> Iterator[Computations]:
    """Yield all computations, those of equal bound operators and element types together."""
    graph = partitioned.graph
    alike: dict[tuple[Any, ...], tuple[Operation, list[tuple[int, int]], list[Region]]] = {}
    members = []
    for operation in graph.operations:
        types = _types(graph, operation)
        members.append(alike.setdefault((id(operation.bound), *types), (operation, [], [])))
    for worker, program in enumerate(partitioned.programs):
        for index, instruction in enumerate(program.instructions):
            if isinstance(instruction, Compute):
                _, places, regions = members[instruction.operation]
                places.append((worker, index))
                regions.append(instruction.box)
    for operation, places, regions in alike.values():
        if places:
            boxes = np.array(regions, np.int64).reshape(len(places), len(operation.bound.variables), 2)
            yield Computations(operation, places, boxes)


def count_work(
    graph: Graph, operation: Operation, boxes: Boxes, elements: Sequence[Integers] | None = None
) -> BoxWork:
    """Return the work of boxes `[n, variable, 2]` of an operation.

    `elements` are those of each tensor that the boxes read, and of each output, if they are known.
    """
    bound = operation.bound
    tensors = [*(operation.inputs[place] for place, _ in bound.read_places), *operation.outputs]
    if elements is None:
        read = bound.input_regions(boxes)
        regions = [*(read[name] for _, name in bound.read_places), *bound.output_regions(boxes)]
        elements = [volume(each) for each in regions]
    nbytes = np.zeros(len(boxes), np.int64)
    for tensor, each in zip(tensors, elements, strict=True):
        nbytes += each * graph.tensors[tensor].itemsize
    return BoxWork(bound.flops_of(boxes), nbytes)


def box_sizes(operation: Operation, boxes: Boxes) -> list[Sizes]:
    """Return for each box its sizes and those of the regions that it reads."""
    read = operation.bound.input_regions(boxes)
    regions = [boxes, *(read[name] for _, name in operation.bound.read_places)]
    found = np.concatenate([each[..., 1] - each[..., 0] for each in regions], axis=1)
    return list(map(tuple, found.tolist()))


def transfers(partitioned: PartitionedGraph) -> Iterator[TransferWork]:
    """Yield all transfers. The terms of a reduction are read and its sum is written, once for each term."""
    tensors = partitioned.graph.tensors
    for worker, program in enumerate(partitioned.programs):
        for index, instruction in enumerate(program.instructions):
            match instruction:
                case MultiFetch(pieces=pieces):
                    parts, verb = (pieces,), "fetch"
                case Reduce(parts=parts, reducer=reducer):
                    verb = f"reduce by {reducer}"
                case Compute():
                    continue
            target = program.buffers[instruction.target]
            if target.kind in MESSAGES and isinstance(instruction, MultiFetch):
                yield message_work(target.kind, (worker, index), len(instruction.pieces), target.nbytes)
                continue
            tensor = tensors[target.tensor]
            sizes: list[int] = []
            own = remote = 0
            for piece in (piece for part in parts for piece in part):
                lengths = [upper - lower for lower, upper in piece.region]
                sizes += (int(piece.worker != worker), *lengths)
                if piece.worker == worker:
                    own += tensor.itemsize * prod(lengths)
                else:
                    remote += tensor.itemsize * prod(lengths)
            touched = (len(parts) + 1) * target.nbytes if isinstance(instruction, Reduce) else 2 * own
            amounts = (sum(map(len, parts)), touched, remote)
            yield TransferWork((worker, index), f"{verb} {tensor.dtype}", tuple(sizes), amounts)


def message_work(kind: BufferKind, place: tuple[int, int], pieces: int, nbytes: int) -> TransferWork:
    """Return the work of a part of a message's way. Its amounts are 1, pieces and bytes."""
    return TransferWork(place, message_kind(kind), (pieces, nbytes), (1, pieces, nbytes))


def message_kind(kind: BufferKind) -> str:
    """Return the kind of work of a part of a message's way."""
    return f"message {kind}"


def _types(graph: Graph, operation: Operation) -> tuple[str, ...]:
    return tuple(graph.tensors[tensor].dtype for tensor in (*operation.inputs, *operation.outputs))


def widest_type(graph: Graph, operation: Operation) -> str:
    """Return the widest type that an operation reads, or makes if it reads nothing."""
    read = [graph.tensors[operation.inputs[place]] for place, _ in operation.bound.read_places]
    made = [graph.tensors[tensor] for tensor in operation.outputs]
    return max(read or made, key=lambda tensor: tensor.itemsize).dtype


def kind_of(graph: Graph, operation: Operation) -> str:
    """Return the text of the description, with attributes put in, the kernel, and the element types."""
    bound = operation.bound
    kernel = getattr(bound, "kernel", None)
    lines = [text_of(bound.description), ", ".join(_types(graph, operation))]
    if kernel is not None:
        lines.append(f"by {kernel.__module__}.{getattr(kernel, '__qualname__', type(kernel).__qualname__)}")
    return "\n".join(lines)
