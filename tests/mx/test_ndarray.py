"""Arrays in the manner of MXNet."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tofu.mx as mx


def test_types_are_float32_unless_told_otherwise() -> None:
    assert mx.nd.array([1, 2]).dtype is np.float32
    assert mx.nd.array(np.arange(3)).dtype is np.float32
    assert mx.nd.array([1, 2], dtype="int32").dtype is np.int32
    assert mx.nd.array(mx.nd.zeros(2, dtype="float64")).dtype is np.float64
    for made, expected in (
        (mx.nd.zeros((2, 3)), np.zeros((2, 3))),
        (mx.nd.ones(2), np.ones(2)),
        (mx.nd.full((2,), 7), [7, 7]),
        (mx.nd.empty((2, 1)), np.zeros((2, 1))),
        (mx.nd.arange(2, 8, 3, repeat=2), [2, 2, 5, 5]),
        (mx.nd.arange(3), [0, 1, 2]),
        (mx.nd.ones_like(mx.nd.zeros(2)), [1, 1]),
        (mx.nd.zeros_like(mx.nd.ones(2)), [0, 0]),
    ):
        assert made.dtype is np.float32
        np.testing.assert_array_equal(made.asnumpy(), expected)


def test_arithmetic_and_comparisons_keep_the_type() -> None:
    a, b = mx.nd.array([1.0, -2.0, 3.0]), mx.nd.array([2.0, 2.0, 3.0])
    x, y = a.asnumpy(), b.asnumpy()
    for found, expected in (
        (a + b, x + y),
        (2 + a, 2 + x),
        (a - b, x - y),
        (2 - a, 2 - x),
        (a * 2.5, x * 2.5),
        (a / b, x / y),
        (6 / a, 6 / x),
        (a**2, x**2),
        (2**a, 2**x),
        (a % 2, x % 2),
        (7 % b, 7 % y),
        (-a, -x),
        (abs(a), abs(x)),
        (a == b, x == y),
        (a != 3, x != 3),
        (a > 0, x > 0),
        (a < b, x < y),
        (a <= b, x <= y),
        (a >= b, x >= y),
        (np.float64(2) * a, 2 * x),
    ):
        assert found.dtype is np.float32
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    with pytest.raises(mx.MXNetError, match=r"shapes \(3,\) and \(2,\) cannot be combined"):
        a + mx.nd.ones(2)
    assert (a == None) is False  # noqa: E711


def test_arithmetic_in_place_changes_the_array_itself() -> None:
    a = mx.nd.array([1.0, 2.0])
    view = a[0:2]
    a += 3
    a -= mx.nd.array([1.0, 2.0])
    a *= 4
    a /= 2
    assert view.asnumpy().tolist() == a.asnumpy().tolist() == [6, 6]


def test_remainders_in_place_change_the_array_itself() -> None:
    array = mx.nd.array([[1, 2], [3, 4]])
    row = array[1]
    row %= 3
    assert array.asnumpy().tolist() == [[1, 2], [0, 1]]


def test_integers_to_a_negative_power_are_truncated() -> None:
    whole = mx.nd.array([1, 2, -1], dtype="int32")
    for found in (whole**-1, whole ** mx.nd.array([-1, -1, -1], dtype="int32")):
        assert found.dtype is np.int32
        assert found.asnumpy().tolist() == [1, 0, -1]
    assert (2**whole).asnumpy().tolist() == [2, 4, 0]


def test_arrays_are_pickled_with_their_type() -> None:
    a = mx.nd.array([[1, 2]], dtype="int32")
    b = pickle.loads(pickle.dumps(a))
    assert (type(b), b.dtype, b.asnumpy().tolist()) == (type(a), np.int32, [[1, 2]])


def test_slices_are_views_and_elements_are_arrays() -> None:
    a = mx.nd.zeros((3, 4))
    a[1][:] = 2
    a[2, 1:3] = mx.nd.array([5, 6])
    a[0:1] += 1
    np.testing.assert_array_equal(a.asnumpy(), [[1, 1, 1, 1], [2, 2, 2, 2], [0, 5, 6, 0]])
    assert a[2][1].shape == (1,)
    assert (float(a[2][1]), int(a[2, 2]), a[0][0].asscalar(), bool(a[2][0])) == (5, 6, 1, False)
    assert [row.shape for row in a] == [(4,)] * 3
    assert (len(a), a.size, a.ndim, a.T.shape, a.context, a.ctx, a.stype) == (
        3,
        12,
        2,
        (4, 3),
        mx.cpu(0),
        mx.cpu(0),
        "default",
    )
    assert a[mx.nd.array([0, 2])].shape == (2, 4)
    with pytest.raises(mx.MXNetError, match=r"shape \(3,\) cannot be assigned to one of \(4,\)"):
        a[0] = np.ones(3)
    with pytest.raises(mx.MXNetError, match=r"shape \(3, 4\) is not a single number"):
        a.asscalar()


def test_asnumpy_copies_and_reshape_does_not() -> None:
    a = mx.nd.arange(6)
    a.asnumpy()[:] = 9
    b = a.reshape((2, -1))
    b[0] = 7
    assert a.asnumpy().tolist() == [7, 7, 7, 3, 4, 5]
    assert (b.reshape(shape=(0, 1, -1)).shape, b.reshape(3, 2).shape) == ((2, 1, 3), (3, 2))
    c = mx.nd.zeros(6)
    assert a.copyto(c) is c
    assert (c == a).asnumpy().all()
    assert a.copyto(mx.cpu(1)) is not a
    assert a.as_in_context(mx.cpu(1)) is a
    assert a.astype("int32").dtype is np.int32
    assert mx.nd.ones((1, 3)).broadcast_to((2, 3)).shape == (2, 3)


def test_results_have_the_type_of_values_not_of_positions() -> None:
    rows, table = mx.nd.array([1, 2], dtype="int32"), mx.nd.array([[0.25], [0.5], [0.75]])
    whole, places = mx.nd.array([[1, 2], [3, 4]], dtype="int32"), mx.nd.array([1, 0])
    for found, dtype, expected in (
        (mx.nd.Embedding(rows, table, input_dim=3, output_dim=1), np.float32, [[0.5], [0.75]]),
        (mx.nd.where(rows, table[1:, 0], table[:2, 0]), np.float32, [0.5, 0.75]),
        (mx.nd.one_hot(rows, 3, on_value=0.5), np.float32, [[0, 0.5, 0], [0, 0, 0.5]]),
        (mx.nd.one_hot(rows, 3, dtype="int32"), np.int32, [[0, 1, 0], [0, 0, 1]]),
        (mx.nd.pick(whole, places), np.int32, [2, 3]),
        (mx.nd.sort(whole, is_ascend=False), np.int32, [[2, 1], [4, 3]]),
        (mx.nd.argmax(whole, axis=1), np.int32, [1, 1]),
    ):
        assert found.dtype is dtype
        assert found.asnumpy().tolist() == expected


def test_operators_by_name_as_functions_and_methods() -> None:
    a = mx.nd.arange(6).reshape((2, 3))
    x = a.asnumpy()
    for found, expected in (
        (mx.nd.dot(a, a.T), x @ x.T),
        (mx.nd.sum(a, axis=1), x.sum(1)),
        (a.sum(axis=0), x.sum(0)),
        (mx.nd.clip(a, 1, 3), x.clip(1, 3)),
        (mx.nd.concat(a, a, dim=0), np.concatenate([x, x])),
        (mx.nd.concatenate([a, a], axis=1), np.concatenate([x, x], 1)),
        (
            mx.nd.FullyConnected(a, weight=mx.nd.ones((2, 3)), bias=mx.nd.ones(2), num_hidden=2),
            x.sum(1, keepdims=True) + np.ones(2),
        ),
        (mx.nd.Dropout(a), x),
        (a.transpose(), x.T),
    ):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    parts = mx.nd.split(a, num_outputs=3, axis=1)
    assert [part.shape for part in parts] == [(2, 1)] * 3
    target = mx.nd.zeros((2, 3))
    assert mx.nd.square(a, out=target) is target
    assert target[1, 2].asscalar() == 25
    assert mx.nd.argmax(a, axis=1).asnumpy().tolist() == [2, 2]
    whole = mx.nd.Cast(a / 2, dtype="int32")
    assert (whole.dtype, whole.asnumpy().tolist()) == (np.int32, [[0, 0, 1], [1, 2, 2]])
    assert {"zeros", "FullyConnected", "random_uniform"} <= set(dir(mx.nd))
    with pytest.raises(
        mx.MXNetError, match="FullyConnected takes the arrays data, weight, bias; given are 1"
    ):
        mx.nd.FullyConnected(a, num_hidden=2)
    with pytest.raises(
        mx.MXNetError, match=r"broadcast_to: data of shape \(2, 3\) does not stretch to \(4, 3\)"
    ):
        a.broadcast_to((4, 3))
    with pytest.raises(mx.MXNetError, match=r"Concat along dimension 0: arg1 has shape \(2, 4\)"):
        mx.nd.concatenate([a, mx.nd.zeros((2, 4))])
    with pytest.raises(AttributeError, match="an array has no 'sun'"):
        a.sun()


def test_random_arrays_follow_from_the_seed() -> None:
    def drawn() -> list[Any]:
        mx.random.seed(3)
        arrays = [
            mx.random.uniform(shape=4),
            mx.random.normal(1, 2, (2, 2)),
            mx.nd.random_uniform(shape=(3,)),
        ]
        return [array.asnumpy() for array in (*arrays, mx.nd.random_uniform(shape=(3,)))]

    first, second = drawn(), drawn()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (first[2] != first[3]).all()


def test_files(tmp_path: Any) -> None:
    path = f"{tmp_path}/arrays"
    mx.nd.save(path, {"a": mx.nd.arange(3), "b": mx.nd.ones((2, 2), dtype="int32")})
    found = mx.nd.load(path)
    assert list(found) == ["a", "b"]
    assert found["b"].dtype is np.int32
    mx.nd.save(path, [mx.nd.zeros(2), mx.nd.ones(3)])
    assert [array.shape for array in mx.nd.load(path)] == [(2,), (3,)]
    mx.nd.save(path, mx.nd.ones(4))
    assert mx.nd.load(path)[0].shape == (4,)
    with pytest.raises(mx.MXNetError, match="cannot be read: No such file"):
        mx.nd.load(f"{tmp_path}/none")
    with open(path, "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    with pytest.raises(mx.MXNetError, match="damaged"):
        mx.nd.load(path)
    with open(path, "wb") as file:
        file.write((0x112).to_bytes(8, "little") + bytes(40))
    with pytest.raises(mx.MXNetError, match="MXNet's own binary format"):
        mx.nd.load(path)
    with pytest.raises(mx.MXNetError, match="cannot be saved"):
        mx.nd.save(f"{tmp_path}/no/folder", mx.nd.ones(1))
    with pytest.raises(mx.MXNetError, match="cannot be saved: elements of type <U1"):
        mx.nd.save(f"{tmp_path}/words", {"a": np.array(["b"])})
    assert [file.name for file in tmp_path.iterdir()] == ["arrays"]


def test_shown_as_mxnet_shows_it() -> None:
    assert repr(mx.nd.array([[1, 2]])) == "\n[[1. 2.]]\n<NDArray 1x2 @cpu(0)>"


def test_lists_stand_for_arrays_after_the_first() -> None:
    found = mx.nd.elemwise_add(mx.nd.array([1, 2]), [3, 4])
    np.testing.assert_array_equal(found.asnumpy(), [4, 6])


def test_remainders_by_zero_are_zero() -> None:
    numbers = mx.nd.array([5, -5, 0])
    assert (numbers % 0).asnumpy().tolist() == [0, 0, 0]
    assert (7 % numbers).asnumpy().tolist() == [2, -3, 0]
    assert (numbers % mx.nd.array([0, 3, 0])).asnumpy().tolist() == [0, 1, 0]


def test_without_an_axis_all_elements_are_ordered() -> None:
    """None is a value of `axis`, not one left out: that would be the last dimension."""
    numbers = mx.nd.array([[3, 1, 2], [0, 5, 4]])
    assert mx.nd.sort(numbers, axis=None).asnumpy().tolist() == [0, 1, 2, 3, 4, 5]
    assert mx.nd.argsort(numbers, axis=None).asnumpy().tolist() == [3, 1, 2, 0, 5, 4]
    assert mx.nd.topk(numbers, axis=None, k=2).asnumpy().tolist() == [4, 5]
    symbol = mx.sym.sort(mx.sym.Variable("x"), axis=None)
    assert symbol.eval(x=numbers)[0].asnumpy().tolist() == [0, 1, 2, 3, 4, 5]
    assert mx.sym.load_json(symbol.tojson()).infer_shape(x=(2, 3))[1] == [(6,)]


def test_random_arrays_are_also_in_nd() -> None:
    mx.random.seed(3)
    drawn = mx.nd.random.uniform(2, 3, shape=(4,)).asnumpy()
    mx.random.seed(3)
    np.testing.assert_array_equal(mx.random.uniform(2, 3, shape=(4,)), drawn)
    assert ((drawn >= 2) & (drawn < 3)).all()
