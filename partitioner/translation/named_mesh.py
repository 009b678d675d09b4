"""A mesh as other systems have it: workers in an array whose axes have names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ...errors import PlanError
from ...machines.machine import WORKER_LIMIT


@dataclass(frozen=True, slots=True)
class NamedMesh:
    """Workers 0, 1, ... in row-major order of named axes.

    Workers that follow each other differ in the last axis.
    """

    names: tuple[str, ...]
    """The names of the axes."""

    sizes: tuple[int, ...]
    """The number of workers along each axis."""

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return prod(self.sizes)

    def __str__(self) -> str:
        return " x ".join(f"{name}={size}" for name, size in zip(self.names, self.sizes, strict=True))


def named_mesh(mesh: NamedMesh | Mapping[str, int], workers: int | None = None) -> NamedMesh:
    """Return a mesh of sizes by name, such as `{"dp": 4, "tp": 2}`.

    Raises PlanError if names or sizes are impossible, or if the mesh does not have `workers` workers.
    """
    if isinstance(mesh, NamedMesh):
        found = mesh
    elif isinstance(mesh, Mapping) and mesh:
        found = NamedMesh(*zip(*[_axis(name, size) for name, size in mesh.items()], strict=True))
    else:
        raise PlanError(f"the mesh is {str(mesh)[:80]!r}; give sizes by name, such as {{'dp': 4, 'tp': 2}}")
    if found.workers > WORKER_LIMIT:
        raise PlanError(f"the mesh {found} has {found.workers} workers; there can be {WORKER_LIMIT} at most")
    if workers is not None and found.workers != workers:
        raise PlanError(
            f"the mesh {found} has {found.workers} workers, but the plan is for {workers}; change a size"
        )
    return found


def _axis(name: Any, size: Any) -> tuple[str, int]:
    if not isinstance(name, str) or not name:
        raise PlanError(f"an axis of the mesh has the name {name!r}; give text, such as 'dp'")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise PlanError(f"axis {name!r} of the mesh has size {size!r}; give a whole number, 1 or more")
    return name, size
