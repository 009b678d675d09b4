"""Images: their elements in another order, in other sizes, matched with each other."""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import F, torch


@written(
    """
def pixel_shuffle(x, *, r):
    return lambda n, c=x.shape[1] // (r * r), y=x.shape[2] * r, u=x.shape[3] * r: x[
        n, c * r * r + y % r * r + u % r, y // r, u // r
    ]
""",
    small={"x": (2, 8, 3, 2), "r": 2},
    large={"x": (8, 256, 28, 28), "r": 2},
)
def pixel_shuffle(x: Any, r: int) -> Any:
    return F.pixel_shuffle(x, r)


@written(
    """
def pixel_unshuffle(x, *, r):
    return lambda n, c=x.shape[1] * r * r, y=x.shape[2] // r, u=x.shape[3] // r: x[
        n, c // (r * r), y * r + c // r % r, u * r + c % r
    ]
""",
    small={"x": (2, 2, 4, 6), "r": 2},
    large={"x": (8, 64, 56, 56), "r": 2},
)
def pixel_unshuffle(x: Any, r: int) -> Any:
    return F.pixel_unshuffle(x, r)


@written(
    """
def space_to_depth(x, *, block):
    return lambda n, y=x.shape[1] // block, u=x.shape[2] // block, c=x.shape[3] * block * block: x[
        n,
        y * block + c // (x.shape[3] * block),
        u * block + c // x.shape[3] % block,
        c % x.shape[3],
    ]
""",
    small={"x": (2, 4, 6, 3), "block": 2},
    large={"x": (8, 56, 56, 64), "block": 2},
)
def space_to_depth(x: Any, block: int) -> Any:
    n, y, u, c = x.shape
    split = x.reshape(n, y // block, block, u // block, block, c)
    return split.permute(0, 1, 3, 2, 4, 5).reshape(n, y // block, u // block, block * block * c)


@written(
    """
def channel_shuffle(x, *, groups):
    return lambda n, c, y, u: x[n, c % groups * (x.shape[1] // groups) + c // groups, y, u]
""",
    small={"x": (2, 6, 3, 2), "groups": 3},
    large={"x": (16, 64, 56, 56), "groups": 4},
)
def channel_shuffle(x: Any, groups: int) -> Any:
    n, c, y, u = x.shape
    return x.reshape(n, groups, c // groups, y, u).transpose(1, 2).reshape(n, c, y, u)


@written(
    """
def nearest_resize(x, *, height, width):
    return lambda n, c, y=height, u=width: x[n, c, y * x.shape[2] // height, u * x.shape[3] // width]
""",
    small={"x": (2, 2, 4, 6), "height": 6, "width": 9},
    large={"x": (8, 32, 56, 56), "height": 84, "width": 84},
)
def nearest_resize(x: Any, height: int, width: int) -> Any:
    return F.interpolate(x, (height, width), mode="nearest")


@written(
    """
def bilinear_resize(x, *, height, width):
    rows = lambda n, c, y=height, u: (
        x[n, c, y * (x.shape[2] - 1) // (height - 1), u]
        * (1 - y * (x.shape[2] - 1) % (height - 1) / (height - 1))
        + pad(x[n, c, y * (x.shape[2] - 1) // (height - 1) + 1, u], 0)
        * (y * (x.shape[2] - 1) % (height - 1) / (height - 1))
    )
    return lambda n, c, y, u=width: (
        rows[n, c, y, u * (x.shape[3] - 1) // (width - 1)]
        * (1 - u * (x.shape[3] - 1) % (width - 1) / (width - 1))
        + pad(rows[n, c, y, u * (x.shape[3] - 1) // (width - 1) + 1], 0)
        * (u * (x.shape[3] - 1) % (width - 1) / (width - 1))
    )
""",
    small={"x": (2, 2, 4, 3), "height": 6, "width": 5},
    large={"x": (4, 32, 56, 56), "height": 84, "width": 84},
)
def bilinear_resize(x: Any, height: int, width: int) -> Any:
    return F.interpolate(x, (height, width), mode="bilinear", align_corners=True)


@written(
    """
def cost_volume(left, right, *, disparities):
    return lambda n, d=disparities, y, x: (
        Sum(lambda c: left[n, c, y, x] * pad(right[n, c, y, x - d], 0)) / left.shape[1]
    )
""",
    small={"left": (2, 3, 2, 6), "right": (2, 3, 2, 6), "disparities": 4},
    large={"left": (1, 32, 32, 64), "right": (1, 32, 32, 64), "disparities": 24},
)
def cost_volume(left: Any, right: Any, disparities: int) -> Any:
    width = left.shape[3]
    shifted = [F.pad(right, (d, 0))[..., :width] for d in range(disparities)]
    return torch.stack([(left * moved).mean(1) for moved in shifted], 1)
