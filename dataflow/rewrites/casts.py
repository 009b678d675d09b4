"""Exchange gradients in 16 bits, with or without feedback of what rounding loses.

    corrected[r]  = error[r] + local[r]             only with feedback
    stored[r]     = corrected[r] in 16 bits
    error[r]      = corrected[r] - stored[r]        only with feedback; a state of each worker, zero at first
    gradient      = sum of stored[r] over r, added up in float32 and stored in 16 bits

All but the sum is done by the worker of each replica, so workers exchange tensors of 16 bits on both hops of
an all-reduce.
"""

from __future__ import annotations

from ...errors import GraphError
from ..element_types import MIXED
from ..graph import Role
from .edit import GraphEdit
from .encoders import Cast
from .stages import ADD, COPY, SUBTRACT, SUM, stage_of


def exchange_cast(edit: GraphEdit, local: int, cast: Cast, variable: str, name: str) -> int:
    """Return the sum of local gradients `[replica, ...]` that are exchanged in 16 bits; it gets this name."""
    tensor = edit.tensors[local]
    if tensor.dtype in MIXED:
        raise GraphError(
            f"the gradient of {variable!r} is in {tensor.dtype} already; leave out its encoder, or store the "
            "graph in float32"
        )
    corrected, error = (local, None) if not cast.feedback else with_error(edit, local, variable, name)
    copy = stage_of(COPY, {"data": tensor.shape})
    stored = edit.apply(f"{cast.dtype}({name})", copy, {"data": corrected}, dtype=cast.dtype)
    if error is not None:
        shapes = {"data": tensor.shape, "stored": tensor.shape}
        edit.overwrite(error, stage_of(SUBTRACT, shapes), {"data": corrected, "stored": stored})
    return edit.apply(name, stage_of(SUM, {"data": tensor.shape}), {"data": stored}, dtype=cast.dtype)


def with_error(edit: GraphEdit, local: int, variable: str, name: str) -> tuple[int, int]:
    """Add to local gradients what earlier iterations lost; return their sum, and the state with the loss."""
    tensor = edit.tensors[local]
    error = edit.tensor(f"error({variable})", tensor.shape, Role.STATE, tensor.dtype)
    add = stage_of(ADD, {"error": tensor.shape, "gradient": tensor.shape})
    given = {"error": error, "gradient": local}
    return edit.apply(f"corrected({name})", add, given, dtype=tensor.dtype), error
