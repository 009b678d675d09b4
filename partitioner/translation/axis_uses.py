"""The use of every axis of a mesh for a tensor, found from the parts of a plan.

No form is looked at: parts that differ along an axis in one dimension are cut there, and parts that differ in
their terms alone are terms. The result is only a proposal. Each system then says which boxes it would give by
its own rule, and `compared` holds these against the parts of the plan.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Boxes, to_region, volume
from ...programs.program import region_text
from ...support.wording import counted
from .named_mesh import NamedMesh

SHOWN = 4
"""How many workers a reason lists."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that stands in the way of a translation."""

    kind: str
    """`workers`, `parts`, `axis`, `nesting`, `terms`, `reduction`, `halo`, `uneven`, `copy`, `order` or
    `rewrite`.
    """

    text: str
    """The obstacle in words, with both values."""


@dataclass(frozen=True, slots=True)
class AxisUses:
    """The uses of the axes of a mesh for a tensor; an axis that is not named repeats it."""

    cuts: tuple[tuple[int, ...], ...]
    """For each dimension, the axes that cut it, the one between the largest parts first."""

    terms: tuple[int, ...]
    """The axes along which workers have other terms."""


@dataclass(frozen=True, slots=True, eq=False)
class MeshParts:
    """A part on every worker of a mesh."""

    boxes: Boxes
    """The box of each worker: `[workers, dimensions, 2]`."""

    uses: AxisUses
    """The uses that the axes of the mesh seem to have."""

    reads: bool
    """Whether the boxes are read, and not made or held: a system may then give more than the box."""


def mesh_parts(
    workers: npt.NDArray[np.int64],
    boxes: Boxes,
    term: npt.NDArray[np.int64],
    mesh: NamedMesh,
    *,
    reads: bool = False,
) -> MeshParts | Obstacle:
    """Return the parts of a tensor by worker, or why they are not one for each.

    `workers` `[parts]`, `boxes` `[parts, dimensions, 2]` and `term` `[parts]` are those of a plan.
    """
    held = np.bincount(workers, minlength=mesh.workers)
    if (held == 0).any():
        idle = np.flatnonzero(held == 0).tolist()
        listed = ", ".join(map(str, idle[:SHOWN])) + (", ..." if len(idle) > SHOWN else "")
        return Obstacle("workers", f"{counted(len(idle), 'worker has', 'workers have')} no part: {listed}")
    if (held > 1).any():
        first = int(np.flatnonzero(held > 1)[0])
        return Obstacle("parts", f"worker {first} has {held[first]} parts, and there can be one")
    by_worker = np.argsort(workers, kind="stable")
    boxes, term = boxes[by_worker], term[by_worker]
    cuts: list[list[tuple[int, int]]] = [[] for _ in range(boxes.shape[1])]
    terms: list[int] = []
    numbers = np.arange(mesh.workers).reshape(mesh.sizes)
    for axis, (name, size) in enumerate(zip(mesh.names, mesh.sizes, strict=True)):
        if size == 1:
            continue
        line = np.moveaxis(numbers, axis, 0).reshape(size, -1)[:, 0]
        changed = np.flatnonzero((boxes[line] != boxes[line[0]]).any(axis=(0, 2))).tolist()
        if len(changed) > 1:
            both = " and ".join(map(str, changed))
            text = (
                f"axis {name!r} cuts dimensions {both}; a mesh with an axis for each factor of {size} says it"
            )
            return Obstacle("axis", text)
        if changed:
            lower = boxes[line, changed[0], 0]
            cuts[changed[0]].append((-int(lower[1] - lower[0]), axis))
        elif (term[line] != term[0]).any():
            terms.append(axis)
    uses = AxisUses(tuple(tuple(axis for _, axis in sorted(of)) for of in cuts), tuple(terms))
    return _of_terms(term.reshape(mesh.sizes), uses.terms) or MeshParts(boxes, uses, reads)


def _of_terms(term: npt.NDArray[np.int64], axes: tuple[int, ...]) -> Obstacle | None:
    """Return a reason unless the terms are numbered by the places along these axes alone."""
    first = tuple(slice(None) if axis in axes else slice(0, 1) for axis in range(term.ndim))
    distinct = term[first]
    if (term == distinct).all() and len(np.unique(distinct)) == distinct.size:
        return None
    return Obstacle("terms", "the terms of the sum are on other workers than an axis of the mesh has")


def compared(parts: MeshParts, given: Boxes) -> Obstacle | None:
    """Return how the boxes of a plan differ from those of a rule, `[workers, dimensions, 2]` both."""
    boxes = parts.boxes
    inside = _inside(boxes, given)
    if (inside if parts.reads else inside & _inside(given, boxes)).all():
        return None
    if parts.reads and _inside(given, boxes).all():
        beyond = np.maximum(given[..., 0] - boxes[..., 0], boxes[..., 1] - given[..., 1]).max(axis=0)
        d = int(beyond.argmax())
        text = f"workers read up to {counted(int(beyond[d]), 'element')} beyond their part of dimension {d}"
        return Obstacle("halo", text)
    if Counter(map(bytes, boxes)) == Counter(map(bytes, given)):
        return Obstacle("workers", "the parts are those of the mesh, on its workers in another order")
    worker = int(np.flatnonzero(~(inside & _inside(given, boxes)))[0])
    verb = "reads" if parts.reads else "has"
    ours, theirs = (region_text(to_region(each[worker])) for each in (boxes, given))
    return Obstacle("uneven", f"worker {worker} {verb} {ours}, and would have {theirs}")


def _inside(inner: Boxes, outer: Boxes) -> npt.NDArray[np.bool_]:
    """Tell for each worker whether a box lies in another; empty boxes do."""
    within = (inner[..., 0] >= outer[..., 0]) & (inner[..., 1] <= outer[..., 1])
    found: npt.NDArray[np.bool_] = within.all(axis=-1) | (volume(inner) == 0)
    return found
