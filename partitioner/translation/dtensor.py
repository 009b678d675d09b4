"""Placements of `torch.distributed.tensor` for the parts of a plan."""

from __future__ import annotations

from typing import Any

from ...analyzer.indices.region import Shape
from ...tdl.ast import AnyReducer, Reducer
from .axis_uses import MeshParts, Obstacle, compared
from .named_mesh import NamedMesh
from .placements import Placement, Placements, Replicate, Shard, Unreduced, chunks

REDUCTIONS: dict[AnyReducer | None, str] = {
    Reducer.SUM: "sum",
    Reducer.PROD: "product",
    Reducer.MAX: "max",
    Reducer.MIN: "min",
}
"""The names that DTensor has for reducers."""


def say_placements(
    shape: Shape, parts: MeshParts, reducer: AnyReducer | None, mesh: NamedMesh
) -> Placements | Obstacle:
    """Return the placements of a tensor, or why DTensor has none. `reducer` combines its terms."""
    found: list[Placement] = [Replicate()] * len(mesh.sizes)
    for dim, axes in enumerate(parts.uses.cuts):
        if list(axes) != sorted(axes):
            names = ", ".join(mesh.names[axis] for axis in axes)
            text = (
                f"dimension {dim} is cut along axes {names} in this order; DTensor cuts in the mesh's order"
            )
            return Obstacle("nesting", text)
        for axis in axes:
            found[axis] = Shard(dim)
    for axis in parts.uses.terms:
        if reducer not in REDUCTIONS:
            return Obstacle("reduction", f"terms are combined by {reducer}, which DTensor does not have")
        found[axis] = Unreduced(REDUCTIONS[reducer])
    placements = tuple(found)
    return compared(parts, chunks(shape, placements, mesh)) or placements


def to_torch(placements: Placements) -> tuple[Any, ...]:
    """Return placements as objects of `torch.distributed.tensor`. Raises TofuError without PyTorch."""
    from ...importers.torch.installed import installed

    installed()
    from torch.distributed import tensor

    def one(placement: Placement) -> Any:
        match placement:
            case Shard(dim=dim):
                return tensor.Shard(dim)
            case Unreduced(reduction=reduction):
                return tensor.Partial(reduction)
            case Replicate():
                return tensor.Replicate()

    return tuple(map(one, placements))


def as_placement(value: Any) -> Placement | None:
    """Return a placement of Tofu or of PyTorch as Tofu's; None for what is neither."""
    match value:
        case Shard() | Replicate() | Unreduced():
            return value
        case _:
            kind, dim = type(value).__name__, getattr(value, "dim", None)
            if kind == "Shard" and isinstance(dim, int):
                return Shard(dim)
            if kind == "Replicate":
                return Replicate()
            return (
                Unreduced(str(value.reduce_op)) if kind == "Partial" and hasattr(value, "reduce_op") else None
            )
