"""Find the role of each index variable of a description from its element accesses.

Attached kernels do not rely on the names of index variables: a description written by hand and a gradient
derived from it may name and order them differently.
"""

from __future__ import annotations

from ....analyzer.indices.region import Interval, Region
from ....errors import OperatorError
from ....tdl import ast, walk
from ..kernel import Array, KernelCall


def output_ranges(call: KernelCall) -> list[Interval]:
    """Return the box's interval for every dimension of the only output."""
    (output,) = call.bound.description.outputs
    return [call.box[binder.name] for binder in output.variables]


def tensor_ranges(call: KernelCall, tensor: str) -> list[Interval]:
    """Return the elements of a tensor that take part, per dimension.

    If a variable alone indexes a dimension, that is the variable's interval in the box, cut to the elements
    that exist. Otherwise it is all that the input holds. Raises `OperatorError` unless it is accessed exactly
    once.
    """
    (output,) = call.bound.description.outputs
    accesses = {node for node in walk(output.body) if isinstance(node, ast.Element) and node.tensor == tensor}
    if len(accesses) != 1:
        raise unfit(call, f"reads {tensor!r} in {len(accesses)} places instead of one")
    (access,) = accesses
    ranges = []
    for index, (lower, upper) in zip(access.indices, call.regions[tensor], strict=True):
        if isinstance(index, ast.Variable):
            first, stop = call.box[index.name]
            lower, upper = max(lower, first), min(upper, stop)
        ranges.append((lower, max(lower, upper)))
    return ranges


def require_roles(call: KernelCall, *tensors: str) -> None:
    """Check that every variable is an output's or alone indexes one of `tensors`, so that boxes are honoured.

    Raises `OperatorError`.
    """
    (output,) = call.bound.description.outputs
    known = {binder.name for binder in output.variables}
    for node in walk(output.body):
        if isinstance(node, ast.Element) and node.tensor in tensors:
            known.update(index.name for index in node.indices if isinstance(index, ast.Variable))
    unknown = [name for name in call.box if name not in known]
    if unknown:
        raise unfit(call, f"has index variables {', '.join(unknown)} whose role the kernel does not know")


def unfit(call: KernelCall, reason: str) -> OperatorError:
    """Return the error for a description that is not of the form a kernel computes."""
    return OperatorError(
        f"operator {call.bound.description.name}: the attached kernel does not fit its description, which "
        f"{reason}; correct the description or leave the kernel away"
    )


def cut(array: Array, region: Region, ranges: list[Interval]) -> Array:
    """Return the elements of `ranges`, in the whole tensor's coordinates, of an array that holds `region`."""
    return array[
        tuple(
            slice(lower - held[0], upper - held[0])
            for (lower, upper), held in zip(ranges, region, strict=True)
        )
    ]
