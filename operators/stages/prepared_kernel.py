"""Find the code that computes a bound operator on this machine's processor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Any

import numpy as np

from ...analyzer.indices.region import to_region
from ...support.memory import allocating, require_memory
from ..kernels.kernel import Array, KernelCall
from ..kernels.workspace import Workspace
from .bound_operator import BoundOperator


class Origin(StrEnum):
    """Where a kernel comes from."""

    ATTACHED = "attached"
    DERIVED = "derived"
    OPAQUE = "opaque function"


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """The kernel of a whole operator."""

    origin: Origin
    """Where it comes from."""

    calls: tuple[str, ...]
    """The code of libraries that it calls, as `oneDNN jit:avx512_core`. Without any, it is array operations
    of NumPy."""

    scratch_bytes: int
    """The scratch that it takes; 0 for an opaque function, of which it is not known."""


def prepared_kernel(bound: BoundOperator, dtype: str = "float32") -> PreparedKernel:
    """Prepare the kernel for the whole operator on arrays of a type, without running it.

    Raises ExecutionError if the memory does not suffice.
    """
    if bound.kernel is None and bound.description.opaques:
        return PreparedKernel(Origin.OPAQUE, (), 0)
    regions = {
        name: to_region(boxes[0])
        for name, boxes in bound.input_regions(bound.full_box[None]).items()
        if name in bound.reads
    }
    wanted = f"the tensors of '{bound.description.name}'"
    shapes = [tuple(upper - lower for lower, upper in region) for region in regions.values()]
    kind = np.dtype(dtype)
    require_memory(sum(map(prod, (*shapes, *bound.output_shapes))) * kind.itemsize, wanted)
    with allocating(wanted):
        inputs: dict[str, Array] = dict(
            zip(regions, (np.empty(shape, kind) for shape in shapes), strict=True)
        )
        outputs: tuple[Any, ...] = tuple(np.empty(shape, kind) for shape in bound.output_shapes)
        box = {name: (0, extent) for name, extent in bound.extents.items()}
        call = KernelCall(bound, box, inputs, regions, outputs, Workspace())
        bound.prepare(call)
    origin = Origin.DERIVED if bound.kernel is None else Origin.ATTACHED
    return PreparedKernel(origin, tuple(sorted(set(call.calls))), call.workspace.used_bytes)
