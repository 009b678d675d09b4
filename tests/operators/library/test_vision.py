"""Operators on images against loops over NumPy arrays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get

RNG = np.random.default_rng(17)


def apply(name: str, tensors: dict[str, np.ndarray], **attributes: object) -> np.ndarray:
    shapes = {tensor: array.shape for tensor, array in tensors.items()}
    (result,) = get(name).bind(shapes, **attributes).compute(tensors)
    return result


def scattered(
    data: np.ndarray,
    weight: np.ndarray,
    stride: tuple[int, int],
    dilate: tuple[int, int],
    groups: int,
) -> np.ndarray:
    """Every element of data adds its multiple of the kernel to the output."""
    kernel, per_group = weight.shape[2:], weight.shape[1]
    space = [
        s * (n - 1) + d * (k - 1) + 1
        for s, n, d, k in zip(stride, data.shape[2:], dilate, kernel, strict=True)
    ]
    result = np.zeros((len(data), per_group * groups, *space))
    for c, y, x in itertools.product(*map(range, data.shape[1:])):
        first = c // (data.shape[1] // groups) * per_group
        for f, u, v in itertools.product(range(per_group), *map(range, kernel)):
            place = y * stride[0] + u * dilate[0], x * stride[1] + v * dilate[1]
            result[:, first + f, *place] += data[:, c, y, x] * weight[c, f, u, v]
    return result


@pytest.mark.parametrize(
    ("stride", "dilate", "groups"), [((1, 1), (1, 1), 1), ((2, 1), (1, 2), 1), ((2, 3), (1, 1), 2)]
)
def test_deconvolution(stride: tuple[int, int], dilate: tuple[int, int], groups: int) -> None:
    data, weight = RNG.normal(size=(2, 4, 3, 4)), RNG.normal(size=(4, 6 // groups, 3, 2))
    tensors = {"data": data, "weight": weight, "bias": RNG.normal(size=6)}
    settings = {"kernel": (3, 2), "num_filter": 6, "stride": stride, "dilate": dilate, "num_group": groups}
    full = scattered(data, weight, stride, dilate, groups) + tensors["bias"].reshape(-1, 1, 1)
    np.testing.assert_allclose(apply("Deconvolution", tensors, no_bias=False, **settings), full, atol=1e-12)
    cut = apply("Deconvolution", tensors, no_bias=False, pad=(1, 0), **settings)
    np.testing.assert_allclose(cut, full[:, :, 1:-1], atol=1e-12)
    target = (full.shape[2] - 1, full.shape[3])
    wanted = apply("Deconvolution", tensors, no_bias=False, target_shape=target, **settings)
    np.testing.assert_allclose(wanted, full[:, :, 1:], atol=1e-12)


def test_deconvolution_is_the_gradient_of_convolution() -> None:
    weight, head = RNG.normal(size=(4, 3, 3, 3)), RNG.normal(size=(2, 4, 4, 4))
    settings = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}
    (stage,) = get("Convolution").stages(
        {**settings, "num_filter": 4, "no_bias": True}, {"data": (2, 3, 8, 8), "weight": weight.shape}
    )
    (adjoint,) = stage.adjoint("data")
    tensors = {"grad_0": head, "data": np.zeros((2, 3, 8, 8)), "weight": weight}
    bound = adjoint.bind({name: tensors[name].shape for name in adjoint.inputs})
    (expected,) = bound.compute({name: tensors[name] for name in adjoint.inputs})
    found = apply("Deconvolution", {"data": head, "weight": weight}, num_filter=3, adj=(1, 1), **settings)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_deconvolution_says_what_does_not_fit() -> None:
    tensors = {"data": np.zeros((1, 3, 2, 2)), "weight": np.zeros((3, 2, 3, 3))}
    with pytest.raises(ShapeError, match=r"target_shape=\(9, 9\) does not fit into \(4, 4\)"):
        apply("Deconvolution", tensors, kernel=(3, 3), num_filter=2, target_shape=(9, 9))
    with pytest.raises(OperatorError, match="must be multiples of num_group=2"):
        apply("Deconvolution", tensors, kernel=(3, 3), num_filter=2, num_group=2)


def test_weights_of_a_deconvolution_are_inferred() -> None:
    shapes = get("Deconvolution").infer(
        {"kernel": (2, 2), "num_filter": 6, "num_group": 2, "no_bias": False}, {"data": (1, 4, 3, 3)}
    )
    assert shapes["weight"] == (4, 3, 2, 2)
    assert shapes["bias"] == (6,)
    assert shapes["output_0"] == (1, 6, 4, 4)


def enlarged(data: np.ndarray, factor: int) -> np.ndarray:
    return data.repeat(factor, 2).repeat(factor, 3)


def test_nearest_upsampling() -> None:
    small, large = RNG.normal(size=(2, 3, 2, 3)), RNG.normal(size=(2, 3, 4, 6))
    np.testing.assert_array_equal(
        apply("UpSampling", {"arg0": small}, scale=3, sample_type="nearest"), enlarged(small, 3)
    )
    pair = {"arg0": small, "arg1": large}
    settings = {"scale": 4, "sample_type": "nearest", "num_args": 2}
    parts = [enlarged(small, 4), enlarged(large, 2)]
    np.testing.assert_array_equal(apply("UpSampling", pair, **settings), np.concatenate(parts, axis=1))
    total = apply("UpSampling", pair, multi_input_mode="sum", **settings)
    np.testing.assert_array_equal(total, parts[0] + parts[1])


def test_bilinear_upsampling_interpolates() -> None:
    """With the usual weights a linear image stays linear inside."""
    scale = 2
    taps = 1 - np.abs(np.arange(4) / scale - (2 * scale - 1 - scale % 2) / (2 * scale))
    weight = np.broadcast_to(np.outer(taps, taps), (1, 1, 4, 4))
    data = np.arange(5.0) + 10 * np.arange(5.0)[:, None]
    found = apply(
        "UpSampling",
        {"data": data[None, None], "weight": weight},
        scale=scale,
        sample_type="bilinear",
        num_filter=1,
    )
    places = (np.arange(10) + 0.5) / scale - 0.5
    expected = places + 10 * places[:, None]
    np.testing.assert_allclose(found[0, 0, 1:-1, 1:-1], expected[1:-1, 1:-1])


def sampled(image: np.ndarray, row: float, column: float) -> np.ndarray:
    """The bilinear mean around a place of `[channel, height, width]`, zero outside."""
    total = np.zeros(len(image))
    top, left = math.floor(row), math.floor(column)
    for y, x in itertools.product((top, top + 1), (left, left + 1)):
        if 0 <= y < image.shape[1] and 0 <= x < image.shape[2]:
            total += image[:, y, x] * (1 - abs(row - y)) * (1 - abs(column - x))
    return total


def test_bilinear_sampling() -> None:
    data, grid = RNG.normal(size=(2, 3, 5, 4)), RNG.uniform(-1.4, 1.4, (2, 2, 3, 2))
    found = apply("BilinearSampler", {"data": data, "grid": grid})
    for n, y, x in np.ndindex(2, 3, 2):
        expected = sampled(data[n], (grid[n, 1, y, x] + 1) * 2, (grid[n, 0, y, x] + 1) * 1.5)
        np.testing.assert_allclose(found[n, :, y, x], expected)


def test_grids() -> None:
    matrix = RNG.normal(size=(2, 6))
    grid = apply("GridGenerator", {"data": matrix}, transform_type="affine", target_shape=(3, 4))
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 3))
    places = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    np.testing.assert_allclose(grid, (matrix.reshape(2, 2, 3) @ places).reshape(2, 2, 3, 4))
    flow = np.zeros((1, 2, 3, 4))
    flow[0, 0] = 1
    warped = apply("GridGenerator", {"data": flow}, transform_type="warp")
    np.testing.assert_allclose(warped[0], [x + 2 / 3, y])
    with pytest.raises(OperatorError, match=r"target_shape=\(0, 0\)"):
        apply("GridGenerator", {"data": matrix}, transform_type="affine")


def test_spatial_transformer_is_grid_and_sampler() -> None:
    data, loc = RNG.normal(size=(2, 3, 5, 4)), RNG.uniform(-1, 1, (2, 6))
    kinds = {"transform_type": "affine", "sampler_type": "bilinear"}
    found = apply("SpatialTransformer", {"data": data, "loc": loc}, target_shape=(3, 0), **kinds)
    grid = apply("GridGenerator", {"data": loc}, transform_type="affine", target_shape=(3, 4))
    np.testing.assert_allclose(found, apply("BilinearSampler", {"data": data, "grid": grid}))


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pooling(scale: float) -> None:
    data = RNG.normal(size=(2, 2, 6, 7))
    rois = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 7.4, 6.2], [0, 2, 2, 2, 2], [1, -2.5, -1, 9, 9.0]])
    found = apply("ROIPooling", {"data": data, "rois": rois}, pooled_size=(2, 3), spatial_scale=scale)
    for r, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (
            math.trunc(corner * scale + math.copysign(0.5, corner)) for corner in corners
        )
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for p, q in np.ndindex(2, 3):
            rows = slice(max(top + p * height // 2, 0), max(top + -(-(p + 1) * height // 2), 0))
            columns = slice(max(left + q * width // 3, 0), max(left + -(-(q + 1) * width // 3), 0))
            cell = data[int(image), :, rows, columns].reshape(2, -1)
            expected = cell.max(1) if cell.size else np.zeros(2)
            np.testing.assert_array_equal(found[r, :, p, q], expected)


@pytest.mark.parametrize("is_multiply", [True, False])
@pytest.mark.parametrize(
    ("kernel", "displacement", "stride1", "stride2", "pad"),
    [(1, 1, 1, 1, 0), (1, 2, 1, 2, 2), (3, 2, 2, 1, 3)],
)
def test_correlation(
    is_multiply: bool, kernel: int, displacement: int, stride1: int, stride2: int, pad: int
) -> None:
    first, second = RNG.normal(size=(2, 1, 3, 7, 8))
    settings = {"stride1": stride1, "stride2": stride2, "pad_size": pad, "is_multiply": is_multiply}
    found = apply(
        "Correlation",
        {"data1": first, "data2": second},
        kernel_size=kernel,
        max_displacement=displacement,
        **settings,
    )
    a, b = (np.pad(image[0], ((0, 0), (pad, pad), (pad, pad))) for image in (first, second))
    steps = range(-(displacement // stride2) * stride2, displacement + 1, stride2)
    moves = list(itertools.product(steps, steps))
    assert found.shape[1] == len(moves)
    for y, x in np.ndindex(found.shape[2:]):
        top, left = y * stride1 + displacement, x * stride1 + displacement
        window = a[:, top : top + kernel, left : left + kernel]
        for d, (down, right) in enumerate(moves):
            other = b[:, top + down : top + down + kernel, left + right : left + right + kernel]
            expected = (window * other if is_multiply else np.abs(window - other)).mean()
            np.testing.assert_allclose(found[0, d, y, x], expected)
