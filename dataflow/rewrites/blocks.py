"""Run a bound operator on a block of what another operator computes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ...analyzer.indices.region import Interval, Region, to_region
from ...operators.kernels.kernel import Array, KernelCall, view_of
from ...operators.stages.bound_operator import BoundOperator


def call_of_block(
    call: KernelCall,
    bound: BoundOperator,
    box: Mapping[str, Interval],
    outputs: tuple[Array, ...],
    chosen: Mapping[str, int] = MappingProxyType({}),
) -> KernelCall:
    """Return the call by which an operator computes a box of its own from the inputs of another call.

    `chosen` are inputs that have one dimension more in the other call, the first, and the place that is read.
    """
    boxes = np.array([list(box.values())], np.int64)
    found = bound.input_regions(boxes)
    regions = {name: to_region(found[name][0]) for name in call.inputs}
    inputs: dict[str, Array] = {}
    for name, array in call.inputs.items():
        region = regions[name]
        if name in chosen:
            first = (chosen[name], chosen[name] + 1)
            view = view_of(array, within((first, *region), call.regions[name]))
            inputs[name] = view.reshape(view.shape[1:])
        else:
            inputs[name] = view_of(array, within(region, call.regions[name]))
    return KernelCall(bound, box, inputs, regions, outputs, call.workspace)


def within(region: Region, held: Region) -> list[slice]:
    """Return where a region lies in an array that holds another one."""
    return [
        slice(lower - start, upper - start) for (lower, upper), (start, _) in zip(region, held, strict=True)
    ]
