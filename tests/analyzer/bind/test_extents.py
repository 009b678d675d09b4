"""Extents of index variables, and shapes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import DescriptionError, ShapeError


@pytest.mark.parametrize(
    ("output", "shapes", "extents"),
    [
        ("lambda x: Sum(lambda d: a[x + d] * b[d])", {"a": (12,), "b": (3,)}, {"x": 10, "d": 3}),
        ("lambda x: Sum(lambda d: a[2 * x + d] * b[d])", {"a": (12,), "b": (3,)}, {"x": 5, "d": 3}),
        ("lambda x: Sum(lambda d: a[3 * x + 2 * d] * b[d])", {"a": (12,), "b": (3,)}, {"x": 3, "d": 3}),
        ("lambda x: a[a.shape[0] - 1 - x] + b[0]", {"a": (12,), "b": (3,)}, {"x": 12}),
        ("lambda x: a[11 - 2 * x] + b[0]", {"a": (12,), "b": (3,)}, {"x": 6}),
        ("lambda x: a[x // 2] + b[0]", {"a": (12,), "b": (3,)}, {"x": 24}),
        ("lambda x: a[(x + 3) // 2] + b[0]", {"a": (12,), "b": (3,)}, {"x": 21}),
        ("lambda x: a[2 * ((x + 1) // 3)] + b[0]", {"a": (12,), "b": (3,)}, {"x": 17}),
        ("lambda x: a[2 * ((9 - x) // 2) - 3] + b[0]", {"a": (12,), "b": (3,)}, {"x": 6}),
        ("lambda x: a[10 - 2 * ((9 - x) // 2)] + b[0]", {"a": (30,), "b": (3,)}, {"x": 28}),
        ("lambda x: a[11 - 3 * (x // 2)] + b[0]", {"a": (12,), "b": (3,)}, {"x": 8}),
        ("lambda x: a[-((x + 1) // -2)] + b[0]", {"a": (12,), "b": (3,)}, {"x": 22}),
        ("lambda x: a[x + 3 * (x % 2)] + b[0]", {"a": (12,), "b": (3,)}, {"x": 9}),
        ("lambda x: a[x - 3 * (x % 2) + 3] + b[0]", {"a": (12,), "b": (3,)}, {"x": 9}),
        ("lambda x: a[x + 1] + a[2 * x] + b[0]", {"a": (12,), "b": (3,)}, {"x": 6}),
        ("lambda x: a[x + 1] + b[x + 1]", {"a": (12,), "b": (3,)}, {"x": 2}),
        ("lambda x: a[x + x % 2] + b[0]", {"a": (12,), "b": (3,)}, {"x": 11}),
        ("lambda x: a[x] + pad(b[x], 0)", {"a": (12,), "b": (3,)}, {"x": 12}),
        ("lambda x: pad(b[x], 0) + a[0]", {"a": (12,), "b": (3,)}, {"x": 3}),
        ("lambda x=4: a[x] + b[x - x]", {"a": (12,), "b": (3,)}, {"x": 4}),
        (
            "lambda x=maximum(a.shape[0], b.shape[0]): pad(a[x], 0) + pad(b[x], 0)",
            {"a": (2,), "b": (3,)},
            {"x": 3},
        ),
        ("lambda x=a.shape[-1] ** 2 // 5 - -1: b[0] * x", {"a": (12,), "b": (3,)}, {"x": 29}),
        ("lambda x: Sum(lambda d: a[x + d]) + b[x]", {"a": (12,), "b": (3,)}, {"x": 3, "d": 10}),
        ("lambda x: Sum(lambda d=3: a[3 - d + x]) + b[0]", {"a": (12,), "b": (3,)}, {"x": 9, "d": 3}),
    ],
)
def test_inference(bind, output, shapes, extents):
    assert bind(f"def f(a, b):\n    return {output}", shapes).extents == extents


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("lambda x: pad(a[x - 1], 0) + b[0]", "'x' cannot be inferred"),
        ("lambda x: a[x % 5] + b[0]", "'x' cannot be inferred"),
        ("lambda x: a[x - x] + b[0]", "'x' cannot be inferred"),
        ("lambda x, y: a[x + y] + b[0]", "'x' cannot be inferred"),
    ],
)
def test_an_extent_that_cannot_be_inferred(bind, output, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        bind(f"def f(a, b):\n    return {output}", {"a": (12,), "b": (3,)})
    assert "lambda x=<extent>:" in str(caught.value)
    assert "^" in str(caught.value)


def test_a_shared_index_with_two_extents(bind):
    text = "def dot(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])"
    with pytest.raises(ShapeError, match=r"'k' has extent 3 by axis 1 of a, but 4 by axis 0 of b") as caught:
        bind(text, {"a": (2, 3), "b": (4, 5)})
    assert "dot:2:39: 3 here" in str(caught.value)


def test_two_stated_extents_must_agree(bind):
    text = "def f(a):\n    return lambda i=2: a[i], lambda i=3: a[i]"
    with pytest.raises(ShapeError, match="'i' has extent 2 by its binder, but 3 by its binder"):
        bind(text, {"a": (5,)})


@pytest.mark.parametrize(
    ("output", "low", "high"),
    [
        ("lambda x: a[x] + a[x - 1]", -1, 10),
        ("lambda x=12: a[x + 1]", 1, 12),
        ("lambda x=5: a[7 - 2 * x]", -1, 7),
        ("lambda x=5: a[x * a.shape[0]]", 0, 48),
    ],
)
def test_an_index_that_leaves_its_tensor(bind, output, low, high):
    with pytest.raises(
        ShapeError, match=rf"axis 0 of a has extent 12.* from {low} to {high}; wrap it in pad\(a"
    ):
        bind(f"def f(a):\n    return {output}", {"a": (12,)})


def test_loose_bounds_do_not_make_an_index_leave_its_tensor(bind):
    bound = bind("def f(a, b):\n    return lambda x: a[x + x % 2] * b[x]", {"a": (5,), "b": (5,)})
    assert bound.output_shapes == ((5,),)
    assert bound.strategies[0].input_regions(worker=1, workers=2)["a"] == ((2, 5),)


def test_a_kernel_larger_than_the_data(bind):
    text = "def f(a, b):\n    return lambda x: Sum(lambda d: a[x + d] * b[d])"
    with pytest.raises(ShapeError, match=r"index variable 'x' would have extent .*a \(3,\), b \(9,\)"):
        bind(text, {"a": (3,), "b": (9,)})
    assert bind(text, {"a": (3,), "b": (4,)}).output_shapes == ((0,),)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1, 2), "negative extent -1"),
        ((2.0, 2), "extent 2.0"),
        ((True, 2), "extent True"),
        (("3", 2), "extent '3'"),
        ((2,), r"1 dimension, but is read with 2 dimensions"),
        ("23", "give a tuple of integers"),
        (5, "give a tuple of integers"),
        ((2**33, 2**33), "has 73786976294838206464 elements; the limit is"),
        ((0, 2**63), "the limit is"),
    ],
)
def test_bad_shapes(bind, shape, message):
    analysis = bind("def f(a):\n    return lambda i, j: a[i, j]", {"a": (1, 2)}).analysis
    with pytest.raises(ShapeError, match=message):
        analysis.bind({"a": shape})


def test_an_output_too_large_to_count(bind):
    text = "def outer(a, b):\n    return lambda i, j: a[i] * b[j]"
    with pytest.raises(ShapeError, match=r"output 0 of shape \(8589934592, 8589934592\)"):
        bind(text, {"a": (2**33,), "b": (2**33,)})


def test_numpy_integers_are_extents(bind):
    bound = bind("def f(a):\n    return lambda i: a[i]", {"a": (np.int64(3),)})
    assert bound.shapes == {"a": (3,)}
    assert type(bound.extents["i"]) is int


def test_missing_and_unknown_tensors(bind):
    analysis = bind("def f(a):\n    return lambda i: a[i]", {"a": (3,)}).analysis
    with pytest.raises(ShapeError, match="the shape of tensor 'a' is missing"):
        analysis.bind({})
    with pytest.raises(ShapeError, match="it does not take a tensor 'b', only a"):
        analysis.bind({"a": (3,), "b": (3,)})


def test_zero_size_dimensions(bind):
    sums = bind("def f(a):\n    return lambda i: Sum(lambda j: a[i, j])", {"a": (2, 0)})
    assert sums.interpret({"a": np.zeros((2, 0))})[0].tolist() == [0, 0]
    products = bind("def f(a):\n    return lambda i: Prod(lambda j: a[i, j])", {"a": (2, 0)})
    assert products.interpret({"a": np.zeros((2, 0))})[0].tolist() == [1, 1]
    assert not sums.input_regions(sums.full_box[None])["a"].any()
    for reducer in ("Max", "Min"):
        with pytest.raises(ShapeError, match=f"{reducer} over 'j' has no values to reduce"):
            bind(f"def f(a):\n    return lambda i: {reducer}(lambda j: a[i, j])", {"a": (2, 0)})


def test_an_axis_of_extent_zero_as_a_divisor(bind):
    text = "def flat(a):\n    return lambda k=a.shape[0] * a.shape[1]: a[k // a.shape[1], k % a.shape[1]]"
    assert bind(text, {"a": (3, 0)}).output_shapes == ((0,),)
    assert bind(text, {"a": (3, 4)}).output_shapes == ((12,),)


def test_indices_beyond_64_bits(bind):
    text = "def f(a):\n    return lambda i=5: pad(a[i * 4000000000 * a.shape[0] * a.shape[0]], 0)"
    assert bind(text, {"a": (3,)}).output_shapes == ((5,),)
    with pytest.raises(ShapeError, match=r"indices exceed 2\*\*62"):
        bind(text, {"a": (10**6,)})


def test_results_of_opaque_functions_have_the_shapes_of_slices(bind):
    text = """
def f(a, b):
    g = Opaque()
    h = Opaque()
    return lambda n, i, j: g(a[n, :, :])[i, j] + h(b[n, :])[i]
"""
    assert bind(text, {"a": (2, 3, 4), "b": (2, 3)}).extents == {"n": 2, "i": 3, "j": 4}
    with pytest.raises(ShapeError, match="'i' has extent 3 by axis 1 of a, but 5 by axis 1 of b"):
        bind(text, {"a": (2, 3, 4), "b": (2, 5)})


def test_results_of_another_rank_have_stated_extents(bind):
    text = """
def f(a, b):
    g = Opaque()
    h = Opaque()
    return lambda n, i=5, k=2, j: g(a[n, :])[i, k] + h(b[n, :])[j]
"""
    assert bind(text, {"a": (2, 3), "b": (2, 4)}).extents == {"n": 2, "i": 5, "k": 2, "j": 4}
