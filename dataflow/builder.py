"""Build graphs by hand: tensors and operations in execution order, with unique names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..analyzer.indices.region import Shape
from ..errors import GraphError
from ..operators.stages.stage import Stage
from .graph import Graph, Operation, Phase, Role, Tensor
from .order import hoist_updates, prune


class Names:
    """A set of names of one kind, which must be unique."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unused(self, name: str) -> str:
        """Return `name`, or `name:2`, `name:3`, ... if it is taken."""
        if name not in self.taken:
            return name
        number = self._numbers.get(name, 2)
        while f"{name}:{number}" in self.taken:
            number += 1
        self._numbers[name] = number
        return f"{name}:{number}"


class GraphBuilder:
    """Collects a graph; `build` drops unneeded operations and tensors and numbers the rest.

    Tensors are referred to by the number that `tensor` and `apply` return. An operation's
    inputs must exist before it does, so a builder cannot make a cycle.
    """

    def __init__(self, name: str, dtype: str = "float32") -> None:
        self.name = name
        self.dtype = dtype
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []
        self._tensor_names = Names()
        self._operation_names = Names()

    def tensor(self, name: str, shape: Shape, role: Role, *, alias: int | None = None) -> int:
        """Add a tensor and return its number. A name that is taken is an error."""
        if name in self._tensor_names.taken:
            raise GraphError(f"two tensors are named {name!r}; give one of them another name")
        self._tensor_names.taken.add(name)
        index = len(self.tensors)
        self.tensors.append(Tensor(index, name, tuple(shape), role, self.dtype, alias))
        return index

    def rename_tensor(self, index: int, name: str) -> None:
        """Give a tensor a new, unused name; its old name becomes free."""
        tensor = self.tensors[index]
        self._tensor_names.taken.remove(tensor.name)
        self._tensor_names.taken.add(name)
        self.tensors[index] = replace(tensor, name=name)

    def unique_tensor_name(self, name: str) -> str:
        """Return `name`, or `name:2`, `name:3`, ... if it is taken."""
        return self._tensor_names.unused(name)

    def apply(
        self,
        name: str,
        stage: Stage,
        inputs: Sequence[int],
        outputs: Sequence[str],
        *,
        phase: Phase = Phase.FORWARD,
        role: Role = Role.ACTIVATION,
        tie: str | None = None,
        aliases: Sequence[int | None] = (),
    ) -> tuple[int, ...]:
        """Add an operation and the tensors it produces; `inputs` follow the description's tensors.

        `aliases[k]` is the persistent tensor that output `k` overwrites. An operation's name that is taken
        gets a number; a tensor's name must be free. Raises ShapeError if the shapes do not fit.
        """
        description = stage.description
        names = stage.inputs
        if len(inputs) != len(names) or len(outputs) != len(description.outputs):
            raise GraphError(
                f"operation {name!r} ({description.name}) takes {len(names)} tensors and makes "
                f"{len(description.outputs)}, but {len(inputs)} and {len(outputs)} were given"
            )
        bound = stage.bind({n: self.tensors[i].shape for n, i in zip(names, inputs, strict=True)})
        made = []
        for k, (output, shape) in enumerate(zip(outputs, bound.output_shapes, strict=True)):
            alias = aliases[k] if aliases else None
            output_role = role if alias is None else self.tensors[alias].role
            made.append(self.tensor(output, shape, output_role, alias=alias))
        name = self._operation_names.unused(name)
        self._operation_names.taken.add(name)
        index = len(self.operations)
        self.operations.append(Operation(index, name, bound, tuple(inputs), tuple(made), phase, tie))
        return tuple(made)

    def build(self, outputs: Sequence[int]) -> Graph:
        """Make the graph of everything that `outputs` and the updated tensors need, updates moved forward."""
        operations = prune(self.tensors, self.operations, outputs)
        operations = hoist_updates(self.tensors, operations)
        return numbered(self.name, self.tensors, operations, outputs)


def numbered(
    name: str, tensors: Sequence[Tensor], operations: Sequence[Operation], outputs: Sequence[int]
) -> Graph:
    """Renumber operations as ordered and tensors as kept; tensors that nothing touches are dropped."""
    used = set(outputs)
    for operation in operations:
        used.update(operation.inputs)
        used.update(operation.outputs)
    used.update([alias for index in used if (alias := tensors[index].alias) is not None])
    kept = [tensor for tensor in tensors if tensor.index in used]
    number = {tensor.index: new for new, tensor in enumerate(kept)}
    return Graph(
        name,
        tuple(
            Tensor(new, t.name, t.shape, t.role, t.dtype, None if t.alias is None else number[t.alias])
            for new, t in enumerate(kept)
        ),
        tuple(
            Operation(
                new,
                o.name,
                o.bound,
                tuple([number[i] for i in o.inputs]),
                tuple([number[i] for i in o.outputs]),
                o.phase,
                o.tie,
                o.micro_batch,
            )
            for new, o in enumerate(operations)
        ),
        tuple(number[i] for i in outputs),
    )
