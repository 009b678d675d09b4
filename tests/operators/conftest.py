"""Random boxes of bound operators, and kernels held against the interpreter on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tofu import tdl
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.indices.region import to_region
from tofu.operators.kernels.kernel import Kernel, KernelCall

Array = npt.NDArray[Any]
Check = Callable[..., None]


def random_box(bound: Bound, rng: np.random.Generator, names: set[str]) -> Array:
    """A box cut at random along the named variables, whole along all others: `[variable, 2]`."""
    box = bound.full_box.copy()
    for axis, (name, extent) in enumerate(bound.extents.items()):
        if name in names and extent > 1 and rng.random() < 0.7:
            first = int(rng.integers(0, extent))
            box[axis] = first, int(rng.integers(first + 1, extent + 1))
    return box


def kernel_call(bound: Any, box: Array, tensors: Mapping[str, Array], dtype: str) -> KernelCall:
    """A call whose inputs are views into larger arrays and whose outputs start as nonsense."""
    regions = {
        name: to_region(boxes[0])
        for name, boxes in bound.input_regions(box[None]).items()
        if name in bound.reads
    }
    inputs = {}
    for name, region in regions.items():
        part = tensors[name][tuple(slice(*interval) for interval in region)]
        inputs[name] = np.pad(part, 1).astype(dtype)[(slice(1, -1),) * part.ndim]
    shapes = [tuple(boxes[0, :, 1] - boxes[0, :, 0]) for boxes in bound.output_regions(box[None])]
    outputs = tuple(np.full(shape, -77, dtype) for shape in shapes)
    intervals = dict(zip(bound.variables, to_region(box), strict=True))
    return KernelCall(bound, intervals, inputs, regions, outputs)


def interpreted(bound: Any, box: Array, tensors: Mapping[str, Array]) -> tuple[Array, ...]:
    """Outputs of a box as the interpreter makes them."""
    intervals = dict(zip(bound.variables, to_region(box), strict=True))
    return tdl.interpret(bound.description, bound.extents, tensors, bound.shapes, intervals, bound.opaques)


def part_of(bound: Any, box: Array, whole: tuple[Array, ...]) -> tuple[Array, ...] | None:
    """The part of whole outputs that a box computes; None if it computes a part of a reduction."""
    cut = [
        name
        for name, part, all_ in zip(bound.variables, box, bound.full_box, strict=True)
        if any(part != all_)
    ]
    if any(bound.kind(name) != "concat" for name in cut):
        return None
    regions = [boxes[0] for boxes in bound.output_regions(box[None])]
    return tuple(
        output[tuple(slice(*interval) for interval in region)]
        for output, region in zip(whole, regions, strict=True)
    )


@pytest.fixture
def check_kernel() -> Check:
    """Compare a kernel with the interpreter on the whole box and on parts of it; it runs twice on each."""

    def check(
        bound: Any,
        kernel: Kernel,
        tensors: Mapping[str, Array],
        boxes: int = 6,
        dtype: str = "float32",
        tolerance: float = 0,
    ) -> None:
        rng = np.random.default_rng(7)
        split = {name for name in bound.variables if bound.kind(name) is not None}
        whole = interpreted(bound, bound.full_box, tensors)
        for number in range(boxes):
            box = random_box(bound, rng, split) if number else bound.full_box
            call = kernel_call(bound, box, tensors, dtype)
            run = kernel(call)
            expected = part_of(bound, box, whole) or interpreted(bound, box, tensors)
            for _ in range(2):
                run()
                for output, reference in zip(call.outputs, expected, strict=True):
                    np.testing.assert_allclose(output, reference, tolerance, tolerance, err_msg=str(call.box))

    return check
