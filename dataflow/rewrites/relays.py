"""Tensors that go through a copy on their way, so that a plan can say where they stop.

A relayed gradient is copied before its updates read it, and a relayed parameter before the forward and the
backward pass do. The numbers are the same. What a worker computes of the copy is what it brings onto its host
for its neighbours.
"""

from __future__ import annotations

from ..graph import Phase, Role
from .edit import GraphEdit
from .stages import COPY, stage_of


def relayed_gradient(edit: GraphEdit, gradient: int) -> int:
    """Return a copy of a gradient, which takes over its name."""
    tensor = edit.tensors[gradient]
    edit.rename(gradient, f"reduced({tensor.name})")
    copy = stage_of(COPY, {"data": tensor.shape})
    given = {"data": gradient}
    return edit.apply(tensor.name, copy, given, dtype=tensor.dtype, operation=f"relay({tensor.name})")


def relay_parameter(edit: GraphEdit, parameter: int) -> None:
    """Let the forward and the backward pass read a copy of a parameter."""
    tensor = edit.tensors[parameter]
    copied = edit.apply(
        f"relayed({tensor.name})",
        stage_of(COPY, {"data": tensor.shape}),
        {"data": parameter},
        dtype=tensor.dtype,
        operation=f"relay({tensor.name})",
        phase=Phase.FORWARD,
        role=Role.ACTIVATION,
    )
    edit.read_copy(parameter, copied)
