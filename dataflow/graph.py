"""The dataflow graph that is searched, partitioned and run: tensors and operations, in execution order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from ..operators.stages.bound_operator import BoundOperator
from ..tdl import format as format_description
from .alike import Alike
from .element_types import itemsize

if TYPE_CHECKING:
    import networkx


class Role(StrEnum):
    """The purpose of a tensor; the first six live across iterations.

    An accumulator sums a parameter's gradients over the micro-batches of one update.
    """

    DATA = "data"
    PARAMETER = "parameter"
    STATE = "state"
    AUXILIARY = "auxiliary"
    SCALAR = "scalar"
    ACCUMULATOR = "accumulator"
    ACTIVATION = "activation"
    GRADIENT = "gradient"

    @property
    def persistent(self) -> bool:
        return self not in (Role.ACTIVATION, Role.GRADIENT)


class Phase(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the graph."""

    index: int
    """Its position in `Graph.tensors`."""

    name: str
    """The name that users and plans know it by; no two tensors have the same."""

    shape: tuple[int, ...]
    """The extents of its dimensions."""

    role: Role
    """Its purpose: a parameter, data, an activation, a gradient and so on."""

    dtype: str = "float32"
    """The element type."""

    alias: int | None = None
    """The index of the tensor whose storage and layout this one takes over, as an updated weight overwrites
    the weight; None if it has its own. No operation after the one that produces the alias may read the
    aliased tensor."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return itemsize(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class Operation:
    """One bound operator."""

    index: int
    """Its position in `Graph.operations`."""

    name: str
    """The name that users and plans know it by; no two operations have the same."""

    bound: BoundOperator
    """The operator with its shapes."""

    inputs: tuple[int, ...]
    """The indices of the tensors that it reads, in the order of the description."""

    outputs: tuple[int, ...]
    """The indices of the tensors that it produces, in the order of the description."""

    phase: Phase = Phase.FORWARD
    """The part of the iteration that it belongs to."""

    tie: str | None = None
    """A name that operations with the same strategy share, such as one cell's copies at different time steps;
    None if it decides alone."""

    micro_batch: int | None = None
    """The number of the micro-batch on whose samples it works; None if it works for all micro-batches, or if
    the graph is that of one."""


@dataclass(frozen=True)
class Graph:
    """Tensors, and operations in a valid execution order."""

    name: str
    """The name of the model, for messages."""

    tensors: tuple[Tensor, ...]
    """All tensors, by index."""

    operations: tuple[Operation, ...]
    """All operations, in execution order."""

    outputs: tuple[int, ...]
    """The indices of the tensors that a user reads after an iteration."""

    def __repr__(self) -> str:
        return f"<graph {self.name!r}: {len(self.operations)} operations, {len(self.tensors)} tensors>"

    @cached_property
    def fingerprint(self) -> str:
        """Return the graph's fingerprint, computed once; see the function `fingerprint`."""

        return fingerprint(self)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Return for each tensor the one whose memory it has: itself, or the first that it overwrites."""
        roots: list[int] = []
        for tensor in self.tensors:
            roots.append(tensor.index if tensor.alias is None else roots[tensor.alias])
        return tuple(roots)

    @cached_property
    def alike(self) -> Alike:
        """Return which operations are alike, found once."""
        operators = [operation.bound for operation in self.operations]
        touched = [(*operation.inputs, *operation.outputs) for operation in self.operations]
        return Alike.of(operators, touched, self.roots, [tensor.dtype for tensor in self.tensors])

    def to_networkx(
        self, seconds: Mapping[str, float | Mapping[str, float]] | None = None
    ) -> networkx.DiGraph[str]:
        """Return a networkx graph, as `tofu.place` takes it, of operations and lasting tensors.

        Operations have `operator`, `phase` and the `bytes` of their output. Lasting tensors have `role`,
        `bytes` and `persistent_bytes`. Further outputs of an operation are nodes named after their tensors.
        `colocate` is the same for a tensor and those that overwrite it, and for an operation and its
        outputs. `seconds` are those of operations, by name, such as `tofu.simulator.operation_seconds`
        returns; without them operations have none.
        """
        return _to_networkx(self, seconds)

    def learns(self, operation: Operation) -> bool:
        """Tell whether an operation overwrites a parameter or the optimizer's state."""
        aliases = [self.tensors[output].alias for output in operation.outputs]
        roles = {self.tensors[alias].role for alias in aliases if alias is not None}
        return not roles.isdisjoint((Role.PARAMETER, Role.STATE))


def fingerprint(graph: Graph) -> str:
    """Compute the sha256 of everything a plan depends on: tensors, operations and descriptions.

    The graph's name and the kernels are left out.
    """
    digests: dict[int, str] = {}
    lines: list[list[object]] = [["tofu-graph-1", list(graph.outputs)]]
    for tensor in graph.tensors:
        lines.append([tensor.name, list(tensor.shape), str(tensor.role), tensor.dtype, tensor.alias])
    for operation in graph.operations:
        description = operation.bound.description
        digest = digests.get(id(description))
        if digest is None:
            text = format_description(description)
            digest = digests[id(description)] = hashlib.sha256(text.encode()).hexdigest()
        lines.append(
            [
                operation.name,
                digest,
                list(operation.inputs),
                list(operation.outputs),
                str(operation.phase),
                operation.tie,
            ]
        )
    return hashlib.sha256(json.dumps(lines, separators=(",", ":")).encode()).hexdigest()


def _to_networkx(
    graph: Graph, seconds: Mapping[str, float | Mapping[str, float]] | None
) -> networkx.DiGraph[str]:
    """Return a graph as networkx has it, see `Graph.to_networkx`."""
    import networkx

    found: networkx.DiGraph[str] = networkx.DiGraph()
    together = networkx.utils.UnionFind()
    operations = {operation.name for operation in graph.operations}
    made = {output for operation in graph.operations for output in operation.outputs}
    read = {each for operation in graph.operations for each in _read(operation)}
    node_of: dict[int, str] = {}
    readers: dict[int, list[str]] = {}
    for tensor in graph.tensors:
        if tensor.index not in made:
            node_of[tensor.index] = tensor.name + " (tensor)" * (tensor.name in operations)
            found.add_node(node_of[tensor.index], role=str(tensor.role), seconds=0.0)
            found.nodes[node_of[tensor.index]].update(_sizes(tensor), persistent_bytes=tensor.nbytes)
    for operation in graph.operations:
        kind = operation.bound.description.name
        found.add_node(operation.name, operator=kind, phase=str(operation.phase))
        if seconds is not None:
            found.nodes[operation.name]["seconds"] = seconds[operation.name]
        for each in _read(operation):
            found.add_edge(node_of[each], operation.name)
            readers.setdefault(each, []).append(operation.name)
        for output in operation.outputs:
            tensor, node = graph.tensors[output], operation.name
            if tensor.alias is not None:
                together.union(node_of[tensor.alias], node)
                for reader in readers.get(tensor.alias, ()):
                    if reader != node and not found.has_edge(reader, node):
                        found.add_edge(reader, node, bytes=0)
            if output != operation.outputs[0] and (tensor.alias is None or output in read):
                node = f"{operation.name}: {tensor.name}"
                found.add_node(node, seconds=0.0)
                found.add_edge(operation.name, node, bytes=0)
                together.union(operation.name, node)
            if output == operation.outputs[0] or node != operation.name:
                node_of[output] = node
                found.nodes[node].update(_sizes(tensor))
    for group in together.to_sets():
        first = next(node for node in found if node in group) if len(group) > 1 else None
        for node in group if first is not None else ():
            found.nodes[node]["colocate"] = first
    return found


def _read(operation: Operation) -> list[int]:
    """Return the tensors whose elements an operation reads, each once."""
    return list(dict.fromkeys(operation.inputs[place] for place, _ in operation.bound.read_places))


def _sizes(tensor: Tensor) -> dict[str, object]:
    """Return the size of an output, and whether it is in the memory of a lasting tensor."""
    lasting = tensor.role.persistent or tensor.alias is not None
    return {"bytes": tensor.nbytes, **({"output_persists": True} if lasting else {})}
