"""The placements of outputs that descriptions allow for placements of inputs, without moving anything.

Along one axis of workers, every operation is split along one of its variables, repeated, or, if it is linear
in what it reads, run on each worker's term. It may run if every worker holds all that it reads. The boxes
follow from the descriptions, and the placements from the boxes; no operator is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...analyzer.indices.region import Boxes, Shape
from ...dataflow.graph import Graph, Operation
from ...dataflow.training import inference_graph
from ...importers.torch import from_torch
from ...importers.torch.installed import installed
from ..costs.movement import Movements, OperatorRegions, WorkerRegions
from ..layouts.forms import Entry, Partial
from ..translation.axis_uses import MeshParts, Obstacle, compared, mesh_parts
from ..translation.dtensor import say_placements
from ..translation.named_mesh import NamedMesh
from ..translation.placements import Placement, Replicate, Shard, Unreduced, chunks

AXIS = "workers"

Held = tuple[tuple[int, Placement], ...]
"""The placements of the tensors that are still read, by number."""


class DescribedRules:
    """The rules that follow from the descriptions of a graph, for one axis of workers."""

    def __init__(self, graph: Graph, workers: int) -> None:
        self._graph = graph
        self._mesh = NamedMesh((AXIS,), (workers,))
        self._movements = Movements(workers, (workers,))
        last = {tensor: operation.index for operation in graph.operations for tensor in operation.inputs}
        self._last = last | dict.fromkeys(graph.outputs, len(graph.operations))

    def outputs(self, inputs: Mapping[str, Placement]) -> set[tuple[Placement, ...]]:
        """Return the placements that outputs can have if inputs lie so, by name, and nothing moves."""
        numbers = {tensor.name: tensor.index for tensor in self._graph.tensors}
        states: set[Held] = {tuple((numbers[name], placement) for name, placement in inputs.items())}
        for operation in self._graph.operations:
            states = {
                tuple(
                    (n, p)
                    for n, p in sorted({**dict(state), **made}.items())
                    if self._read_after(n, operation)
                )
                for state in states
                for made in self._made(operation, dict(state))
            }
        return {tuple(dict(state)[output] for output in self._graph.outputs) for state in states}

    def _read_after(self, tensor: int, operation: Operation) -> bool:
        return self._last.get(tensor, -1) > operation.index

    def _made(self, operation: Operation, held: Mapping[int, Placement]) -> Iterator[dict[int, Placement]]:
        """Yield the placements of an operation's outputs, for every way to run it where its inputs lie."""
        bound = operation.bound
        read = {name: operation.inputs[place] for place, name in bound.read_places}
        terms = [name for name, tensor in read.items() if isinstance(held[tensor], Unreduced)]
        entries: Sequence[Entry] = [*bound.splits, None]
        if terms:
            summed = all(held[read[name]] == Unreduced("sum") for name in terms)
            entries = [Partial()] if summed and bound.linear_in(terms) else []
        for entry in entries:
            regions = self._movements.operator(bound, (entry,))
            if all(
                self._holds(held[tensor], self._graph.tensors[tensor].shape, regions.inputs[name])
                for name, tensor in read.items()
            ):
                made = self._placements(operation, regions)
                if made is not None:
                    yield made

    def _holds(self, placement: Placement, shape: Shape, needed: WorkerRegions) -> bool:
        """Tell whether every worker holds what its task reads."""
        whole = Replicate() if isinstance(placement, Unreduced) else placement
        parts = self._parts(needed, shape, reads=True)
        given = chunks(shape, (whole,), self._mesh)
        return isinstance(parts, MeshParts) and compared(parts, given) is None

    def _parts(self, regions: WorkerRegions, shape: Shape, *, reads: bool) -> MeshParts | Obstacle:
        boxes: Boxes = np.array(regions.regions, np.int64).reshape(len(regions.regions), len(shape), 2)
        workers, term = np.array(regions.workers, np.int64), np.array(regions.term, np.int64)
        return mesh_parts(workers, boxes, term * (not reads), self._mesh, reads=reads)

    def _placements(self, operation: Operation, regions: OperatorRegions) -> dict[int, Placement] | None:
        """Return the placements of the outputs; None if one has none."""
        found: dict[int, Placement] = {}
        for tensor, made in zip(operation.outputs, regions.outputs, strict=True):
            shape = self._graph.tensors[tensor].shape
            parts = self._parts(made, shape, reads=False)
            if isinstance(parts, Obstacle):
                return None
            said = say_placements(shape, parts, regions.reducer, self._mesh)
            if isinstance(said, Obstacle):
                return None
            found[tensor] = said[0]
        return found


def every_input(
    shapes: Sequence[Shape], terms: Sequence[bool], workers: int
) -> Iterator[tuple[Placement, ...]]:
    """Yield all placements of inputs: whole, along each dimension that splits evenly, and in terms of a sum.

    `terms` says which inputs may be terms.
    """
    choices: list[list[Placement]] = []
    for shape, summed in zip(shapes, terms, strict=True):
        even = [Shard(dim) for dim, extent in enumerate(shape) if extent and extent % workers == 0]
        choices.append([Replicate(), *even, *([Unreduced()] if summed else [])])
    yield from product(*choices)


def graph_of(torch_op: Any, inputs: Sequence[Any]) -> tuple[Graph, dict[int, str]]:
    """Return the forward graph of a function of tensors, and the name of each input that it reads.

    Raises GraphError for operators without a description.
    """
    module: Any = installed().nn.Module

    class Called(module):  # type: ignore[misc]  # PyTorch has no types here
        """The function as a module."""

        def forward(self, *given: Any) -> Any:
            return torch_op(*given)

    symbol, values = from_torch(Called(), tuple(inputs))
    names = {
        int(name.rpartition("_")[2]): name  # PyTorch numbers them, as given_0
        for name in symbol.list_arguments()
        if name not in values
    }
    shapes = {name: tuple(inputs[number].shape) or (1,) for number, name in names.items()}
    return inference_graph(symbol, shapes), names
