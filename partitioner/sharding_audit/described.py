"""The placements of outputs that descriptions allow for placements of inputs, without moving anything.

Along each axis of a mesh, every operation is split along one of its variables, repeated, or, if it is linear
in what it reads, run on each worker's term. It may run if every worker holds all that it reads. The boxes
follow from the descriptions, and the placements from the boxes; no operator is known by its name.

A tensor that every worker along an axis holds whole can be read wherever a part of it can. So of two ways to
run an operation whose results are not outputs, one that holds parts where the other one holds the whole is
left out. Implemented in: `DescribedRules.outputs` (all ways to run all operations), `_ways` (those of one).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...analyzer.bind.bound import Bound
from ...analyzer.indices.region import Boxes, Shape
from ...dataflow.graph import Graph, Operation
from ...dataflow.training import gradient_graph, inference_graph
from ...errors import GraphError
from ...importers.torch import from_torch
from ...importers.torch.installed import installed
from ..costs.movement import Movements, OperatorRegions, WorkerRegions
from ..layouts.forms import Entry, Partial
from ..translation.axis_uses import MeshParts, Obstacle, compared, mesh_parts
from ..translation.dtensor import say_placements
from ..translation.named_mesh import NamedMesh
from ..translation.placements import Placement, Placements, Replicate, Shard, Unreduced, chunks

Held = tuple[tuple[int, Placements], ...]
"""The placements of the tensors that are still read, by number."""

Way = tuple[tuple[int, Placements], ...]
"""The placements of the outputs of an operation, by number."""


class DescribedRules:
    """The rules that follow from the descriptions of a graph, on a mesh of these sizes.

    `wanted` are the tensors whose placements are asked for; without it, they are the graph's outputs.
    """

    def __init__(self, graph: Graph, sizes: tuple[int, ...], wanted: Sequence[int] | None = None) -> None:
        self._graph = graph
        self._mesh = NamedMesh(tuple(f"axis {number}" for number in range(len(sizes))), sizes)
        self._movements = Movements(self._mesh.workers, sizes)
        self._wanted = graph.outputs if wanted is None else tuple(wanted)
        self._operations = _needed(graph, self._wanted)
        last = {tensor: operation.index for operation in self._operations for tensor in operation.inputs}
        self._last = last | dict.fromkeys(self._wanted, len(graph.operations))
        self._known_ways: dict[tuple[int, Held], tuple[Way, ...]] = {}
        self._known_parts: dict[tuple[OperatorRegions, str], MeshParts | Obstacle] = {}
        self._known_held: dict[tuple[OperatorRegions, str, Placements], bool] = {}

    def outputs(self, inputs: Mapping[str, Placements]) -> set[tuple[Placements, ...]]:
        """Return the placements that outputs can have if inputs lie so, by name, and nothing moves."""
        numbers = {tensor.name: tensor.index for tensor in self._graph.tensors}
        states: set[Held] = {tuple(sorted((numbers[name], placed) for name, placed in inputs.items()))}
        for operation in self._operations:
            states = {
                tuple(
                    sorted(each for each in (*state, *way) if self._last.get(each[0], -1) > operation.index)
                )
                for state in states
                for way in self._ways(operation, dict(state))
            }
        return {tuple(dict(state)[output] for output in self._wanted) for state in states}

    def _ways(self, operation: Operation, held: Mapping[int, Placements]) -> tuple[Way, ...]:
        """Return how the outputs can lie for every way to run an operation where its inputs lie."""
        read = tuple((number, held[number]) for number in dict.fromkeys(operation.inputs) if number in held)
        key = operation.index, read
        if key not in self._known_ways:
            found = tuple(dict.fromkeys(self._made(operation, dict(read))))
            if not set(self._wanted).intersection(operation.outputs):
                found = tuple(way for way in found if not any(_holds_more(other, way) for other in found))
            self._known_ways[key] = found
        return self._known_ways[key]

    def _made(self, operation: Operation, held: Mapping[int, Placements]) -> Iterator[Way]:
        bound = operation.bound
        read = {name: operation.inputs[place] for place, name in bound.read_places}
        for form in product(
            *(self._entries(bound, read, held, axis) for axis in range(len(self._mesh.sizes)))
        ):
            regions = self._regions(bound, form)
            if regions is not None and all(
                self._holds(regions, name, held[tensor], self._graph.tensors[tensor].shape)
                for name, tensor in read.items()
            ):
                made = self._placements(operation, regions)
                if made is not None:
                    yield made

    def _entries(
        self, bound: Bound, read: Mapping[str, int], held: Mapping[int, Placements], axis: int
    ) -> Sequence[Entry]:
        """Return what an operation can do along an axis, given where along it terms are read."""
        along = {name: held[tensor][axis] for name, tensor in read.items()}
        terms = [name for name, placement in along.items() if isinstance(placement, Unreduced)]
        if not terms:
            return [*bound.splits, None]
        summed = all(along[name] == Unreduced("sum") for name in terms)
        return [Partial()] if summed and bound.linear_in(terms) else []

    def _regions(self, bound: Bound, form: tuple[Entry, ...]) -> OperatorRegions | None:
        """Return the regions of a form; None if a variable has fewer values than parts."""
        for variable in {entry for entry in form if isinstance(entry, str)}:
            cuts = [size for entry, size in zip(form, self._mesh.sizes, strict=True) if entry == variable]
            if bound.extents[variable] < prod(cuts):
                return None
        return self._movements.operator(bound, form)

    def _holds(self, regions: OperatorRegions, name: str, placed: Placements, shape: Shape) -> bool:
        """Tell whether every worker holds what its task reads."""
        key = regions, name, placed
        if key not in self._known_held:
            whole = tuple(Replicate() if isinstance(each, Unreduced) else each for each in placed)
            if (regions, name) not in self._known_parts:
                needed = self._parts(regions.inputs[name], shape, reads=True)
                self._known_parts[regions, name] = needed
            parts = self._known_parts[regions, name]
            given = chunks(shape, whole, self._mesh)
            self._known_held[key] = isinstance(parts, MeshParts) and compared(parts, given) is None
        return self._known_held[key]

    def _parts(self, regions: WorkerRegions, shape: Shape, *, reads: bool) -> MeshParts | Obstacle:
        boxes: Boxes = np.array(regions.regions, np.int64).reshape(len(regions.regions), len(shape), 2)
        workers, term = np.array(regions.workers, np.int64), np.array(regions.term, np.int64)
        return mesh_parts(workers, boxes, term * (not reads), self._mesh, reads=reads)

    def _placements(self, operation: Operation, regions: OperatorRegions) -> Way | None:
        """Return the placements of the outputs; None if one has none."""
        found: list[tuple[int, Placements]] = []
        for tensor, made in zip(operation.outputs, regions.outputs, strict=True):
            shape = self._graph.tensors[tensor].shape
            parts = self._parts(made, shape, reads=False)
            if isinstance(parts, Obstacle):
                return None
            said = say_placements(shape, parts, regions.reducer, self._mesh)
            if isinstance(said, Obstacle):
                return None
            found.append((tensor, said))
        return tuple(found)


def _needed(graph: Graph, wanted: Sequence[int]) -> list[Operation]:
    """Return the operations that tensors depend on, in order."""
    tensors = set(wanted)
    found = []
    for operation in reversed(graph.operations):
        if tensors.intersection(operation.outputs):
            tensors.update(operation.inputs)
            found.append(operation)
    return found[::-1]


def _holds_more(way: Way, other: Way) -> bool:
    """Tell whether a way differs from another one only in that it holds the whole instead of parts."""
    pairs = [
        (one, two)
        for (_, ours), (_, theirs) in zip(way, other, strict=True)
        for one, two in zip(ours, theirs, strict=True)
        if one != two
    ]
    return bool(pairs) and all(one == Replicate() and isinstance(two, Shard) for one, two in pairs)


def every_input(
    shapes: Sequence[Shape], terms: Sequence[bool], sizes: tuple[int, ...]
) -> Iterator[tuple[Placements, ...]]:
    """Yield all placements of inputs: along each axis whole, along each dimension that it splits evenly after
    the axes before, and in terms of a sum.

    `terms` says which inputs may be terms.
    """
    yield from product(*(_of_one(shape, summed, sizes) for shape, summed in zip(shapes, terms, strict=True)))


def _of_one(shape: Shape, summed: bool, sizes: tuple[int, ...]) -> list[Placements]:
    choices: list[Placement] = [Replicate(), *map(Shard, range(len(shape))), *([Unreduced()] * summed)]
    found = []
    for placed in product(choices, repeat=len(sizes)):
        cuts = [
            prod(size for each, size in zip(placed, sizes, strict=True) if each == Shard(dim))
            for dim in range(len(shape))
        ]
        if all(cut == 1 or (extent and extent % cut == 0) for extent, cut in zip(shape, cuts, strict=True)):
            found.append(placed)
    return found


@dataclass(frozen=True, slots=True)
class DescribedCall:
    """A call of an operator as a graph: of its outputs, or of the gradients of inputs."""

    graph: Graph
    """The graph."""

    inputs: Mapping[int, str]
    """The name of each input that the graph reads, by its number."""

    heads: Mapping[int, str]
    """The name of the gradient of each output that is fed, by its number; that of a loss is one."""

    wanted: tuple[int, ...]
    """The outputs, or the gradients."""


def described_call(
    torch_op: Any, inputs: Sequence[Any], differentiated: Sequence[int] | None = None
) -> DescribedCall:
    """Return the graph of a function of tensors, or of the gradients of the inputs with these numbers.

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
    if differentiated is None:
        graph = inference_graph(symbol, shapes)
        return DescribedCall(graph, names, {}, graph.outputs)
    graph = gradient_graph(symbol, shapes, [names[number] for number in differentiated])
    outputs = len(symbol.list_outputs())
    wanted = graph.outputs[outputs:]
    if len(wanted) != len(differentiated):
        raise GraphError(
            f"{len(differentiated)} inputs have a gradient in PyTorch, and {len(wanted)} by their description"
        )
    fed = {tensor.name for tensor in graph.tensors}
    heads = {n: f"head({graph.tensors[output].name})" for n, output in enumerate(graph.outputs[:outputs])}
    return DescribedCall(graph, names, {n: name for n, name in heads.items() if name in fed}, wanted)
