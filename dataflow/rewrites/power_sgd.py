"""PowerSGD (Vogels et al., 2019): exchange the factors of a gradient of low rank.

A gradient is a matrix: its first dimension by all others. Workers have M[r], and a start Q for its row space.

    M[r]      = error[r] + local[r]
    P         = sum over r of M[r] Q            exchanged: rows times rank
    P         = its columns, orthonormal        Gram-Schmidt, by every worker
    Q[r]      = transpose(M[r]) P
    Q         = sum over r of Q[r]              exchanged: columns times rank; the start of the next iteration
    gradient  = P transpose(Q)
    error[r]  = M[r] - P transpose(Q[r])        a state of each worker, zero at first

So the errors of all workers add up to what the gradient lacks of the sum of all M[r]. A column of the start
that is zero, as all are at first, is replaced by numbers from -1 to 1 that look random and are the same on
every worker. The start is a state.
"""

from __future__ import annotations

from math import prod

from ...analyzer.indices.region import Shape
from ...errors import GraphError
from ..element_types import MIXED
from ..graph import Role
from .casts import with_error
from .edit import GraphEdit
from .encoders import PowerSgd
from .stages import COPY, SUBTRACT, SUM, stage_of, stages_of

SMALL = 2.0**-20
"""A column counts as zero if less than this share of the matrix is left of it: it would be rounding alone."""

LEFT = "def left(m, q):\n    return lambda replica, i, k: Sum(lambda *j: m[replica, i, *j] * q[*j, k])"
RIGHT = "def right(m, p):\n    return lambda replica, *j, k: Sum(lambda i: m[replica, i, *j] * p[i, k])"
SIZE = "def size(p):\n    return lambda one=1: Sum(lambda i, k: p[i, k] * p[i, k])"
PRODUCT = "def product(p, q):\n    return lambda i, *j: Sum(lambda k: p[i, k] * q[*j, k])"
PRODUCTS = "def products(p, q):\n    return lambda replica, i, *j: Sum(lambda k: p[i, k] * q[replica, *j, k])"
ORTHOGONAL = """
def orthogonal(p, size, *, column, small):
    square = lambda one=1: Sum(lambda i: p[i, column] * p[i, column])
    unit = lambda i: where(square[0] > small * size[0], p[i, column] / sqrt(maximum(square[0], 1e-30)), 0)
    along = lambda k: Sum(lambda i: unit[i] * p[i, k])
    return lambda i, k: unit[i] if k == column else p[i, k] - (along[k] * unit[i] if k > column else 0)
"""


def exchange_factors(edit: GraphEdit, local: int, encoder: PowerSgd, variable: str, name: str) -> int:
    """Return the gradient, with this name, that is the product of the factors that workers exchange.

    Raises GraphError for a gradient that is not a matrix of that rank.
    """
    tensor, rank = edit.tensors[local], encoder.rank
    _check(tensor.shape[1:], rank, tensor.dtype, variable)
    dtype = tensor.dtype
    matrix, error = with_error(edit, local, variable, name)
    state, start = _start(edit, (*tensor.shape[2:], rank), dtype, variable)
    given = {"m": matrix, "q": start}
    left = edit.apply(f"left({name})", stage_of(LEFT, _shapes(edit, given)), given, dtype=dtype)
    summed = _summed(edit, left, f"sum(left({name}))")
    basis = _orthonormal(edit, summed, rank, f"basis({name})")
    given = {"m": matrix, "p": basis}
    right = edit.apply(f"right({name})", stage_of(RIGHT, _shapes(edit, given)), given, dtype=dtype)
    whole = _summed(edit, right, f"sum(right({name}))")
    given = {"p": basis, "q": right}
    kept = edit.apply(f"kept({name})", stage_of(PRODUCTS, _shapes(edit, given)), given, dtype=dtype)
    given = {"data": matrix, "stored": kept}
    edit.overwrite(error, stage_of(SUBTRACT, _shapes(edit, given)), given)
    edit.overwrite(state, stage_of(COPY, {"data": edit.tensors[whole].shape}), {"data": whole})
    given = {"p": basis, "q": whole}
    return edit.apply(name, stage_of(PRODUCT, _shapes(edit, given)), given, dtype=dtype)


def _check(shape: Shape, rank: int, dtype: str, variable: str) -> None:
    if dtype in MIXED:
        raise GraphError(
            f"the gradient of {variable!r} is in {dtype}, in which its columns cannot be made orthogonal; "
            "store the graph in float32"
        )
    if len(shape) < 2:
        raise GraphError(
            f"the gradient of {variable!r} has shape {shape}, which is not a matrix; leave out its encoder"
        )
    most = min(shape[0], prod(shape[1:]))
    if rank > most:
        raise GraphError(
            f"the gradient of {variable!r} has shape {shape}, so its rank is at most {most}, not {rank}; "
            "choose a lower one"
        )


def _start(edit: GraphEdit, shape: Shape, dtype: str, variable: str) -> tuple[int, int]:
    """Return the state with the factor of the iteration before, and the factor to start from."""
    state = edit.tensor(f"factor({variable})", shape, Role.STATE, dtype)
    stages = stages_of(start_text(len(shape) - 1), {"state": shape})
    names = {"size": f"size(factor({variable}))", "output_0": f"start({variable})"}
    return state, edit.apply_all(names, stages, {"state": state}, dtype=dtype)


def start_text(rank: int) -> str:
    """Return the description of a start whose columns have `rank` dimensions."""
    names = [f"j{axis}" for axis in range(rank)]
    place = "0"
    for axis, name in enumerate(names):
        place = f"({place}) * state.shape[{axis}] + {name}" if axis else name
    listed = ", ".join(names)
    return (
        "def start(state):\n"
        f"    size = lambda k: Sum(lambda {listed}: abs(state[{listed}, k]))\n"
        f"    return lambda {listed}, k: where(size[k] == 0, 2 * uniform(k, 0, {place}) - 1, "
        f"state[{listed}, k])\n"
    )


def _summed(edit: GraphEdit, local: int, name: str) -> int:
    tensor = edit.tensors[local]
    return edit.apply(name, stage_of(SUM, {"data": tensor.shape}), {"data": local}, dtype=tensor.dtype)


def _orthonormal(edit: GraphEdit, matrix: int, rank: int, name: str) -> int:
    """Return a matrix whose columns are orthonormal, made one after the other."""
    shape, dtype = edit.tensors[matrix].shape, edit.tensors[matrix].dtype
    size = edit.apply(f"size({name})", stage_of(SIZE, {"p": shape}), {"p": matrix}, dtype=dtype)
    for column in range(rank):
        stages = stages_of(ORTHOGONAL, {"p": shape, "size": (1,)}, column=column, small=SMALL**2)
        names = {part: f"{part}_{column}({name})" for part in ("square", "unit", "along")}
        names["output_0"] = name if column == rank - 1 else f"{name}_{column}"
        matrix = edit.apply_all(names, stages, {"p": matrix, "size": size}, dtype=dtype)
    return matrix


def _shapes(edit: GraphEdit, inputs: dict[str, int]) -> dict[str, Shape]:
    return {name: edit.tensors[tensor].shape for name, tensor in inputs.items()}
