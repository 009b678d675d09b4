"""Pieces of TDL text that depend on ranks and shapes, and checks of axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...errors import ShapeError
from ...support.wording import counted


def names(prefix: str, count: int) -> tuple[str, ...]:
    """Return names of index variables or parameters: `prefix0`, `prefix1`, ..."""
    return tuple(f"{prefix}{k}" for k in range(count))


def joined(parts: Sequence[str]) -> str:
    return ", ".join(parts)


def element(tensor: str, indices: Sequence[str]) -> str:
    return f"{tensor}[{joined(indices)}]"


def sized(variables: Sequence[str], shape: Sequence[int]) -> str:
    """Return binders of the variables with the extents of this shape."""
    return joined([f"{variable}={extent}" for variable, extent in zip(variables, shape, strict=True)])


def sized_like(variables: Sequence[str], tensor: str) -> str:
    """Return binders of the variables with the extents of the tensor's dimensions."""
    return joined([f"{variable}={tensor}.shape[{axis}]" for axis, variable in enumerate(variables)])


def filled_like(value: str, tensor: str, rank: int) -> str:
    """Return a function of the tensor's dimensions that is `value` everywhere.

    A tensor without dimensions is named by its element, since descriptions name every tensor.
    """
    if rank == 0:
        return f"lambda: where(True, {value}, {tensor}[()])"
    return f"lambda {sized_like(names('i', rank), tensor)}: {value}"


def flat_index(variables: Sequence[str], shape: Sequence[int]) -> str:
    """Return the row-major position of `variables` in a tensor of this shape; `0` for no variables."""
    terms = []
    for axis, variable in enumerate(variables):
        stride = prod(shape[axis + 1 :])
        terms.append(variable if stride == 1 else f"{variable} * {stride}")
    return " + ".join(terms) or "0"


def unflattened(index: str, shape: Sequence[int]) -> list[str]:
    """Return the index of each dimension at the row-major position `index` of a tensor of this shape."""
    indices = []
    for axis, extent in enumerate(shape):
        stride = prod(shape[axis + 1 :])
        quotient = index if stride == 1 else f"({index}) // {stride}"
        if extent == 1:
            indices.append("0")
        elif all(outer == 1 for outer in shape[:axis]):
            indices.append(quotient)
        else:
            indices.append(f"({quotient}) % {extent}")
    return indices


def product_of_extents(tensor: str, axes: Sequence[int]) -> str:
    """Return the number of elements along `axes`, as an expression in `tensor.shape`."""
    return " * ".join(f"{tensor}.shape[{axis}]" for axis in axes) or "1"


def check_rank(operator: str, tensor: str, rank: int, layout: str) -> None:
    """Raise ShapeError for a tensor whose dimensions are not `layout`: `batch, ...` is one or more."""
    named = layout.removesuffix(", ...")
    least = named.count(", ") + 1
    if rank < least or (rank > least and named == layout):
        raise ShapeError(f"{operator}: {tensor} has {counted(rank, 'dimension')}, but must be {layout}")


def axis_in(operator: str, axis: int, rank: int) -> int:
    """Return `axis` counted from the front. Raises ShapeError if there is no such dimension."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{operator}: axis {axis} is outside a tensor with {counted(rank, 'dimension')}")
    return axis % rank
