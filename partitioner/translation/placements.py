"""The three things that a placement of DTensor says of a tensor along one axis of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Boxes, Shape, whole
from .named_mesh import NamedMesh


@dataclass(frozen=True, slots=True)
class Shard:
    """Workers along the axis hold chunks of one dimension, as `torch.chunk` makes them."""

    dim: int
    """The dimension."""


@dataclass(frozen=True, slots=True)
class Replicate:
    """Workers along the axis hold the same."""


@dataclass(frozen=True, slots=True)
class Unreduced:
    """Workers along the axis hold terms that are still to be combined: DTensor's `Partial`."""

    reduction: str = "sum"
    """How: `sum`, `product`, `max` or `min`."""


Placement = Shard | Replicate | Unreduced

Placements = tuple[Placement, ...]
"""A placement for each axis of a mesh."""


def chunks(shape: Shape, placements: Placements, mesh: NamedMesh) -> Boxes:
    """Return the box that every worker holds by DTensor's rule: `[workers, dimensions, 2]`.

    From the first axis to the last, what is left of a dimension is cut into chunks of equal size, rounded up.
    The last chunks are smaller, or empty.
    """
    boxes = np.repeat(whole(shape)[None], mesh.workers, axis=0)
    for placement, coordinate, size in zip(placements, coordinates(mesh), mesh.sizes, strict=True):
        if isinstance(placement, Shard):
            lower, upper = boxes[:, placement.dim, 0].copy(), boxes[:, placement.dim, 1].copy()
            chunk = -(-(upper - lower) // size)
            boxes[:, placement.dim, 0] = np.minimum(lower + coordinate * chunk, upper)
            boxes[:, placement.dim, 1] = np.minimum(lower + (coordinate + 1) * chunk, upper)
    return boxes


def coordinates(mesh: NamedMesh) -> npt.NDArray[np.int64]:
    """Return the place of every worker along every axis: `[axes, workers]`."""
    return np.array(np.unravel_index(np.arange(mesh.workers), mesh.sizes), np.int64)
