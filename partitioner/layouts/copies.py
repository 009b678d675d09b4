"""Copies: versions of a tensor besides its home, made before their first reader and kept to their last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...analyzer.indices.region import Shape
from ...dataflow.graph import Graph, Operation
from ...errors import PlanError
from ...support.wording import alternatives
from .forms import Form
from .step_split import Layout


@dataclass(frozen=True, slots=True)
class Copy:
    """A version of a tensor in other holdings than its home."""

    form: Form
    """Who holds which parts; a part that its worker has at home takes no memory and moves no bytes."""

    readers: tuple[str, ...]
    """The operations that read this version instead of the home."""

    source: int = 0
    """The version it is made from: 0 is the home, then the tensor's copies in order."""


Copies = Mapping[str, Sequence[Copy]]
"""The copies of each tensor that has any, by name."""


@dataclass(frozen=True, slots=True)
class ReadCopy:
    """A copy as one operation finds it."""

    tensor: int
    """The tensor's number in the graph."""

    number: int
    """The number of the version, from 1 on."""

    layout: Layout
    """The holdings of the version."""

    source: Layout
    """The holdings of the version that it is made from."""

    from_number: int
    """The number of that version."""

    made: bool
    """Whether this operation is the first to read the version, which is made for it."""


def versions_read(
    graph: Graph, order: Sequence[Operation], layouts: Mapping[str, Layout], copies: Copies
) -> dict[tuple[int, int], ReadCopy]:
    """Return the copies that operations read, by the numbers of operation and tensor.

    Raises PlanError for readers that do not exist or read another version as well, and for a copy that is
    made from one that is not there yet.
    """
    found: dict[tuple[int, int], ReadCopy] = {}
    tensors = {tensor.name: tensor for tensor in graph.tensors}
    operations = {operation.name: operation for operation in graph.operations}
    place = {operation.index: number for number, operation in enumerate(order)}
    shared: dict[tuple[Shape, int], Layout] = {}  # by shape and the identity of the form
    for name, listed in copies.items():
        if name not in tensors:
            raise PlanError(f"there is no tensor {name!r} to copy{alternatives(name, tensors)}")
        tensor = tensors[name]
        held, begins = [layouts[name]], [-1]
        for number, copy in enumerate(listed, 1):
            here = f"copy {number} of tensor {name!r}"
            if not 0 <= copy.source < number:
                raise PlanError(f"{here} is made from version {copy.source}; choose one of 0 to {number - 1}")
            readers = [_reader(reader, operations, tensor.index, here) for reader in copy.readers]
            if not readers:
                raise PlanError(f"{here} has no readers; name the operations that read it")
            first = min(place[reader] for reader in readers)
            if first < begins[copy.source]:
                raise PlanError(f"{here} is made before version {copy.source}, from which it is made")
            key = tensor.shape, id(copy.form)
            if key not in shared:
                shared[key] = Layout(tensor.shape, copy.form, layouts[name].factors)
                shared[key].check_held(here)
            held.append(shared[key])
            begins.append(first)
            for reader in readers:
                if (reader, tensor.index) in found:
                    raise PlanError(
                        f"{here}: operation {graph.operations[reader].name!r} reads another version"
                    )
                found[reader, tensor.index] = ReadCopy(
                    tensor.index, number, held[-1], held[copy.source], copy.source, place[reader] == first
                )
    return found


def _reader(name: str, operations: Mapping[str, Operation], tensor: int, place: str) -> int:
    if name not in operations:
        raise PlanError(f"{place}: there is no operation {name!r}{alternatives(name, operations)}")
    operation = operations[name]
    if tensor not in operation.inputs:
        raise PlanError(f"{place}: operation {name!r} does not read it")
    return operation.index
