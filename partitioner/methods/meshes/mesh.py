"""A mesh: workers in groups, which share a batch among them and tensors within them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from ....errors import PlanError
from ...layouts.step_split import prime_factors

_WRITTEN = re.compile(
    r"(?=[dt])(?:dp(?P<data>[1-9]\d{0,4}))?(?:(?:\b-|^)tp(?P<tensor>[1-9]\d{0,4}))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Mesh:
    """`data` groups of `tensor` workers each.

    Every group has its own samples. The workers of a group share out the parameters. Neighbouring workers are
    in one group where the factors of their number allow.
    """

    data: int
    tensor: int

    def __str__(self) -> str:
        parts = [f"dp{self.data}"] * (self.data > 1) + [f"tp{self.tensor}"] * (self.tensor > 1)
        return "-".join(parts) or "dp1"

    @property
    def within(self) -> tuple[bool, ...]:
        """Tell, for each prime factor of the number of workers, whether it is a step within groups."""
        return _within(self)


@cache
def _within(mesh: Mesh) -> tuple[bool, ...]:
    left, found = mesh.tensor, []
    for factor in reversed(prime_factors(mesh.data * mesh.tensor)):
        found.append(left % factor == 0)
        left //= factor if found[-1] else 1
    return tuple(reversed(found))


def parse_mesh(text: str, workers: int) -> Mesh:
    """Read a mesh such as `dp4-tp2`, `dp8` or `tp8`; a part that is left out is 1.

    Raises PlanError if it is none, or if its parts do not multiply to the number of workers.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise PlanError(
            f"there is no mesh {text!r}; write the number of groups and the workers of each, as in "
            f"{Mesh(workers, 1)}, or one of {_listed(workers)}"
        )
    mesh = Mesh(int(found["data"] or 1), int(found["tensor"] or 1))
    if mesh.data * mesh.tensor != workers:
        raise PlanError(
            f"the mesh {text!r} has {mesh.data} x {mesh.tensor} = {mesh.data * mesh.tensor} workers, but the "
            f"plan is for {workers}; choose one of {_listed(workers)}"
        )
    return mesh


def meshes(workers: int) -> list[Mesh]:
    """Return all meshes of a number of workers, the one with the most groups first."""
    return [Mesh(workers // tensor, tensor) for tensor in range(1, workers + 1) if workers % tensor == 0]


def _listed(workers: int) -> str:
    return ", ".join(map(str, meshes(workers)))
