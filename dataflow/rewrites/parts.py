"""Gradients in parts along one dimension, each with a rewrite of its own.

local[p][r]   = the elements of local[r] between two bounds
gradient[p]   = the sum of local[p][r] over r, which may be encoded and delayed
gradient      = all parts next to each other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ...errors import GraphError
from .delays import delayed
from .edit import GraphEdit
from .encoders import Encoder, PartedRewrite
from .stages import SUM, stage_of

MOST = 16
"""The most parts: each is read by the operation that puts them together."""

Exchange = Callable[[int, Encoder, str, str], int]
"""Returns a gradient from local ones, their encoder, the name of what learns from it, and its own name."""


def rewritten_parts(
    edit: GraphEdit,
    local: int,
    parted: PartedRewrite,
    variable: str,
    name: str,
    updates: Sequence[int],
    exchange: Exchange,
) -> int:
    """Return the gradient, with this name, whose parts are rewritten. Raises GraphError for too many."""
    tensor, axis = edit.tensors[local], parted.axis
    if len(parted.rewrites) > MOST:
        raise GraphError(
            f"the gradient of {variable!r} has {len(parted.rewrites)} parts with rewrites, but at most "
            f"{MOST} are put together; give it fewer"
        )
    shape = tensor.shape[1:]
    edges = list(pairwise((0, *parted.bounds, shape[axis])))
    parts: dict[str, int] = {}
    for number, ((lower, upper), rewrite) in enumerate(zip(edges, parted.rewrites, strict=True)):
        place = f"{lower}:{upper}"
        cut = stage_of(_cut_text(len(shape), axis), {"data": tensor.shape}, lower=lower, size=upper - lower)
        part = edit.apply(f"local({name})[{place}]", cut, {"data": local}, dtype=tensor.dtype)
        made = f"{name}[{place}]"
        if rewrite.encoder is None:
            stage = stage_of(SUM, {"data": edit.tensors[part].shape})
            part = edit.apply(made, stage, {"data": part}, dtype=tensor.dtype)
        else:
            part = exchange(part, rewrite.encoder, f"{variable}[{place}]", made)
        if rewrite.delay:
            part = delayed(edit, part, rewrite.delay, f"{variable}[{place}]", updates)
        parts[f"p{number}"] = part
    text = _joined_text(shape, axis, [lower for lower, _ in edges])
    stage = stage_of(text, {given: edit.tensors[part].shape for given, part in parts.items()})
    return edit.apply(name, stage, parts, dtype=tensor.dtype)


def _cut_text(rank: int, axis: int) -> str:
    """Return the description of the elements of a local gradient between two bounds."""
    names = [f"i{number}" for number in range(rank)]
    binders = [f"{name}=size" if number == axis else name for number, name in enumerate(names)]
    read = [f"{name} + lower" if number == axis else name for number, name in enumerate(names)]
    return (
        "def part(data, *, lower, size):\n"
        f"    return lambda replica, {', '.join(binders)}: data[replica, {', '.join(read)}]\n"
    )


def _joined_text(shape: Sequence[int], axis: int, lower: Sequence[int]) -> str:
    """Return the description of a tensor of this shape, made of parts that begin at these places."""
    binders = [f"i{number}={extent}" for number, extent in enumerate(shape)]
    reads = []
    for part, start in enumerate(lower):
        read = [f"i{n} - {start}" if n == axis and start else f"i{n}" for n in range(len(shape))]
        reads.append(f"pad(p{part}[{', '.join(read)}], 0)")
    names = ", ".join(f"p{part}" for part in range(len(lower)))
    return f"def joined({names}):\n    return lambda {', '.join(binders)}: {' + '.join(reads)}\n"
