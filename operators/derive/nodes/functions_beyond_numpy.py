"""Scalar functions that NumPy does not have, for whole arrays.

`erf(x)` is `tanh(x * R(x**2))`, where `R(x**2) = atanh(erf(x)) / x` is so smooth that a polynomial of
degree 6 serves single precision and a quotient of two of degree 8 serves double precision. `tanh`
saturates where `erf` does, so no range needs a branch. The coefficients minimise the relative error of
`erf` (weighted least squares with Lawson's reweighting, in 50 digits): 1e-7 and 2e-16.

SciPy computes `erfc` and the gamma functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernels.kernel import Array

Floats = npt.NDArray[np.floating[Any]]

CHUNK_ELEMENTS = 1 << 15
"""Elements that pass through all steps of a function at once: a few such arrays fit in a core's cache."""

_SINGLE = (
    1.4182658269120029e-7,
    -5.6679519092678848e-6,
    8.7633617524527667e-5,
    -6.1977334915879007e-4,
    -1.9184570229201889e-4,
    0.10276906317756529,
    1.1283792734081559,
)
_DOUBLE = (
    (
        2.6961786289692633e-9,
        4.3399014399641925e-7,
        1.4566570289039243e-5,
        2.5658185220700983e-4,
        3.0186898969357341e-3,
        2.3981619092729103e-2,
        0.13726881639742595,
        0.48747664070075425,
        1.1283791670955124,
    ),
    (
        1.4336347840916822e-10,
        8.826009948789747e-8,
        5.4170081907864566e-6,
        1.1114910978109194e-4,
        1.5771816077211418e-3,
        1.3570717408189968e-2,
        9.0784400031334305e-2,
        0.34093507627319457,
        1.0,
    ),
)
"""Coefficients of powers of `x**2`, highest first; in double precision of a numerator and a denominator."""

_SATURATED = 6.2**2
"""For `x**2` beyond this, erf is 1 in double precision."""


def erf(x: Array, out: Array) -> None:
    """Write the error function of every element of `x`, at most 6 units in the last place off."""
    kind = np.dtype(np.float32 if out.dtype.itemsize <= 4 else np.float64)
    by_chunks = np.nditer(
        [x, out],
        flags=["external_loop", "buffered", "delay_bufalloc", "zerosize_ok"],
        op_flags=[["readonly"], ["writeonly"]],
        op_dtypes=[kind, kind],
        casting="same_kind",
        buffersize=CHUNK_ELEMENTS,
    )
    squared, ratio, other = (np.empty(CHUNK_ELEMENTS, kind) for _ in range(3))
    with by_chunks:
        by_chunks.reset()
        for values, results in by_chunks:
            for start in range(0, values.size, CHUNK_ELEMENTS):
                part, target = values[start : start + CHUNK_ELEMENTS], results[start : start + CHUNK_ELEMENTS]
                u, r = squared[: part.size], ratio[: part.size]
                np.multiply(part, part, u)
                if kind.itemsize == 4:
                    _horner(_SINGLE, u, r)
                else:
                    np.minimum(u, _SATURATED, out=u)
                    q = other[: part.size]
                    _horner(_DOUBLE[0], u, r)
                    _horner(_DOUBLE[1], u, q)
                    np.divide(r, q, r)
                np.multiply(r, part, r)
                np.tanh(r, target)


def _horner(coefficients: tuple[float, ...], u: Floats, out: Floats) -> None:
    highest, second, *others = coefficients
    np.multiply(u, u.dtype.type(highest), out)
    np.add(out, u.dtype.type(second), out)
    for coefficient in others:
        np.multiply(out, u, out)
        np.add(out, u.dtype.type(coefficient), out)


def sign(x: Array, out: npt.NDArray[Any]) -> None:
    """Write -1, 0 or 1: enlarge every number beyond 1, then cut it off there.

    NumPy's own has a branch for every element, which takes ten times as long.
    """
    if out.dtype.kind != "f":
        np.sign(x, out=out)
        return
    limits = np.finfo(out.dtype)
    far = out.dtype.type(2.0 ** -((limits.minexp - limits.nmant) // 2))
    with np.errstate(over="ignore"):
        np.multiply(x, far, out)
        np.multiply(out, far, out)
    np.minimum(out, 1, out=out)
    np.maximum(out, -1, out=out)


@cache
def _of_scipy(name: str) -> np.ufunc:
    """Return one of SciPy's functions, imported when a kernel is first prepared with it."""
    from scipy import special

    function: np.ufunc = getattr(special, name)
    return function


VECTORISED: Mapping[str, Callable[[], Callable[..., object]]] = MappingProxyType(
    {
        "erf": lambda: erf,
        "erfc": lambda: _of_scipy("erfc"),
        "gamma": lambda: _of_scipy("gamma"),
        "gammaln": lambda: _of_scipy("gammaln"),
        "digamma": lambda: _of_scipy("digamma"),
    }
)
"""For each function, a function that returns its implementation `f(x, out=out)`."""
