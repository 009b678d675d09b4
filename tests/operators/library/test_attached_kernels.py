"""Attached kernels against the interpreter, on every part of every strategy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.indices.region import Boxes, to_region
from tofu.operators import get
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.bound_operator import BoundOperator
from tofu.operators.stages.stage import Stage

CASES = {
    "convolution": (
        "Convolution",
        {"kernel": (3, 3), "num_filter": 3, "pad": (1, 1), "no_bias": True},
        {"data": (3, 3, 4, 5), "weight": (3, 3, 3, 3)},
    ),
    "convolution-strided": (
        "Convolution",
        {
            "kernel": (3, 2),
            "num_filter": 3,
            "pad": (1, 0),
            "stride": (2, 1),
            "dilate": (1, 2),
            "no_bias": True,
        },
        {"data": (3, 3, 4, 5), "weight": (3, 3, 3, 2)},
    ),
    "convolution-grouped": (
        "Convolution",
        {"kernel": (3,), "num_filter": 6, "num_group": 2, "stride": (2,), "no_bias": True},
        {"data": (2, 4, 9), "weight": (6, 2, 3)},
    ),
    "convolution-one-filter-a-group": (
        "Convolution",
        {"kernel": (3,), "num_filter": 3, "num_group": 3, "no_bias": True},
        {"data": (2, 9, 5), "weight": (3, 3, 3)},
    ),
    "convolution-one-filter-a-group-2d": (
        "Convolution",
        {"kernel": (3, 2), "num_filter": 2, "num_group": 2, "pad": (1, 0), "stride": (2, 1), "no_bias": True},
        {"data": (2, 6, 5, 4), "weight": (2, 3, 3, 2)},
    ),
    "convolution-pointwise": (
        "Convolution",
        {"kernel": (1, 1), "num_filter": 3, "stride": (2, 2), "no_bias": True},
        {"data": (3, 3, 4, 5), "weight": (3, 3, 1, 1)},
    ),
    "global-pooling": ("Pooling", {"global_pool": True, "pool_type": "avg"}, {"data": (3, 3, 4, 4)}),
}


def parts(bound: BoundOperator) -> Iterator[Boxes]:
    """The whole box, and what each of three workers does under every strategy."""
    yield bound.full_box
    for strategy in bound.strategies:
        if bound.extents[strategy.variable] >= 3:
            yield from bound.split([strategy.variable], [3])


def call_of(bound: BoundOperator, box: Boxes, tensors: dict[str, np.ndarray]) -> KernelCall:
    regions = {
        name: to_region(boxes[0])
        for name, boxes in bound.input_regions(box[None]).items()
        if name in bound.reads
    }
    outputs = tuple(
        np.full([upper - lower for lower, upper in boxes[0].tolist()], np.nan)
        for boxes in bound.output_regions(box[None])
    )
    inputs = {
        name: tensors[name][tuple(slice(*interval) for interval in region)]
        for name, region in regions.items()
    }
    ranges = dict(zip(bound.variables, to_region(box), strict=True))
    return KernelCall(bound, ranges, inputs, regions, outputs)


def compare(stage: Stage, tensors: dict[str, np.ndarray]) -> None:
    bound = stage.bind({name: array.shape for name, array in tensors.items()})
    for box in parts(bound):
        call = call_of(bound, box, tensors)
        bound.prepare(call)()
        (expected,) = tdl.interpret(stage.description, bound.extents, tensors, bound.shapes, box=call.box)
        np.testing.assert_array_equal(call.outputs[0], expected, err_msg=str(call.box))


@pytest.mark.parametrize("case", CASES)
def test_attached_kernels_compute_every_part(case: str) -> None:
    """On integers, where every order of summation gives the same result."""
    name, attributes, shapes = CASES[case]
    rng = np.random.default_rng(15)
    tensors = {tensor: rng.integers(-3, 4, shape).astype(float) for tensor, shape in shapes.items()}
    (stage,) = get(name).stages(attributes, shapes)
    compare(stage, tensors)
    bound = stage.bind(shapes)
    tensors["output_0"] = bound.compute(tensors)[0]
    tensors["grad_0"] = rng.integers(-3, 4, bound.output_shapes[0]).astype(float)
    for tensor in stage.inputs:
        for adjoint in stage.adjoint(tensor):
            compare(adjoint, tensors)
