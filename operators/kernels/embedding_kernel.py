"""The gradient of picking rows by index: rows are sorted by where they go, then summed in runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from ...tdl import ast
from ..kernel import KernelCall
from .roles import cut, output_ranges, require_roles, tensor_ranges, unfit


@dataclass(frozen=True, slots=True)
class EmbeddingGradient:
    """`output[i, *j] = Sum(*k: where(indices[*k] == i, grad_0[*k, *j], 0))`.

    The index may be `minimum(maximum(indices[*k], 0), rows - 1)`, moved to the table's edge.
    Rows with one index are added in the order of the indices, whatever the other rows are.
    """

    def __call__(self, call: KernelCall) -> Callable[[], None]:
        picking = _picking(call)
        require_roles(call, picking.indices)
        ranges = tensor_ranges(call, picking.indices)
        indices = cut(call.inputs[picking.indices], call.regions[picking.indices], ranges)
        gradient = cut(call.inputs["grad_0"], call.regions["grad_0"], tensor_ranges(call, "grad_0"))
        first, stop = output_ranges(call)[0]
        last = call.bound.output_shapes[0][0] - 1
        out, count, row = call.outputs[0], prod(indices.shape), gradient.shape[indices.ndim :]

        def run() -> None:
            out.fill(0)
            chosen = indices.reshape(count)
            if picking.clipped:
                chosen = np.clip(chosen, 0, last)
            held = np.greater_equal(chosen, first) & np.less(chosen, stop)
            picked = np.flatnonzero(held & np.equal(chosen, np.floor(chosen)))
            if len(picked) == 0:
                return
            order = picked[np.argsort(chosen[picked], kind="stable")]
            targets = chosen[order].astype(np.intp) - first
            starts = np.flatnonzero(np.diff(targets, prepend=-1))
            rows = gradient.reshape(count, *row)
            out[targets[starts]] = np.add.reduceat(rows[order], starts, axis=0)

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
