"""What lowering makes and engines run: one instruction list per worker.

All regions are in the coordinates of the whole tensor. Every worker's list follows the graph's operation
order; inside one operation each worker first fetches, then computes, then collects the parts of the
outputs that it owns. These three positions and the operation order are the control dependencies of
Tofu, section 6: an instruction only ever waits for instructions at an earlier (operation, position).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..analyzer.region import Region
from ..dataflow.graph import Graph
from ..tdl.ast import AnyReducer


class BufferKind(StrEnum):
    SHARD = "shard"
    """the part of a tensor that the worker owns"""
    FETCHED = "fetched"
    """an input region assembled for one operation"""
    PARTIAL = "partial"
    """an output region that one operation produced and its owners collect"""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of a worker's memory holding `region` of graph tensor `tensor`, row-major."""

    index: int
    tensor: int
    region: Region
    kind: BufferKind
    nbytes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """`region` of a tensor, read from `buffer` of `worker`."""

    worker: int
    buffer: int
    region: Region


@dataclass(frozen=True, slots=True)
class MultiFetch:
    """Assemble `target`'s region from disjoint pieces (Tofu, section 6)."""

    operation: int
    target: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Run an operation on a box of its iteration space.

    `box` has one interval per variable of the bound operator. `inputs` are buffers in the order of the
    description's tensors, None where a tensor is not read; `input_regions` are the parts of them that are
    read. `outputs` are buffers whose regions are exactly the output regions of the box.
    """

    operation: int
    box: Region
    inputs: tuple[int | None, ...]
    input_regions: tuple[Region | None, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combine partial results into `target`, in the order given, which is the same on every run.

    Each part is a set of disjoint pieces from the workers that hold one term of the reduction; together
    the pieces of one part cover the target.
    """

    operation: int
    target: int
    reducer: AnyReducer
    parts: tuple[tuple[Piece, ...], ...]


Instruction = MultiFetch | Compute | Reduce


@dataclass(frozen=True, slots=True)
class Program:
    """One worker's buffers and instructions."""

    worker: int
    buffers: tuple[Buffer, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class PartitionedGraph:
    """`shards[tensor][worker]` is the buffer that holds the worker's part; -1 where it owns nothing.

    Aliases share their tensor's shard. Bytes count what crosses between workers in one iteration.
    """

    graph: Graph
    workers: int
    programs: tuple[Program, ...]
    shards: tuple[tuple[int, ...], ...]
    planned_bytes: int

    def __repr__(self) -> str:
        return f"<{self.graph!r} on {self.workers} workers: {self.planned_bytes:,} bytes planned>"
