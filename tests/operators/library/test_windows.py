"""Convolution and Pooling against loops over NumPy slices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get

RNG = np.random.default_rng(12)


def convolve(
    data: np.ndarray,
    weight: np.ndarray,
    stride: tuple[int, ...],
    dilate: tuple[int, ...],
    pad: tuple[int, ...],
    groups: int,
) -> np.ndarray:
    padded = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in pad)])
    kernel = weight.shape[2:]
    reach = [d * (k - 1) + 1 for d, k in zip(dilate, kernel, strict=True)]
    space = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, stride, strict=True)]
    filters, channels = len(weight) // groups, weight.shape[1]
    result = np.zeros((len(data), len(weight), *space))
    for f, place in itertools.product(range(len(weight)), itertools.product(*map(range, space))):
        first = f // filters * channels
        window = tuple(
            slice(x * s, x * s + r, d) for x, s, r, d in zip(place, stride, reach, dilate, strict=True)
        )
        region = padded[(slice(None), slice(first, first + channels), *window)]
        result[(slice(None), f, *place)] = (region * weight[f]).reshape(len(data), -1).sum(1)
    return result


@pytest.mark.parametrize(
    ("space", "kernel", "stride", "dilate", "pad", "groups"),
    [
        ((7,), (3,), (2,), (1,), (1,), 1),
        ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 1),
        ((5, 6), (3, 2), (2, 1), (1, 2), (0, 1), 1),
        ((5, 6), (1, 1), (2, 2), (1, 1), (0, 0), 1),
        ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), 2),
        ((3, 4, 3), (2, 2, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0), 1),
    ],
)
def test_convolution(
    space: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilate: tuple[int, ...],
    pad: tuple[int, ...],
    groups: int,
) -> None:
    data = RNG.normal(size=(2, 4, *space))
    weight, bias = RNG.normal(size=(6, 4 // groups, *kernel)), RNG.normal(size=6)
    tensors = {"data": data, "weight": weight, "bias": bias}
    attributes = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad}
    bound = get("Convolution").bind(
        {name: array.shape for name, array in tensors.items()}, num_filter=6, num_group=groups, **attributes
    )
    expected = convolve(data, weight, stride, dilate, pad, groups) + bias.reshape(-1, *(1 for _ in space))
    assert bound.output_shapes == (expected.shape,)
    np.testing.assert_allclose(bound.compute(tensors)[0], expected, rtol=1e-10, atol=1e-12)


def pool(
    data: np.ndarray,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
    kind: str,
    full: bool,
) -> np.ndarray:
    """Windows clipped as MXNet does: an average divides by the part within the padded tensor."""
    space = data.shape[2:]
    counts = [
        -(-(n + 2 * p - k) // s) + 1 if full else (n + 2 * p - k) // s + 1
        for n, k, s, p in zip(space, kernel, stride, pad, strict=True)
    ]
    result = np.zeros((*data.shape[:2], *counts))
    for place in itertools.product(*map(range, counts)):
        starts = [x * s - p for x, s, p in zip(place, stride, pad, strict=True)]
        ends = [min(a + k, n + p) for a, k, n, p in zip(starts, kernel, space, pad, strict=True)]
        size = np.prod([b - a for a, b in zip(starts, ends, strict=True)])
        window = tuple(slice(max(a, 0), b) for a, b in zip(starts, ends, strict=True))
        values = data[(slice(None), slice(None), *window)].reshape(*data.shape[:2], -1)
        reduced = values.max(-1) if kind == "max" else values.sum(-1) / (size if kind == "avg" else 1)
        result[(slice(None), slice(None), *place)] = reduced
    return result


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize(
    ("space", "kernel", "stride", "pad"),
    [
        ((6,), (3,), (2,), (0,)),
        ((6, 7), (2, 2), (2, 2), (0, 0)),
        ((6, 7), (3, 3), (2, 2), (1, 1)),
        ((4, 5, 4), (2, 3, 2), (1, 2, 2), (0, 1, 1)),
    ],
)
def test_pooling(
    kind: str,
    convention: str,
    space: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pad: tuple[int, ...],
) -> None:
    data = RNG.normal(size=(2, 3, *space)) - 2
    bound = get("Pooling").bind(
        {"data": data.shape},
        kernel=kernel,
        stride=stride,
        pad=pad,
        pool_type=kind,
        pooling_convention=convention,
    )
    expected = pool(data, kernel, stride, pad, kind, convention == "full")
    assert bound.output_shapes == (expected.shape,)
    np.testing.assert_allclose(bound.compute({"data": data})[0], expected, rtol=1e-10)


@pytest.mark.parametrize(("kind", "function"), [("max", np.max), ("avg", np.mean), ("sum", np.sum)])
def test_global_pooling_ignores_the_kernel(kind: str, function: np.ufunc) -> None:
    data = RNG.normal(size=(2, 3, 4, 5))
    bound = get("Pooling").bind({"data": data.shape}, kernel=(7, 7), global_pool=True, pool_type=kind)
    np.testing.assert_allclose(bound.compute({"data": data})[0], function(data, axis=(2, 3), keepdims=True))


def test_bias_is_a_stage_so_that_the_product_can_be_reduced() -> None:
    stages = get("Convolution").stages(
        {"kernel": (3, 3), "num_filter": 4}, {"data": (2, 4, 6, 6), "weight": (4, 4, 3, 3), "bias": (4,)}
    )
    assert [stage.produces for stage in stages] == [("product",), ("output_0",)]
    kinds = {
        strategy.variable: strategy.kind
        for strategy in stages[0].bind({"data": (2, 4, 6, 6), "weight": (4, 4, 3, 3)}).strategies
    }
    assert kinds["c"] == "reduce"
    assert {kinds[name] for name in ("n", "f", "x0", "x1")} == {"concat"}


def test_what_does_not_fit_is_said() -> None:
    operator = get("Convolution")
    with pytest.raises(ShapeError, match=r"data has 3 dimensions .* needs 4: batch, channel and 2 of space"):
        operator.infer({"kernel": (3, 3), "num_filter": 4}, {"data": (2, 3, 8)})
    with pytest.raises(ShapeError, match="3 channels are not a multiple of num_group=2"):
        operator.infer({"kernel": (3, 3), "num_filter": 4, "num_group": 2}, {"data": (2, 3, 8, 8)})
    with pytest.raises(OperatorError, match=r"stride=\(2,\) has 1 values, kernel=\(3, 3\) has 2"):
        operator.infer({"kernel": (3, 3), "num_filter": 4, "stride": 2}, {"data": (2, 3, 8, 8)})
    with pytest.raises(ShapeError, match="dimension 1 of weight is 5"):
        operator.infer({"kernel": (3, 3), "num_filter": 4}, {"data": (2, 3, 8, 8), "weight": (4, 5, 3, 3)})
