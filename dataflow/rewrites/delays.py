"""Apply gradients of earlier iterations, in a fixed order.

A parameter is updated by the gradient of K iterations before. K states of its shape hold the gradients that
wait, and are zero at first. After the update each takes over the next newer one:

    update(w, delayed_K);  delayed_K = delayed_(K-1);  ...;  delayed_1 = gradient
"""

from __future__ import annotations

from collections.abc import Sequence

from ..element_types import UNIFORM
from ..graph import Role
from .edit import GraphEdit
from .stages import COPY, stage_of


def delayed(edit: GraphEdit, gradient: int, delay: int, variable: str, updates: Sequence[int]) -> int:
    """Return the gradient of `delay` iterations before, which is for these updates."""
    tensor = edit.tensors[gradient]
    dtype = tensor.dtype if tensor.dtype in UNIFORM else "float32"
    states = [
        edit.tensor(f"delayed_{age}({variable})", tensor.shape, Role.STATE, dtype)
        for age in range(delay, 0, -1)
    ]
    copy = stage_of(COPY, {"data": tensor.shape})
    after = max(updates)
    for target, source in zip(states, [*states[1:], gradient], strict=True):
        edit.overwrite(target, copy, {"data": source}, after)
    return states[0]
