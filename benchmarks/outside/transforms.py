"""Discrete Fourier transforms."""

from __future__ import annotations

from typing import Any

from .outsider import written
from .peer import torch


@written(
    """
def dft(x):
    real = lambda b, k=x.shape[1]: Sum(lambda n: x[b, n] * cos(2 * pi * k * n / x.shape[1]))
    imaginary = lambda b, k=x.shape[1]: -Sum(lambda n: x[b, n] * sin(2 * pi * k * n / x.shape[1]))
    return real, imaginary
""",
    small={"x": (3, 6)},
    large={"x": (1024, 512)},
)
def dft(x: Any) -> Any:
    found = torch.fft.fft(x)
    return found.real, found.imag


@written(
    """
def dft2(x):
    row_real = lambda b, m, l=x.shape[2]: Sum(lambda n: x[b, m, n] * cos(2 * pi * l * n / x.shape[2]))
    row_imaginary = lambda b, m, l=x.shape[2]: -Sum(lambda n: x[b, m, n] * sin(2 * pi * l * n / x.shape[2]))
    real = lambda b, k=x.shape[1], l: Sum(
        lambda m: row_real[b, m, l] * cos(2 * pi * k * m / x.shape[1])
        + row_imaginary[b, m, l] * sin(2 * pi * k * m / x.shape[1])
    )
    imaginary = lambda b, k=x.shape[1], l: Sum(
        lambda m: row_imaginary[b, m, l] * cos(2 * pi * k * m / x.shape[1])
        - row_real[b, m, l] * sin(2 * pi * k * m / x.shape[1])
    )
    return real, imaginary
""",
    small={"x": (2, 4, 5)},
    large={"x": (32, 128, 128)},
)
def dft2(x: Any) -> Any:
    found = torch.fft.fft2(x)
    return found.real, found.imag
