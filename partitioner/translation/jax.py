"""Partition specs of JAX for the parts of a plan, as plain tuples: JAX itself is not needed.

A spec has one entry for each dimension: None, the name of an axis, or several names, the most significant
first. `jax.sharding.PartitionSpec(*spec)` takes it. Parts of a dimension are equal, and there are no terms.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...analyzer.indices.region import Boxes, Shape, whole
from ...tdl.ast import AnyReducer
from .axis_uses import MeshParts, Obstacle, compared
from .named_mesh import NamedMesh
from .placements import coordinates

SpecEntry = str | tuple[str, ...] | None
"""The entry of a spec for one dimension."""

Spec = tuple[SpecEntry, ...]
"""A partition spec: an entry for each dimension."""


def say_spec(shape: Shape, parts: MeshParts, reducer: AnyReducer | None, mesh: NamedMesh) -> Spec | Obstacle:
    """Return the spec of a tensor, or why JAX has none."""
    uses = parts.uses
    if uses.terms:
        names = ", ".join(mesh.names[axis] for axis in uses.terms)
        return Obstacle("terms", f"workers along {names} have terms of a {reducer}, and a spec has none")
    for dim, axes in enumerate(uses.cuts):
        count = prod(mesh.sizes[axis] for axis in axes)
        if shape[dim] % count:
            text = f"dimension {dim} has {shape[dim]} elements, which {count} equal parts do not divide"
            return Obstacle("uneven", text)
    return compared(parts, _equal_parts(shape, uses.cuts, mesh)) or tuple(
        _entry(tuple(mesh.names[axis] for axis in axes)) for axes in uses.cuts
    )


def _entry(names: tuple[str, ...]) -> SpecEntry:
    return names if len(names) > 1 else names[0] if names else None


def _equal_parts(shape: Shape, cuts: tuple[tuple[int, ...], ...], mesh: NamedMesh) -> Boxes:
    """Return the box of every worker by JAX's rule: `[workers, dimensions, 2]`."""
    boxes = np.repeat(whole(shape)[None], mesh.workers, axis=0)
    places = coordinates(mesh)
    for dim, axes in enumerate(cuts):
        number, count = np.zeros(mesh.workers, np.int64), 1
        for axis in axes:
            number, count = number * mesh.sizes[axis] + places[axis], count * mesh.sizes[axis]
        size = shape[dim] // count
        boxes[:, dim, 0], boxes[:, dim, 1] = number * size, (number + 1) * size
    return boxes
