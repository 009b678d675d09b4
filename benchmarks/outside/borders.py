"""Operators that read beyond a border: around to the other side, mirrored, or the border itself.

Clamped and mirrored indices stand in two ways: as such, and as `where` between affine ones.
"""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import F, torch


@written(
    """
def roll(x, *, shift):
    return lambda b, i=x.shape[1], j=x.shape[2]: x[b, (i + shift) % x.shape[1], (j + shift) % x.shape[2]]
""",
    small={"x": (2, 5, 6), "shift": 3},
    large={"x": (32, 256, 256), "shift": 32},
)
def roll(x: Any, shift: int) -> Any:
    return torch.roll(x, (-shift, -shift), (1, 2))


@written(
    """
def reflect_pad(x, *, border):
    return lambda b, c, i=x.shape[2] + 2 * border: where(
        i < border,
        pad(x[b, c, border - i], 0),
        where(
            i < x.shape[2] + border,
            pad(x[b, c, i - border], 0),
            pad(x[b, c, 2 * x.shape[2] + border - 2 - i], 0),
        ),
    )
""",
    small={"x": (2, 3, 6), "border": 2},
    large={"x": (16, 128, 1024), "border": 8},
)
def reflect_pad(x: Any, border: int) -> Any:
    return F.pad(x, (border, border), mode="reflect")


@written(
    """
def mirrored_pad(x, *, border):
    return lambda b, c, i=x.shape[2] + 2 * border: x[
        b, c, x.shape[2] - 1 - abs(x.shape[2] - 1 - abs(i - border))
    ]
""",
    small={"x": (2, 3, 6), "border": 2},
    large={"x": (16, 128, 1024), "border": 8},
)
def mirrored_pad(x: Any, border: int) -> Any:
    return F.pad(x, (border, border), mode="reflect")


@written(
    """
def replicate_pad(x, *, border):
    return lambda b, c, i=x.shape[2] + 2 * border: where(
        i < border,
        x[b, c, 0],
        where(i < x.shape[2] + border, pad(x[b, c, i - border], 0), x[b, c, x.shape[2] - 1]),
    )
""",
    small={"x": (2, 3, 6), "border": 2},
    large={"x": (16, 128, 1024), "border": 8},
)
def replicate_pad(x: Any, border: int) -> Any:
    return F.pad(x, (border, border), mode="replicate")


@written(
    """
def clamped_pad(x, *, border):
    return lambda b, c, i=x.shape[2] + 2 * border: x[b, c, minimum(maximum(i - border, 0), x.shape[2] - 1)]
""",
    small={"x": (2, 3, 6), "border": 2},
    large={"x": (16, 128, 1024), "border": 8},
)
def clamped_pad(x: Any, border: int) -> Any:
    return F.pad(x, (border, border), mode="replicate")


@written(
    """
def bilinear_double(x):
    rows = lambda n, c, y=2 * x.shape[2], u: (
        where(y < 1, x[n, c, 0, u], pad(x[n, c, (y + 1) // 2 - 1, u], 0)) * (0.25 if y % 2 == 0 else 0.75)
        + where(y > 2 * x.shape[2] - 2, x[n, c, x.shape[2] - 1, u], pad(x[n, c, (y + 1) // 2, u], 0))
        * (0.75 if y % 2 == 0 else 0.25)
    )
    return lambda n, c, y, u=2 * x.shape[3]: (
        where(u < 1, rows[n, c, y, 0], pad(rows[n, c, y, (u + 1) // 2 - 1], 0))
        * (0.25 if u % 2 == 0 else 0.75)
        + where(u > 2 * x.shape[3] - 2, rows[n, c, y, x.shape[3] - 1], pad(rows[n, c, y, (u + 1) // 2], 0))
        * (0.75 if u % 2 == 0 else 0.25)
    )
""",
    small={"x": (2, 2, 3, 4)},
    large={"x": (4, 32, 56, 56)},
)
def bilinear_double(x: Any) -> Any:
    return F.interpolate(x, scale_factor=2, mode="bilinear")


@written(
    """
def clamped_bilinear_double(x):
    rows = lambda n, c, y=2 * x.shape[2], u: (
        x[n, c, maximum((y + 1) // 2 - 1, 0), u] * (0.25 if y % 2 == 0 else 0.75)
        + x[n, c, minimum((y + 1) // 2, x.shape[2] - 1), u] * (0.75 if y % 2 == 0 else 0.25)
    )
    return lambda n, c, y, u=2 * x.shape[3]: (
        rows[n, c, y, maximum((u + 1) // 2 - 1, 0)] * (0.25 if u % 2 == 0 else 0.75)
        + rows[n, c, y, minimum((u + 1) // 2, x.shape[3] - 1)] * (0.75 if u % 2 == 0 else 0.25)
    )
""",
    small={"x": (2, 2, 3, 4)},
    large={"x": (4, 32, 56, 56)},
)
def clamped_bilinear_double(x: Any) -> Any:
    return F.interpolate(x, scale_factor=2, mode="bilinear")
