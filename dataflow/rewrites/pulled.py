"""Let each replica read its own value of a parameter: the one that it pulled last.

The state `pulled` has a value for each replica. An operation that reads the parameter for a block of samples
reads that of the block's replica, if a replica has `size` samples along variable n:

    lambda n, h: Sum(lambda k: data[n, k] * weight[h, k])
    lambda n, h: Sum(lambda k: data[n, k] * weight[n // size, h, k])

No operator is known by its name: the variable comes from the analysis of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...analyzer.indices.region import to_region
from ...errors import GraphError
from ...operators.kernels.kernel import KernelCall, Run, in_turn, view_of
from ...operators.stages.bound_operator import BoundOperator
from ...operators.stages.stage import derived
from ...tdl import ast
from ..graph import Operation, Phase, Role, Tensor
from .blocks import call_of_block, within
from .edit import GraphEdit
from .lifted import indexed

PULLED = "pulled({})"


def pulled_tensor(edit: GraphEdit, parameter: int, replicas: int, samples: Mapping[int, str]) -> int:
    """Add the state of what replicas pulled, which all but updates read in place of a parameter.

    `samples` has the variable that the samples reach, of operations that have one. Raises GraphError naming
    an operation that reads the parameter, but not for samples of its own.
    """
    tensor = edit.tensors[parameter]
    pulled = edit.tensor(PULLED.format(tensor.name), (replicas, *tensor.shape), Role.STATE, tensor.dtype)
    for operation in edit.graph.operations:
        reads = {name for place, name in operation.bound.read_places if operation.inputs[place] == parameter}
        if reads and operation.phase is not Phase.UPDATE:
            _read_pulled(edit, operation, parameter, pulled, replicas, samples.get(operation.index))
    return pulled


def pulled_of(tensors: Mapping[str, Tensor], parameter: Tensor) -> Tensor | None:
    """Return the state of what replicas pulled of a parameter; None if they share its value."""
    found = tensors.get(PULLED.format(parameter.name))
    fits = found is not None and found.role is Role.STATE and found.shape[1:] == parameter.shape
    return found if fits else None


def _read_pulled(
    edit: GraphEdit, operation: Operation, parameter: int, pulled: int, replicas: int, variable: str | None
) -> None:
    name = edit.tensors[parameter].name
    bound = operation.bound
    if variable is None or bound.kind(variable) != "concat":
        raise GraphError(
            f"operation {operation.name!r} reads {name!r} for all samples together, so it cannot read what "
            "each replica pulled; wait for all gradients of this variable"
        )
    if bound.extents[variable] % replicas:
        raise GraphError(
            f"operation {operation.name!r} has {bound.extents[variable]} samples, which is not a multiple of "
            f"{replicas} workers; choose a batch that is"
        )
    size = bound.extents[variable] // replicas
    arguments = bound.description.tensor_names
    own = frozenset(a for a, index in zip(arguments, operation.inputs, strict=True) if index == parameter)
    block = ast.Binary("//", ast.Variable(variable), ast.Number(size))
    kernel = PulledKernel(bound, variable, size, own)
    stage = derived(indexed(bound.description, own, block), kernel)
    given = dict(zip(arguments, operation.inputs, strict=True))
    edit.replace_stage(operation, stage, {a: pulled if a in own else given[a] for a in arguments})


@dataclass(frozen=True, slots=True)
class PulledKernel:
    """The kernel of an operator that reads a value of its own for each block of samples.

    It runs that of the given operator for each block, so results have the bits of the operator.
    """

    bound: BoundOperator
    """The operator that reads one value for all samples."""

    variable: str
    """The variable of samples."""

    size: int
    """The samples of a block."""

    own: frozenset[str]
    """The inputs of which each block has a value."""

    def __call__(self, call: KernelCall) -> Run:
        """Return the function that computes the blocks of a box, one after the other."""
        first, end = call.box[self.variable]
        runs = []
        call.workspace.hold()
        for number in range(first // self.size, -(-end // self.size)):
            call.workspace.rewind()
            lower, upper = max(first, number * self.size), min(end, (number + 1) * self.size)
            runs.append(self.bound.prepare(self._block(call, number, lower, upper)))
        return in_turn(runs)

    def _block(self, call: KernelCall, number: int, lower: int, upper: int) -> KernelCall:
        """Return the call of the given operator that computes samples of one block."""
        box = {v: (lower, upper) if v == self.variable else call.box[v] for v in self.bound.variables}
        part = np.array([list(box.values())], np.int64)
        whole = np.array([[call.box[v] for v in self.bound.variables]], np.int64)
        outputs = tuple(
            view_of(array, within(to_region(made[0]), to_region(held[0])))
            for array, made, held in zip(
                call.outputs, self.bound.output_regions(part), self.bound.output_regions(whole), strict=True
            )
        )
        return call_of_block(call, self.bound, box, outputs, dict.fromkeys(self.own, number))
