"""Products of matrices by oneDNN give what NumPy gives, wherever matrices lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.operators import derive
from tofu.operators.derive.steps import recipe
from tofu.operators.kernels.kernel import KernelCall
from tofu.operators.kernels.onednn import product as products
from tofu.operators.kernels.onednn.library import Library
from tofu.operators.kernels.onednn.product import product

MATMUL = "def matmul(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"


@pytest.fixture(autouse=True)
def _small_products(onednn: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave no product to NumPy because it is small."""
    if not onednn.has_wide_vectors:
        pytest.skip(
            f"with {onednn.instructions} NumPy computes all products, so no product of oneDNN can be tested"
        )
    monkeypatch.setattr(products, "LEAST_OPERATIONS", 0)
    derive._recipes.cache_clear()
    yield
    derive._recipes.cache_clear()


def matrix(rng: np.random.Generator, *shape: int) -> Any:
    """Return whole numbers, perhaps a part of a larger array, perhaps with columns one after the other."""
    turned = rng.random() < 0.5
    last = shape[:-2] + (shape[:-3:-1] if turned else shape[-2:])
    room = [length + int(rng.integers(0, 3)) for length in last]
    array = rng.integers(-3, 4, room).astype(np.float32)[tuple(slice(length) for length in last)]
    return array.swapaxes(-1, -2) if turned else array


def test_random_matrices() -> None:
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(200):
        batch = tuple(map(int, rng.integers(1, 4, rng.integers(0, 3))))
        rows, inner, columns = map(int, rng.integers(1, 40, 3))
        a, b = matrix(rng, *batch, rows, inner), matrix(rng, *batch, inner, columns)
        out = np.full((*batch, rows, columns + 2), -77, np.float32)[..., :columns]
        found = product(a, b, out)
        if found is None:
            continue
        taken += 1
        run = found.bind(a, b, out)
        for _ in range(2):
            run()
            np.testing.assert_array_equal(out, np.matmul(a, b))
        assert (out.base[..., columns:] == -77).all()
    assert taken > 100


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        (np.ones((3, 4)), np.ones((4, 5)), np.ones((3, 5))),
        (np.ones((3, 4), np.float32)[::-1], np.ones((4, 5), np.float32), np.ones((3, 5), np.float32)),
        (np.ones((2, 3, 4), np.float32), np.ones((4, 5), np.float32), np.ones((2, 3, 5), np.float32)),
        (np.ones((3, 0), np.float32), np.ones((0, 5), np.float32), np.ones((3, 5), np.float32)),
    ],
    ids=["float64", "reversed", "repeated", "empty"],
)
def test_what_the_library_does_not_take_is_left_to_numpy(a: Any, b: Any, out: Any) -> None:
    assert product(a, b, out) is None


def call_of(a: Any, b: Any) -> KernelCall:
    bound = tofu.parse(MATMUL).bind({"a": a.shape, "b": b.shape})
    box = {name: (0, extent) for name, extent in bound.extents.items()}
    regions = {name: tuple((0, size) for size in shape) for name, shape in bound.shapes.items()}
    out = np.full((len(a), b.shape[1]), np.nan, np.float32)
    return KernelCall(bound, box, {"a": a, "b": b}, regions, (out,))


def test_derived_kernels_call_it_and_say_so() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (24, 24)).astype(np.float32) for _ in range(2))
    call = call_of(a, b)
    call.bound.prepare(call)()
    assert [each.startswith("oneDNN gemm") for each in call.calls] == [True]
    np.testing.assert_array_equal(call.outputs[0], a @ b)


def test_one_recipe_serves_other_arrays() -> None:
    """Objects of the library are bound to arrays, never to the recipe."""
    rng = np.random.default_rng(2)
    calls = [call_of(*(rng.integers(-3, 4, (24, 24)).astype(np.float32) for _ in range(2))) for _ in range(3)]
    runs = [call.bound.prepare(call) for call in calls]
    for run in (*runs, *runs):
        run()
    for call in calls:
        np.testing.assert_array_equal(call.outputs[0], call.inputs["a"] @ call.inputs["b"])


def test_the_audit_looks_at_what_single_precision_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of which the last row is read from elsewhere is refuted, though that of float64 is right."""
    operator = tofu.parse(MATMUL)
    shapes = {"a": (6, 5), "b": (5, 6)}

    def refuted() -> list[Any]:
        report = tofu.audit(operator, shapes=shapes, workers=(2,))
        return [finding for finding in report.findings if finding.verdict.value == "refuted"]

    assert not refuted()
    original = products.LibraryProduct.bind

    def late(self: Any, left: Any, right: Any, out: Any) -> Any:
        shifted = np.lib.stride_tricks.as_strided(left[1:], left.shape, left.strides)
        return original(self, shifted, right, out)

    monkeypatch.setattr(products.LibraryProduct, "bind", late)
    derive._recipes.cache_clear()
    assert refuted()


def test_small_products_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch, onednn: Library) -> None:
    a, b, out = (np.ones((8, 8), np.float32) for _ in range(3))
    assert product(a, b, out) is not None
    monkeypatch.setattr(products, "LEAST_OPERATIONS", 2 * 8**3 + 1)
    assert product(a, b, out) is None


def test_without_the_library_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "loaded", lambda: None)
    assert recipe.product(*(np.ones((8, 8), np.float32) for _ in range(3))) is None


def test_without_wide_vectors_numpy_computes(onednn: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = replace(onednn, instructions="AVX2")
    monkeypatch.setattr(products, "loaded", lambda: narrow)
    assert product(*(np.ones((8, 8), np.float32) for _ in range(3))) is None
