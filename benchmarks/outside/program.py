"""An operator's forward and backward pass, prepared for the whole box as an engine prepares one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import tofu
from tofu.analyzer.indices.region import to_region
from tofu.dataflow.graph import Graph, Operation, Phase
from tofu.dataflow.training import gradient_graph
from tofu.operators.kernels.kernel import Array, KernelCall, Run, in_turn, view_of
from tofu.operators.kernels.workspace import Workspace

from .outsider import Outsider, Sizes


@dataclass(frozen=True, slots=True)
class Prepared:
    """The kernels of one pass. `temporary_bytes` is the most that one of them needs besides its tensors."""

    run: Run
    temporary_bytes: int


@dataclass(frozen=True)
class Program:
    """The graph of one operator and a buffer for each of its tensors."""

    graph: Graph
    buffers: Sequence[Array]
    arguments: Sequence[str]

    @classmethod
    def of(cls, outsider: Outsider, sizes: Sizes, dtype: str) -> Program:
        """Forward pass and gradients of everything that learns. Raises TofuError."""
        shapes = outsider.shapes(sizes)
        variables = [tofu.sym.Variable(name) for name in shapes]
        symbol = tofu.sym.apply(
            outsider.operator, *variables, name=outsider.name, **outsider.attributes(sizes)
        )
        graph = gradient_graph(symbol, shapes, outsider.learned, dtype=dtype)
        return cls(graph, [np.zeros(tensor.shape, tensor.dtype) for tensor in graph.tensors], tuple(shapes))

    @cached_property
    def places(self) -> dict[str, int]:
        """The number of every tensor, by name."""
        return {tensor.name: tensor.index for tensor in self.graph.tensors}

    @property
    def outputs(self) -> list[Array]:
        """Return the results of the operator."""
        return [self.buffers[index] for index in self._results]

    def draw_heads(self, seed: int) -> list[Array]:
        """Random gradients of the outputs, written where the graph reads them."""
        generator = np.random.default_rng(seed)
        heads = [np.asarray(generator.random(output.shape) - 0.5, output.dtype) for output in self.outputs]
        names = [f"head({self.graph.tensors[index].name})" for index in self._results]
        self.write({name: head for name, head in zip(names, heads, strict=True) if name in self.places})
        return heads

    def gradient(self, tensor: str) -> Array | None:
        """Return the gradient of an argument; None if it is zero everywhere."""
        index = self.places.get(f"grad({tensor})")
        return None if index is None else self.buffers[index]

    def write(self, tensors: Mapping[str, Array]) -> None:
        """Fill tensors by name."""
        for name, values in tensors.items():
            self.buffers[self.places[name]][...] = values

    @property
    def visible_bytes(self) -> int:
        """Bytes of arguments and outputs."""
        inputs = [self.buffers[self.places[name]] for name in self.arguments]
        return sum(array.nbytes for array in (*inputs, *self.outputs))

    @property
    def backward(self) -> bool:
        """Whether anything gets a gradient."""
        return any(operation.phase is Phase.BACKWARD for operation in self.graph.operations)

    def prepare(self, phase: Phase) -> Prepared:
        """Prepare the operations of a phase twice, as in an engine: the second time in shared scratch."""
        operations = [operation for operation in self.graph.operations if operation.phase is phase]
        alone = []
        for operation in operations:
            alone.append(Workspace())
            self._prepare(operation, alone[-1])
        shared = Workspace(max((workspace.used_bytes for workspace in alone), default=0))
        runs = []
        for operation in operations:
            shared.restart()
            runs.append(self._prepare(operation, shared))
        most = max((workspace.used_bytes + workspace.kept_bytes for workspace in alone), default=0)
        return Prepared(in_turn(runs), most)

    def _prepare(self, operation: Operation, workspace: Workspace) -> Run:
        bound = operation.bound
        boxes = bound.input_regions(bound.full_box[None])
        regions = {name: to_region(found[0]) for name, found in boxes.items() if name in bound.reads}
        tensors = dict(zip(bound.description.tensor_names, operation.inputs, strict=True))
        inputs = {
            name: view_of(self.buffers[tensors[name]], (slice(*interval) for interval in region))
            for name, region in regions.items()
        }
        box = {name: (0, extent) for name, extent in bound.extents.items()}
        outputs = tuple(self.buffers[index] for index in operation.outputs)
        return bound.prepare(KernelCall(bound, box, inputs, regions, outputs, workspace))

    @property
    def _results(self) -> list[int]:
        tensors = self.graph.tensors
        return [index for index in self.graph.outputs if not tensors[index].name.startswith("grad(")]
