"""Windows of images and volumes: taken out, averaged, reduced to their largest element."""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import F


@written(
    """
def im2col(x, *, kernel):
    return lambda n, k=x.shape[1] * kernel * kernel, p=x.shape[2] * x.shape[3]: pad(
        x[
            n,
            k // (kernel * kernel),
            p // x.shape[3] + k // kernel % kernel - kernel // 2,
            p % x.shape[3] + k % kernel - kernel // 2,
        ],
        0,
    )
""",
    small={"x": (2, 3, 4, 5), "kernel": 3},
    large={"x": (4, 32, 28, 28), "kernel": 3},
)
def im2col(x: Any, kernel: int) -> Any:
    return F.unfold(x, kernel, padding=kernel // 2)


@written(
    """
def im2col_inside(x, *, kernel):
    return lambda n, k=x.shape[1] * kernel * kernel, p=(x.shape[2] - kernel + 1) * (
        x.shape[3] - kernel + 1
    ): x[
        n,
        k // (kernel * kernel),
        p // (x.shape[3] - kernel + 1) + k // kernel % kernel,
        p % (x.shape[3] - kernel + 1) + k % kernel,
    ]
""",
    small={"x": (2, 3, 4, 5), "kernel": 3},
    large={"x": (4, 32, 28, 28), "kernel": 3},
)
def im2col_inside(x: Any, kernel: int) -> Any:
    return F.unfold(x, kernel)


@written(
    """
def average_pool3d(x):
    return lambda n, c, z=x.shape[2] // 2, y=x.shape[3] // 2, u=x.shape[4] // 2: (
        Sum(lambda dz=2, dy=2, du=2: x[n, c, 2 * z + dz, 2 * y + dy, 2 * u + du]) / 8
    )
""",
    small={"x": (2, 2, 4, 5, 4)},
    large={"x": (2, 16, 32, 56, 56)},
)
def average_pool3d(x: Any) -> Any:
    return F.avg_pool3d(x, 2)


@written(
    """
def max_pool3d(x):
    return lambda n, c, z=(x.shape[2] + 1) // 2, y=(x.shape[3] + 1) // 2, u=(x.shape[4] + 1) // 2: Max(
        lambda dz=3, dy=3, du=3: pad(x[n, c, 2 * z + dz - 1, 2 * y + dy - 1, 2 * u + du - 1], -inf)
    )
""",
    small={"x": (1, 2, 4, 5, 4)},
    large={"x": (2, 16, 16, 28, 28)},
)
def max_pool3d(x: Any) -> Any:
    return F.max_pool3d(x, 3, 2, 1)
