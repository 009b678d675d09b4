"""Gradients with an explicit dimension of replicas, each of which has a block of the samples.

A gradient that sums over samples is a sum of local ones. The reduction variable v that the samples reach
becomes `replica * size + v`, and the replica becomes the first dimension:

    lambda i, j: Sum(lambda n: dy[n, i] * x[n, j])
    lambda replica=W, i, j: Sum(lambda n=size: dy[replica * size + n, i] * x[replica * size + n, j])

So the replica is a variable like any other: the local gradients of a worker are what it has along it. An
operation that adds gradients, or is linear in them otherwise, is applied to those of each replica. No
operator is known by its name: the variable comes from the analysis of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from ...errors import GraphError
from ...operators.kernels.kernel import KernelCall, Run, in_turn
from ...operators.stages.bound_operator import BoundOperator
from ...operators.stages.stage import derived
from ...tdl import ast
from ...tdl.ast import Reducer
from ...tdl.traverse import Node, substitute, transform
from ..graph import Operation
from .blocks import call_of_block
from .edit import GraphEdit
from .lifted import applied, unused, with_first

REPLICA = "replica"


@dataclass(slots=True)
class LocalGradients:
    """Makes the local gradients of tensors, each once."""

    edit: GraphEdit
    """Where operations are added."""

    workers: int
    """The number of replicas."""

    samples: Mapping[int, str]
    """The variable that the samples reach, of operations that have one."""

    terms: Set[int]
    """The tensors that may stay sums over the samples for those that read them."""

    made: dict[int, int]
    """The local gradients so far, by the tensors whose terms they are."""

    def of(self, gradient: int) -> int:
        """Return the tensor `[replica, ...]` whose sum over replicas is a tensor of the graph.

        Raises GraphError naming the operation that cannot be applied to each replica, and why.
        """
        waiting = [gradient]
        while waiting:
            tensor = waiting[-1]
            if tensor in self.made:
                waiting.pop()
                continue
            maker = self._maker(tensor)
            summed = self._summed(maker)
            missing = [each for each in summed if each not in self.made]
            if missing:
                waiting += missing
            else:
                waiting.pop()
                self.made[tensor] = self._applied(maker, summed) if summed else self._divided(maker)
        return self.made[gradient]

    def _maker(self, tensor: int) -> Operation:
        name = self.edit.graph.tensors[tensor].name
        if tensor not in self.edit.made_at:
            raise GraphError(f"no operation makes {name!r}, so workers have no terms of it")
        maker = self.edit.graph.operations[self.edit.made_at[tensor]]
        if len(maker.outputs) > 1:
            raise GraphError(
                f"operation {maker.name!r} makes {len(maker.outputs)} tensors, so {name!r} alone cannot be "
                "made on each replica; synchronise it without a rewrite"
            )
        return maker

    def _summed(self, maker: Operation) -> list[int]:
        """Return the sums over samples that an operation reads; none if it sums over samples itself."""
        variable = self.samples.get(maker.index)
        if variable is not None and maker.bound.kind(variable) == "reduce":
            return []
        places = [(p, name) for p, name in maker.bound.read_places if maker.inputs[p] in self.terms]
        if not places:
            raise _refused(maker, "it does not sum over the samples")
        if not maker.bound.linear_in([name for _, name in places]):
            raise _refused(maker, "it is not linear in the sums over samples that it reads")
        return list(dict.fromkeys(maker.inputs[place] for place, _ in places))

    def _divided(self, maker: Operation) -> int:
        """Add the operation that sums over the samples of each replica."""
        bound, variable = maker.bound, self.samples[maker.index]
        extent = bound.extents[variable]
        if bound.reducer(variable) is not Reducer.SUM:
            raise _refused(maker, f"it combines samples by {bound.reducer(variable)}, which is not Sum")
        if extent % self.workers:
            raise GraphError(
                f"operation {maker.name!r} sums {extent} samples, which is not a multiple of "
                f"{self.workers} workers; choose a batch that is"
            )
        size = extent // self.workers
        replica = unused(bound.description, REPLICA)
        description = divided(bound.description, variable, replica, self.workers, size)
        kernel = ReplicaKernel(bound, replica, variable, size)
        inputs = dict(zip(bound.description.tensor_names, maker.inputs, strict=True))
        return self._add(maker, derived(description, kernel), inputs)

    def _applied(self, maker: Operation, summed: list[int]) -> int:
        """Add the operation that does for each replica what one does for sums."""
        description = maker.bound.description
        inputs = dict(zip(description.tensor_names, maker.inputs, strict=True))
        local = frozenset(name for name, tensor in inputs.items() if tensor in summed)
        inputs.update({name: self.made[inputs[name]] for name in local})
        replica = unused(description, REPLICA)
        return self._add(maker, derived(applied(description, local, replica, self.workers)), inputs)

    def _add(self, maker: Operation, stage: object, inputs: Mapping[str, int]) -> int:
        (output,) = maker.outputs
        tensor = self.edit.graph.tensors[output]
        name = f"local({tensor.name})"
        return self.edit.apply(name, stage, inputs, dtype=tensor.dtype, like=maker)  # type: ignore[arg-type]


def divided(
    description: ast.Description, variable: str, replica: str, workers: int, size: int
) -> ast.Description:
    """Return a description that sums over blocks of `size` values of a reduction variable, one for each
    value of a new first variable.
    """
    block = ast.Binary("*", ast.Variable(replica), ast.Number(size))
    shifted = substitute(description, {variable: ast.Binary("+", block, ast.Variable(variable))})

    def shorten(node: Node) -> Node:
        match node:
            case ast.Binder(name=name) if name == variable:
                return replace(node, extent=ast.Number(size))
            case _:
                return node

    return with_first(transform(shifted, shorten), replica, workers)


def _refused(maker: Operation, why: str) -> GraphError:
    return GraphError(
        f"operation {maker.name!r} cannot be applied to each replica: {why}; synchronise its gradient "
        "without a rewrite"
    )


@dataclass(frozen=True, slots=True)
class ReplicaKernel:
    """The kernel of an operator whose samples are in blocks: that of the given operator for each block.

    So local gradients have the bits of the terms that workers make without a rewrite.
    """

    bound: BoundOperator
    """The operator that sums over all samples."""

    replica: str
    """The variable of blocks."""

    variable: str
    """The variable of samples within a block."""

    size: int
    """The samples of a block."""

    def __call__(self, call: KernelCall) -> Run:
        """Return the function that computes the blocks of a box, one after the other."""
        first, end = call.box[self.replica]
        runs = []
        call.workspace.hold()
        for number in range(first, end):
            call.workspace.rewind()
            runs.append(self.bound.prepare(self._block(call, number, number - first)))
        return in_turn(runs)

    def _block(self, call: KernelCall, number: int, place: int) -> KernelCall:
        """Return the call of the given operator that computes one block."""
        lower, upper = (number * self.size + end for end in call.box[self.variable])
        box = {v: (lower, upper) if v == self.variable else call.box[v] for v in self.bound.variables}
        return call_of_block(call, self.bound, box, (call.outputs[0][place, ...],))
