"""The gradient of picking rows by index: rows are sorted by where they go, then summed in runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ...tdl import ast
from ..kernel import KernelCall, Run
from .roles import cut, output_ranges, require_roles, tensor_ranges, unfit

LAST = np.iinfo(np.intp).max


@dataclass(frozen=True, slots=True)
class EmbeddingGradient:
    """`output[i, *j] = Sum(*k: where(indices[*k] == i, grad_0[*k, *j], 0))`.

    The index may be `minimum(maximum(indices[*k], 0), rows - 1)`, moved to the table's edge.
    Rows with one index are added in the order of the indices, whatever the other rows are.
    """

    def __call__(self, call: KernelCall) -> Run:
        picking = _picking(call)
        require_roles(call, picking.indices)
        ranges = tensor_ranges(call, picking.indices)
        indices = cut(call.inputs[picking.indices], call.regions[picking.indices], ranges)
        gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], tensor_ranges(call, "grad_0"))
        first, stop = output_ranges(call)[0]
        last = call.bound.output_shapes[0][0] - 1
        out, count, row = call.outputs[0], prod(indices.shape), gradient.shape[indices.ndim :]
        space = call.workspace
        chosen, floors = (space.array(indices.shape, indices.dtype) for _ in range(2))
        held, wrong = (space.array(indices.shape, np.bool_) for _ in range(2))
        order, keys, starts, targets = (space.array((count,), np.intp).view(np.intp) for _ in range(4))
        begins = space.array((count,), np.bool_)
        rows, sorted_rows, sums = (space.array((count, *row), gradient.dtype) for _ in range(3))
        places = np.arange(count)
        space.keep([places])

        def run() -> None:
            """No array is made: where something is left out, its place sorts behind all others."""
            out.fill(0)
            np.copyto(chosen, indices)
            if picking.clipped:
                np.clip(chosen, 0, last, out=chosen)
            np.greater_equal(chosen, first, out=held)
            np.logical_and(held, np.less(chosen, stop, out=wrong), out=held)
            np.floor(chosen, out=floors, casting="unsafe")
            np.logical_and(held, np.equal(chosen, floors, out=wrong), out=held)
            picked = int(np.count_nonzero(held))
            if picked == 0:
                return
            # index and place in one number, so that rows of one index stay in order
            np.logical_not(held, out=wrong)
            np.copyto(floors, first, where=wrong)
            np.subtract(floors, first, out=keys.reshape(indices.shape), casting="unsafe")
            np.multiply(keys, count, out=keys)
            np.add(keys, places, out=keys)
            np.copyto(keys, LAST, where=wrong.reshape(count))
            keys.sort()
            np.remainder(keys[:picked], count, out=order[:picked])
            np.floor_divide(keys[:picked], count, out=targets[:picked])
            begins[0] = True
            np.not_equal(targets[1:picked], targets[: picked - 1], out=begins[1:picked])
            runs = int(np.count_nonzero(begins[:picked]))
            starts[:picked].fill(LAST)
            np.copyto(starts[:picked], places[:picked], where=begins[:picked])
            starts[:picked].sort()
            np.copyto(rows.reshape(gradient.shape), gradient)
            np.take(rows, order[:picked], axis=0, out=sorted_rows[:picked], mode="clip")
            np.add.reduceat(sorted_rows[:picked], starts[:runs], axis=0, out=sums[:runs])
            np.take(targets[:picked], starts[:runs], out=keys[:runs], mode="clip")
            out[keys[:runs]] = sums[:runs]

        return run


@dataclass(frozen=True, slots=True)
class _Picking:
    """The tensor of indices, and whether indices that leave the table are moved to its edge."""

    indices: str
    clipped: bool


def _picking(call: KernelCall) -> _Picking:
    """What the description says about the indices. Raises `OperatorError` for any other form."""
    (output,) = call.bound.description.outputs
    match output.body:
        case ast.Reduce(
            reducer=ast.Reducer.SUM,
            body=ast.Call(
                function="where",
                arguments=(
                    ast.Binary(operator="==", left=picked, right=ast.Variable(name=target)),
                    ast.Element(tensor="grad_0", indices=places),
                    ast.Number(value=0),
                ),
            ),
        ) if target == output.variables[0].name:
            access, clipped = _index(picked, output.variables[0].extent)
            row = (ast.Variable(binder.name) for binder in output.variables[1:])
            if access is not None and places == (*access.indices, *row):
                return _Picking(access.tensor, clipped)
    raise unfit(call, "does not sum those rows of 'grad_0' whose index is the output's first variable")


def _index(picked: ast.Expression, rows: ast.Expression | None) -> tuple[ast.Element | None, bool]:
    """The access that an index is read by, if it is one, and whether it is moved to the edge of `rows`."""
    match picked:
        case ast.Element():
            return picked, False
        case ast.Call(
            function="minimum",
            arguments=(
                ast.Call(function="maximum", arguments=(ast.Element() as access, ast.Number(value=0))),
                ast.Binary(operator="-", left=extent, right=ast.Number(value=1)),
            ),
        ) if extent == rows:
            return access, True
        case _:
            return None, False
