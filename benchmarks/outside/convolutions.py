"""Convolutions in groups, in depth, with holes, around a ring."""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import F


@written(
    """
def depthwise_conv1d(data, weight):
    return lambda n, c, x=data.shape[2]: Sum(lambda u: pad(data[n, c, x + u - 1], 0) * weight[c, u])
""",
    small={"data": (2, 3, 6), "weight": (3, 3)},
    large={"data": (8, 256, 1024), "weight": (256, 3)},
)
def depthwise_conv1d(data: Any, weight: Any) -> Any:
    return F.conv1d(data, weight[:, None], padding=1, groups=data.shape[1])


@written(
    """
def depthwise_conv2d(data, weight):
    return lambda n, c, y=data.shape[2], x=data.shape[3]: Sum(
        lambda v, u: pad(data[n, c, y + v - 1, x + u - 1], 0) * weight[c, v, u]
    )
""",
    small={"data": (2, 3, 5, 4), "weight": (3, 3, 3)},
    large={"data": (8, 64, 56, 56), "weight": (64, 3, 3)},
)
def depthwise_conv2d(data: Any, weight: Any) -> Any:
    return F.conv2d(data, weight[:, None], padding=1, groups=data.shape[1])


@written(
    """
def depthwise_conv3d(data, weight):
    return lambda n, c, z=data.shape[2], y=data.shape[3], x=data.shape[4]: Sum(
        lambda w, v, u: pad(data[n, c, z + w - 1, y + v - 1, x + u - 1], 0) * weight[c, w, v, u]
    )
""",
    small={"data": (2, 2, 3, 4, 3), "weight": (2, 3, 3, 3)},
    large={"data": (2, 16, 16, 28, 28), "weight": (16, 3, 3, 3)},
)
def depthwise_conv3d(data: Any, weight: Any) -> Any:
    return F.conv3d(data, weight[:, None], padding=1, groups=data.shape[1])


@written(
    """
def grouped_conv1d(data, weight, *, groups):
    return lambda n, f, x=data.shape[2]: Sum(
        lambda c, u: pad(data[n, f // (weight.shape[0] // groups) * weight.shape[1] + c, x + u - 1], 0)
        * weight[f, c, u]
    )
""",
    small={"data": (2, 4, 6), "weight": (6, 2, 3), "groups": 2},
    large={"data": (8, 128, 512), "weight": (128, 32, 3), "groups": 4},
)
def grouped_conv1d(data: Any, weight: Any, groups: int) -> Any:
    return F.conv1d(data, weight, padding=1, groups=groups)


@written(
    """
def grouped_conv2d(data, weight, *, groups):
    return lambda n, f, y=data.shape[2], x=data.shape[3]: Sum(
        lambda c, v, u: pad(
            data[n, f // (weight.shape[0] // groups) * weight.shape[1] + c, y + v - 1, x + u - 1], 0
        )
        * weight[f, c, v, u]
    )
""",
    small={"data": (1, 4, 3, 3), "weight": (2, 2, 3, 3), "groups": 2},
    large={"data": (8, 64, 28, 28), "weight": (64, 16, 3, 3), "groups": 4},
)
def grouped_conv2d(data: Any, weight: Any, groups: int) -> Any:
    return F.conv2d(data, weight, padding=1, groups=groups)


@written(
    """
def grouped_conv3d(data, weight, *, groups):
    return lambda n, f, z=data.shape[2], y=data.shape[3], x=data.shape[4]: Sum(
        lambda c, w, v, u: pad(
            data[
                n, f // (weight.shape[0] // groups) * weight.shape[1] + c, z + w - 1, y + v - 1, x + u - 1
            ],
            0,
        )
        * weight[f, c, w, v, u]
    )
""",
    small={"data": (1, 4, 2, 2, 2), "weight": (2, 2, 3, 3, 3), "groups": 2},
    large={"data": (2, 32, 8, 14, 14), "weight": (32, 8, 3, 3, 3), "groups": 4},
)
def grouped_conv3d(data: Any, weight: Any, groups: int) -> Any:
    return F.conv3d(data, weight, padding=1, groups=groups)


@written(
    """
def dilated_conv2d(data, weight, *, dilation):
    return lambda n, f, y=data.shape[2], x=data.shape[3]: Sum(
        lambda c, v, u: pad(data[n, c, y + dilation * (v - 1), x + dilation * (u - 1)], 0)
        * weight[f, c, v, u]
    )
""",
    small={"data": (2, 2, 5, 4), "weight": (3, 2, 3, 3), "dilation": 2},
    large={"data": (4, 64, 28, 28), "weight": (64, 64, 3, 3), "dilation": 2},
)
def dilated_conv2d(data: Any, weight: Any, dilation: int) -> Any:
    return F.conv2d(data, weight, padding=dilation, dilation=dilation)


@written(
    """
def circular_convolution(x, w):
    return lambda b, o, i=x.shape[2]: Sum(lambda c, j: x[b, c, (i + j) % x.shape[2]] * w[o, c, j])
""",
    small={"x": (2, 3, 6), "w": (2, 3, 4)},
    large={"x": (8, 48, 512), "w": (48, 48, 9)},
)
def circular_convolution(x: Any, w: Any) -> Any:
    return F.conv1d(F.pad(x, (0, w.shape[2] - 1), mode="circular"), w)
