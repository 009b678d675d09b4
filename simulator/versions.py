"""The versions of tensors that operations read and make: each at home, and copies of it.

Each version has a number: a tensor at home its own, and a copy one after those. A copy is made for the first
operation that reads it, from the home or from another copy, and lives from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from ..programs.parts import Holding
from ..support.wording import alternatives

_NONE = -1


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A version of a tensor besides its home."""

    holdings: Sequence[Holding]
    """Who holds which parts. A part that its worker holds in the source already is not moved."""

    readers: Sequence[str]
    """The operations that read this version instead of the home."""

    source: int = 0
    """The version it is made from: 0 is the home, then the tensor's copies in order."""


@dataclass(frozen=True, slots=True)
class NumberedVersions:
    """The versions of all tensors of a graph."""

    tensors: list[int]
    """The tensor of each version."""

    sources: list[int]
    """The version that each copy is made from; -1 for a tensor."""

    roots: list[int]
    """The version whose storage each version has: its own, or the tensor that a tensor overwrites."""

    copies: dict[str, list[int]]
    """The copies of each tensor that has any, by its name."""

    made: list[list[int]]
    """For each operation, the copies that are made for it, as its inputs are listed."""

    read: list[dict[int, int]]
    """For each operation, the copies that it reads, by tensor."""

    def read_by(self, operation: Operation) -> list[int]:
        """Return the versions that an operation reads, as its description lists them."""
        copies, inputs = self.read[operation.index], operation.inputs
        tensors = [inputs[place] for place, _ in operation.bound.read_places]
        return [copies.get(tensor, tensor) for tensor in tensors] if copies else tensors

    def with_sources(self, read: Iterable[int], made: Sequence[int]) -> list[int]:
        """Return versions, each with those that it is made from up to the tensor, once, without `made`."""
        found: dict[int, None] = {}
        for version in (*read, *made):
            while version != _NONE:
                if version not in made:
                    found[version] = None
                version = self.sources[version]
        return list(found)


def number_versions(
    graph: Graph, copies: Mapping[str, Sequence[HeldCopy]], order: Sequence[int]
) -> NumberedVersions:
    """Number the versions of all tensors, if operations run in an order.

    Raises PlanError for copies of what does not exist, for readers that do not exist or read another version
    as well, and for a copy that is made from one that is not there yet.
    """
    numbering = _Numbering(graph, order)
    for name, listed in copies.items():
        numbering.add(name, listed)
    return numbering.result()


class _Numbering:
    def __init__(self, graph: Graph, order: Sequence[int]) -> None:
        self._graph = graph
        self._order = order
        self._position = {operation: place for place, operation in enumerate(order)}
        self._tensors = {tensor.name: tensor.index for tensor in graph.tensors}
        self._operations = {operation.name: operation.index for operation in graph.operations}
        count = len(graph.operations)
        self._found = NumberedVersions(
            list(range(len(graph.tensors))),
            [_NONE] * len(graph.tensors),
            list(graph.roots),
            {},
            [[] for _ in range(count)],
            [{} for _ in range(count)],
        )

    def add(self, name: str, copies: Sequence[HeldCopy]) -> None:
        """Number the copies of a tensor."""
        if name not in self._tensors:
            raise PlanError(f"there is no tensor {name!r} to copy{alternatives(name, self._tensors)}")
        found, tensor = self._found, self._tensors[name]
        versions, begins = [tensor], [_NONE]
        for number, copy in enumerate(copies, 1):
            place = f"copy {number} of tensor {name!r}"
            if not 0 <= copy.source < number:
                raise PlanError(
                    f"{place} is made from version {copy.source}; choose one of 0 to {number - 1}"
                )
            version = len(found.tensors)
            begins.append(self._read(copy.readers, tensor, version, place))
            if begins[number] < begins[copy.source]:
                raise PlanError(f"{place} is made before version {copy.source}, from which it is made")
            found.tensors.append(tensor)
            found.sources.append(versions[copy.source])
            found.roots.append(version)
            found.made[self._order[begins[number]]].append(version)
            versions.append(version)
        found.copies[name] = versions[1:]

    def _read(self, readers: Sequence[str], tensor: int, version: int, place: str) -> int:
        """Let operations read a copy; return the place of the first one in the order."""
        if not readers:
            raise PlanError(f"{place} has no readers; name the operations that read it")
        for name in readers:
            number = self._operations.get(name)
            if number is None:
                raise PlanError(
                    f"{place}: there is no operation {name!r}{alternatives(name, self._operations)}"
                )
            if tensor not in self._graph.operations[number].inputs:
                raise PlanError(f"{place}: operation {name!r} does not read it")
            if self._found.read[number].setdefault(tensor, version) != version:
                raise PlanError(f"{place}: operation {name!r} reads another version")
        return min(self._position[self._operations[name]] for name in readers)

    def result(self) -> NumberedVersions:
        """Return all versions; copies of one operation in the order of its inputs."""
        found = self._found
        for operation in self._graph.operations:
            if len(found.made[operation.index]) > 1:
                place = {tensor: number for number, tensor in enumerate(reversed(operation.inputs))}
                found.made[operation.index].sort(key=lambda version: -place[found.tensors[version]])
        return found
