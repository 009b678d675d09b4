"""Attached convolution kernels on NumPy compute what the descriptions say, on any box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.errors import OperatorError
from tofu.operators import get
from tofu.operators.kernels.convolution import (
    ConvolutionDataGradient,
    ConvolutionOutput,
    ConvolutionWeightGradient,
    by_onednn,
    convolution,
    im2col,
    patches,
)
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.stages.stage import derived

CASES = [
    # spatial extents, kernel, stride, dilate, pad, groups
    ((6,), (3,), (1,), (1,), (1,), 1),
    ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((5, 6), (1, 1), (1, 1), (1, 1), (0, 0), 1),
    ((6, 5), (1, 1), (2, 2), (1, 1), (0, 0), 1),
    ((7, 6), (3, 2), (2, 1), (1, 2), (1, 0), 1),
    ((6, 6), (3, 3), (2, 2), (1, 1), (1, 1), 2),
    ((5, 4), (3, 3), (1, 1), (1, 1), (2, 3), 2),
    ((9, 8), (3, 2), (2, 3), (2, 2), (2, 1), 1),
    ((9,), (2,), (4,), (6,), (1,), 1),
    ((4, 3, 4), (2, 3, 3), (1, 1, 2), (1, 1, 1), (0, 1, 1), 1),
]


@pytest.fixture(autouse=True)
def _without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_onednn, "loaded", lambda: None)


def convolution_text(
    space: tuple[int, ...], kernel: Any, stride: Any, dilate: Any, pad: Any, groups: int
) -> str:
    dims = range(len(space))
    out = [(space[d] + 2 * pad[d] - dilate[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in dims]
    rows = ", ".join(f"p{d} * {stride[d]} + q{d} * {dilate[d]} - {pad[d]}" for d in dims)
    places = ", ".join(f"p{d}={out[d]}" for d in dims)
    taps = ", ".join(f"q{d}={kernel[d]}" for d in dims)
    channel = "c" if groups == 1 else "f // 2 * 2 + c"
    return (
        f"def conv(data, weight):\n    return lambda n, f=weight.shape[0], {places}: Sum(lambda c, {taps}: "
        f"pad(data[n, {channel}, {rows}], 0) * weight[f, c, {', '.join(f'q{d}' for d in dims)}])"
    )


def tensors_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {name: rng.integers(-4, 5, shape).astype(np.float64) for name, shape in shapes.items()}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("which", ["forward", "data", "weight"])
@pytest.mark.parametrize("way", ["COPY", "ADD"], ids=["joined", "apart"])
@pytest.mark.parametrize("block_elements", [patches.BLOCK_ELEMENTS, 12], ids=["one block", "many blocks"])
def test_kernel_equals_description(
    block_elements: int, way: str, which: str, case: Any, check_kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either way, with what it touches taken to be free."""
    monkeypatch.setattr(patches, "BLOCK_ELEMENTS", block_elements)
    monkeypatch.setattr(convolution, way, 0)
    monkeypatch.setattr(im2col, "images_together", lambda *_: 1000 if way == "COPY" else 1)
    space, kernel, stride, dilate, pad, groups = case
    stage = derived(tdl.parse(convolution_text(*case)))
    shapes = {"data": (2, 2 * groups, *space), "weight": (2 * groups, 2, *kernel)}
    bound = stage.bind(shapes)
    if which == "forward":
        check_kernel(bound, ConvolutionOutput(stride, dilate, pad, groups), tensors_of(shapes))
        return
    (adjoint,) = stage.adjoint(which)
    shapes["grad_0"] = bound.output_shapes[0]
    attached = ConvolutionDataGradient if which == "data" else ConvolutionWeightGradient
    needed = {name: shapes[name] for name in adjoint.inputs}
    check_kernel(adjoint.bind(needed), attached(stride, dilate, pad, groups), tensors_of(needed))


def test_unknown_form_is_refused() -> None:
    stage = derived(
        tdl.parse(
            "def twice(data, weight):\n"
            "    return lambda n, f, p: Sum(lambda c, q: "
            "data[n, c, p + q] * weight[f, c, q] * weight[f, c, 0])"
        )
    )
    bound = stage.bind({"data": (1, 1, 4), "weight": (1, 1, 2)})
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    arrays = tensors_of(bound.shapes)
    regions = {name: tuple((0, size) for size in shape) for name, shape in bound.shapes.items()}
    call = KernelCall(bound, box, arrays, regions, (np.empty((1, 1, 3)),))
    with pytest.raises(OperatorError, match="reads 'weight' in 2 places"):
        ConvolutionOutput((1,), (1,), (0,))(call)


@pytest.mark.parametrize(("groups", "attached"), [(1, True), (2, True), (4, False)])
def test_depthwise_is_left_to_derived_kernels(groups: int, attached: bool) -> None:
    """Except for the weight's gradient; what is computed must not depend on it."""
    attributes = {"kernel": (3, 3), "num_filter": 4, "num_group": groups, "pad": (1, 1), "no_bias": True}
    shapes = {"data": (2, 4, 5, 4), "weight": (4, 4 // groups, 3, 3)}
    (stage,) = get("Convolution").stages(attributes, shapes)
    shapes["grad_0"] = stage.bind(shapes).output_shapes[0]
    gradients = {tensor: stage.adjoint(tensor)[0] for tensor in ("data", "weight")}
    assert (stage.kernel is not None) == (gradients["data"].kernel is not None) == attached
    assert gradients["weight"].kernel is not None
    for computed in (stage, *gradients.values()):
        needed = {name: shapes[name] for name in computed.inputs}
        tensors, bound = tensors_of(needed), computed.bind(needed)
        np.testing.assert_array_equal(bound.compute(tensors)[0], bound.interpret(tensors)[0])
