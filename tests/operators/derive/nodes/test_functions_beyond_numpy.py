"""Vectorised scalar functions against the interpreter's, element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.derive.nodes.functions_beyond_numpy import CHUNK_ELEMENTS, VECTORISED, erf, sign
from tofu.operators.stages.stage import derived
from tofu.tdl.functions import FUNCTIONS

EVERYWHERE = np.concatenate(
    [
        np.linspace(-7, 7, 70_001),
        *(sign * np.logspace(-300, 1, 2_000) for sign in (1, -1)),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e20, -1e20],
    ]
)


@pytest.mark.parametrize(("kind", "units"), [(np.float32, 4), (np.float64, 6)])
def test_erf_is_within_units_in_the_last_place(kind: type[np.floating], units: int) -> None:
    with np.errstate(under="ignore"):
        x = EVERYWHERE.astype(kind)
    found = np.empty_like(x)
    with np.errstate(all="ignore"):
        erf(x, found)
    expected = np.array([math.erf(value) for value in x.astype(float)])
    spacing = np.spacing(np.abs(expected).astype(kind)).astype(float)
    off = np.abs(found.astype(float) - expected) / spacing
    assert np.array_equal(np.isnan(found), np.isnan(x))
    assert np.nanmax(off) <= units
    assert np.array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


def test_erf_of_strided_and_large_arrays() -> None:
    values = np.random.default_rng(0).standard_normal((3, CHUNK_ELEMENTS + 7, 2))
    found = np.full((values.shape[1], 3), np.nan)
    erf(values[:, ::-1, 1].T, found)
    assert np.allclose(found, np.vectorize(math.erf)(values[:, ::-1, 1].T), rtol=1e-14)


@pytest.mark.parametrize("function", sorted(VECTORISED))
@pytest.mark.parametrize(("kind", "tolerance"), [(np.float32, 3e-6), (np.float64, 1e-12)])
def test_a_derived_kernel_gives_what_the_interpreter_gives(
    function: str, kind: type[np.floating], tolerance: float
) -> None:
    x = np.concatenate([np.linspace(-5.3, 12.1, 1_000), [0.5, 1.0, 2.0, 30.0]]).astype(kind)
    bound = derived(tdl.parse(f"def f(x):\n    return lambda i: {function}(x[i])")).bind({"x": x.shape})
    (found,) = bound.compute({"x": x})
    expected = np.asarray(FUNCTIONS[function].implementation(x.astype(float)))
    assert found.dtype == kind
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_sign_of_all_sizes(kind: type[np.floating]) -> None:
    tiny, huge = np.finfo(kind).smallest_subnormal, np.finfo(kind).max
    x = np.array([0.0, -0.0, tiny, -tiny, huge, -huge, 1, -1, np.inf, -np.inf, np.nan], kind)
    found = np.empty_like(x)
    sign(x, found)
    assert np.array_equal(found, np.sign(x), equal_nan=True)


def test_sign_of_integers() -> None:
    found = np.empty(3, np.int64)
    sign(np.array([-5, 0, 2**60]), found)
    assert found.tolist() == [-1, 0, 1]
