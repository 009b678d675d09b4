"""Collect changes of a graph, and make the changed graph once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...analyzer.indices.region import Shape
from ...operators.stages.stage import Stage
from ..builder import Names, numbered
from ..graph import Graph, Operation, Phase, Role, Tensor
from ..order import hoist_updates, prune


class GraphEdit:
    """Adds tensors and operations to a graph, whose numbers stay until `finish`.

    A new operation comes right after the last one that makes an input of it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors = list(graph.tensors)
        self.made_at = {tensor: each.index for each in graph.operations for tensor in each.outputs}
        self._added: list[list[Operation]] = [[] for _ in range(len(graph.operations) + 1)]
        self._changed: dict[int, Operation] = {}
        self._instead: dict[int, dict[int, int]] = {}
        self._tensor_names = Names(tensor.name for tensor in graph.tensors)
        self._operation_names = Names(operation.name for operation in graph.operations)

    def tensor(self, name: str, shape: Shape, role: Role, dtype: str, alias: int | None = None) -> int:
        """Add a tensor and return its number. A name that is taken gets a number."""
        name = self._tensor_names.unused(name)
        self._tensor_names.taken.add(name)
        self.tensors.append(Tensor(len(self.tensors), name, shape, role, dtype, alias))
        return len(self.tensors) - 1

    def rename(self, tensor: int, name: str) -> None:
        """Give a tensor of the graph another name; its own becomes free."""
        self._tensor_names.taken.remove(self.tensors[tensor].name)
        name = self._tensor_names.unused(name)
        self._tensor_names.taken.add(name)
        self.tensors[tensor] = replace(self.tensors[tensor], name=name)

    def apply(
        self,
        name: str,
        stage: Stage,
        inputs: Mapping[str, int],
        *,
        dtype: str,
        like: Operation | None = None,
        phase: Phase = Phase.BACKWARD,
        role: Role = Role.GRADIENT,
    ) -> int:
        """Add an operation and return the tensor that it makes, which has its name.

        `inputs` are by the names of the description. The operation is of the micro-batch of `like`.
        """
        given = [inputs[argument] for argument in stage.inputs]
        bound = stage.bind({argument: self.tensors[index].shape for argument, index in inputs.items()})
        (shape,) = bound.output_shapes
        made = self.tensor(name, shape, role, dtype)
        at = max((self.made_at.get(index, -1) for index in given), default=-1)
        self.made_at[made] = at
        tie = None if like is None or like.tie is None else f"{stage.name}({like.tie})"
        micro_batch = None if like is None else like.micro_batch
        self._add(at, Operation(0, name, bound, tuple(given), (made,), phase, tie, micro_batch))
        return made

    def apply_all(
        self, names: Mapping[str, str], stages: Sequence[Stage], inputs: Mapping[str, int], *, dtype: str
    ) -> int:
        """Add the operations of all stages of a description, and return the tensor that the last one makes.

        `names` are those of what stages make; `output_0` is made by the last one.
        """
        known = dict(inputs)
        for stage in stages:
            (made,) = stage.produces
            given = {name: known[name] for name in stage.inputs}
            known[made] = self.apply(names[made], stage, given, dtype=dtype)
        return known[made]

    def overwrite(self, target: int, stage: Stage, inputs: Mapping[str, int], after: int = -1) -> int:
        """Add an update that overwrites a tensor, after an operation and those that it reads; return it."""
        given = [inputs[argument] for argument in stage.inputs]
        bound = stage.bind({argument: self.tensors[index].shape for argument, index in inputs.items()})
        old = self.tensors[target]
        made = self.tensor(f"updated({old.name})", old.shape, old.role, old.dtype, target)
        at = max(after, *(self.made_at.get(index, -1) for index in given))
        self.made_at[made] = at
        self._add(at, Operation(0, f"update({old.name})", bound, tuple(given), (made,), Phase.UPDATE))
        return made

    def repeat(
        self, operation: Operation, name: str, names: Sequence[str], instead: Mapping[int, int]
    ) -> list[int]:
        """Add an operation of the graph once more, which reads other tensors in place of some.

        Return the tensors that it makes, which have `names` and overwrite nothing.
        """
        given = [instead.get(index, index) for index in operation.inputs]
        at = max(self.made_at.get(index, -1) for index in given)
        made = []
        for its, output in zip(names, operation.outputs, strict=True):
            old = self.tensors[output]
            made.append(self.tensor(its, old.shape, Role.ACTIVATION, old.dtype))
            self.made_at[made[-1]] = at
        again = replace(operation, name=name, inputs=tuple(given), outputs=tuple(made), tie=None)
        self._add(at, again)
        return made

    def read_instead(self, operation: int, tensor: int, other: int) -> None:
        """Let an operation of the graph read another tensor in place of one."""
        self._instead.setdefault(operation, {})[tensor] = other

    def replace_stage(self, operation: Operation, stage: Stage, inputs: Mapping[str, int]) -> None:
        """Let an operation of the graph compute another description, of inputs by name."""
        bound = stage.bind({argument: self.tensors[index].shape for argument, index in inputs.items()})
        given = tuple(inputs[argument] for argument in stage.inputs)
        self._changed[operation.index] = replace(operation, bound=bound, inputs=given)

    def finish(self) -> Graph:
        """Return the changed graph, without operations that nothing needs."""
        operations: list[Operation] = list(self._added[0])
        for old in self.graph.operations:
            operation = self._changed.get(old.index, old)
            instead = self._instead.get(operation.index, {})
            inputs = tuple([instead.get(index, index) for index in operation.inputs])
            operations += [replace(operation, inputs=inputs), *self._added[operation.index + 1]]
        kept = prune(self.tensors, operations, self.graph.outputs)
        ordered = hoist_updates(self.tensors, kept)
        return numbered(self.graph.name, self.tensors, ordered, self.graph.outputs)

    def _add(self, after: int, operation: Operation) -> None:
        name = self._operation_names.unused(operation.name)
        self._operation_names.taken.add(name)
        self._added[after + 1].append(replace(operation, name=name))
