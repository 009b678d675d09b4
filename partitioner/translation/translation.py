"""A plan as another system says it: every tensor and operation, or the reason why not.

    tensors       where the home of a tensor lies
    operations    where an operation must find its inputs, and where its outputs come out before anything is
                  reduced: a system redistributes whatever lies elsewhere
    unsaid        everything of the plan that the system has no words for

A system may move bytes in its own way between these places, and order transfers as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph, Operation
from ...support.wording import counted
from ...tdl.ast import AnyReducer
from ..costs.movement import Movements, OperatorRegions, WorkerRegions
from ..layouts.copies import Copies, ReadCopy
from ..layouts.forms import Form
from ..layouts.step_split import Layout
from .axis_uses import MeshParts, Obstacle, mesh_parts
from .named_mesh import NamedMesh

S = TypeVar("S")

Say = Callable[[Shape, MeshParts, AnyReducer | None, NamedMesh], S | Obstacle]
"""Says how a tensor lies, from its shape, its parts, what combines its terms, and the mesh."""


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Something of a plan that another system cannot say."""

    subject: str
    """A tensor, an operation, a parameter or the plan, such as `tensor 'fc1_weight'`."""

    reason: Obstacle
    """Why."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason.kind}: {self.reason.text}"


@dataclass(frozen=True, slots=True)
class OperationPlaces(Generic[S]):
    """Where an operation finds its inputs and makes its outputs."""

    inputs: tuple[S | None, ...]
    """For each input of the operation; None if it is not read."""

    outputs: tuple[S, ...]
    """For each output, before partial results are reduced."""


@dataclass(frozen=True, slots=True)
class Translation(Generic[S]):
    """A plan as another system says it."""

    system: str
    """The name of the system."""

    mesh: NamedMesh
    """The workers, with names of axes."""

    tensors: Mapping[str, S]
    """For each tensor name, how its home lies."""

    operations: Mapping[str, OperationPlaces[S]]
    """For each operation name, how its inputs and outputs lie."""

    unsaid: tuple[Unsaid, ...]
    """Everything that the system cannot say. A tensor or an operation is above or here."""

    def __str__(self) -> str:
        listed = "\n".join(f"  {each}" for each in self.unsaid)
        tensors, operations = counted(len(self.tensors), "tensor"), counted(len(self.operations), "operation")
        said = f"{self.system} on {self.mesh}: {tensors} and {operations} said"
        return f"{said}, {counted(len(self.unsaid), 'thing')} not said" + (f"\n{listed}" if listed else "")


class Choices(Protocol):
    """The choices of a plan, which `tofu.Plan` has."""

    @property
    def factors(self) -> tuple[int, ...]:
        """Return the number of groups into which each step splits a group of workers."""

    @property
    def layouts(self) -> Mapping[str, Layout]:
        """Return the layout of each tensor."""

    @property
    def strategies(self) -> Mapping[str, Form]:
        """Return the form of each operation."""

    @property
    def copies(self) -> Copies:
        """Return the versions of tensors besides their homes."""

    @property
    def written_order(self) -> tuple[str, ...] | None:
        """Return the operations in their own order; None for that of the graph."""

    @property
    def rewrites(self) -> Mapping[str, object]:
        """Return the rewrites of gradients, by parameter."""

    def versions_read(self, graph: Graph) -> Mapping[tuple[int, int], ReadCopy]:
        """Return the copies that operations read, by the numbers of operation and tensor."""


def translate(plan: Choices, graph: Graph, mesh: NamedMesh, system: str, say: Say[S]) -> Translation[S]:
    """Say a plan, which is for this graph, on a mesh of as many workers. Equal choices are said once."""
    return _Translator(plan, graph, mesh, say).run(system)


class _Translator(Generic[S]):
    """Says one plan."""

    def __init__(self, plan: Choices, graph: Graph, mesh: NamedMesh, say: Say[S]) -> None:
        self._plan, self._graph, self._mesh, self._say = plan, graph, mesh, say
        self._movements = Movements(mesh.workers, plan.factors)
        self._held: dict[tuple[Layout, AnyReducer | None], S | Obstacle] = {}
        self._regions: dict[tuple[WorkerRegions, Shape, AnyReducer | None, bool, bool], S | Obstacle] = {}

    def run(self, system: str) -> Translation[S]:
        plan, graph = self._plan, self._graph
        versions = plan.versions_read(graph)
        made: dict[int, OperatorRegions] = {}
        operations: dict[str, OperationPlaces[S]] = {}
        of_operations: list[Unsaid] = []
        for operation in graph.operations:
            regions = self._movements.operator(operation.bound, plan.strategies[operation.name])
            found = self._operation(operation, regions, versions, made)
            made.update(dict.fromkeys(operation.outputs, regions))
            if isinstance(found, OperationPlaces):
                operations[operation.name] = found
            else:
                of_operations.append(Unsaid(f"operation {operation.name!r}", found))
        tensors: dict[str, S] = {}
        unsaid: list[Unsaid] = []
        for tensor in graph.tensors:
            layout = plan.layouts[tensor.name]
            place = self._layout(layout, _reducer(made, tensor.index))
            if isinstance(place, Obstacle):
                unsaid.append(Unsaid(f"tensor {tensor.name!r}", place))
            else:
                tensors[tensor.name] = place
            for number, copy in enumerate(plan.copies.get(tensor.name, ()), 1):
                held = Layout(tensor.shape, copy.form, plan.factors)
                reason = _of_copy(number, copy.readers, self._layout(held, _reducer(made, tensor.index)))
                unsaid.append(Unsaid(f"tensor {tensor.name!r}", reason))
        unsaid += of_operations
        for name in plan.rewrites:
            text = "its gradient is encoded or delayed before it is exchanged"
            unsaid.append(Unsaid(f"parameter {name!r}", Obstacle("rewrite", text)))
        if plan.written_order is not None:
            text = "the operations have an order of their own"
            unsaid.append(Unsaid("the plan", Obstacle("order", text)))
        return Translation(system, self._mesh, tensors, operations, tuple(unsaid))

    def _layout(self, layout: Layout, reducer: AnyReducer | None) -> S | Obstacle:
        key = layout, reducer
        found = self._held.get(key)
        if found is None:
            held = layout.expanded
            parts = mesh_parts(held.workers, held.boxes, held.term, self._mesh)
            found = self._held[key] = self._said(layout.shape, parts, reducer)
        return found

    def _operation(
        self,
        operation: Operation,
        regions: OperatorRegions,
        versions: Mapping[tuple[int, int], ReadCopy],
        made: Mapping[int, OperatorRegions],
    ) -> OperationPlaces[S] | Obstacle:
        tensors = self._graph.tensors
        inputs: list[S | None] = [None] * len(operation.inputs)
        for place, name in operation.bound.read_places:
            tensor = tensors[operation.inputs[place]]
            version = versions.get((operation.index, tensor.index))
            layout = self._plan.layouts[tensor.name] if version is None else version.layout
            summed = regions.inputs[name].terms > 1 and self._movements.layout(layout).terms > 1
            said = self._read(regions.inputs[name], tensor.shape, _reducer(made, tensor.index), summed, True)
            if isinstance(said, Obstacle):
                return Obstacle(said.kind, f"of {tensor.name!r}, {said.text}")
            inputs[place] = said
        outputs: list[S] = []
        for index, produced in zip(operation.outputs, regions.outputs, strict=True):
            said = self._read(produced, tensors[index].shape, regions.reducer, produced.terms > 1, False)
            if isinstance(said, Obstacle):
                return Obstacle(said.kind, f"of {tensors[index].name!r}, {said.text}")
            outputs.append(said)
        return OperationPlaces(tuple(inputs), tuple(outputs))

    def _read(
        self, regions: WorkerRegions, shape: Shape, reducer: AnyReducer | None, summed: bool, reads: bool
    ) -> S | Obstacle:
        """Say where the tasks of an operation read a tensor, or make it."""
        key = regions, shape, reducer, summed, reads
        found = self._regions.get(key)
        if found is None:
            boxes = np.array(regions.regions, np.int64).reshape(len(regions.regions), len(shape), 2)
            term = np.array(regions.term, np.int64) * summed
            parts = mesh_parts(np.array(regions.workers, np.int64), boxes, term, self._mesh, reads=reads)
            found = self._regions[key] = self._said(shape, parts, reducer)
        return found

    def _said(self, shape: Shape, parts: MeshParts | Obstacle, reducer: AnyReducer | None) -> S | Obstacle:
        return parts if isinstance(parts, Obstacle) else self._say(shape, parts, reducer, self._mesh)


def _reducer(made: Mapping[int, OperatorRegions], tensor: int) -> AnyReducer | None:
    """Return what combines the terms of a tensor; None if it has none."""
    return made[tensor].reducer if tensor in made else None


def _of_copy(number: int, readers: Sequence[str], place: object) -> Obstacle:
    lies = place.text if isinstance(place, Obstacle) else f"it lies as {place}"
    text = f"copy {number}, for {', '.join(readers)}, is one more version of it: {lies}"
    return Obstacle("copy", text)
