"""Views of buffers, in any kind of memory, as instructions name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..analyzer.indices.region import Region
from ..operators.kernels.kernel import KernelCall
from ..operators.kernels.workspace import Workspace
from ..programs.program import Compute, PartitionedGraph

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class BufferViews(Generic[View]):
    """`views[worker][buffer]` are arrays or similar values; slices select parts of them."""

    partitioned: PartitionedGraph
    views: Sequence[Sequence[View]]

    def part(self, worker: int, buffer: int, region: Region) -> View:
        """Return the part of a buffer that holds `region` of its tensor."""
        held = self.partitioned.programs[worker].buffers[buffer].region
        return part_of(self.views[worker][buffer], held, region)

    def call(self, worker: int, instruction: Compute, workspace: Workspace | None = None) -> KernelCall:
        """Return an instruction's call on its worker's buffers, with new scratch unless some is given."""
        bound = self.partitioned.graph.operations[instruction.operation].bound
        inputs: dict[str, Any] = {}
        regions: dict[str, Region] = {}
        names = bound.description.tensor_names
        for name, buffer, region in zip(names, instruction.inputs, instruction.input_regions, strict=True):
            if buffer is not None and region is not None:
                inputs[name] = self.part(worker, buffer, region)
                regions[name] = region
        outputs: Any = tuple([self.views[worker][buffer] for buffer in instruction.outputs])
        box = dict(zip(bound.variables, instruction.box, strict=True))
        return KernelCall(bound, box, inputs, regions, outputs, workspace or Workspace())


def part_of(whole: View, held: Region, region: Region) -> View:
    """Return the part of a view of `held` that holds `region`."""
    if region == held:
        return whole
    place: list[Any] = [Ellipsis]  # so that a tensor without dimensions also gives a view
    for (lower, upper), (start, _) in zip(region, held, strict=True):
        place.append(slice(lower - start, upper - start))
    view: Any = whole
    part: View = view[tuple(place)]
    return part
