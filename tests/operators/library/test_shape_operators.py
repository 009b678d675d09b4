"""Operators that move elements, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get
from tofu.operators.library.reshape import target_shape


def apply(name: str, data: np.ndarray, **attributes: object) -> np.ndarray:
    (result,) = get(name).bind({"data": data.shape}, **attributes).compute({"data": data})
    return result


def counting(*shape: int) -> np.ndarray:
    return np.arange(float(math.prod(shape))).reshape(shape)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((4, 6), (4, 6)),
        ((-1, 2), (12, 2)),
        ((0, -1), (2, 12)),
        ((0, -3), (2, 12)),
        ((-3, 0), (6, 4)),
        ((-2,), (2, 3, 4)),
        ((0, -2), (2, 3, 4)),
        ((-4, 1, -1, -2), (1, 2, 3, 4)),
        ((0, 0, -4, -1, 2), (2, 3, 2, 2)),
        ((0, 0, 0, 1), (2, 3, 4, 1)),
    ],
)
def test_reshape_codes(codes: tuple[int, ...], expected: tuple[int, ...]) -> None:
    data = counting(2, 3, 4)
    np.testing.assert_array_equal(apply("Reshape", data, shape=codes), data.reshape(expected))


def test_reshape_of_nothing() -> None:
    assert get("Flatten").bind({"data": (2, 0, 3)}).compute({"data": np.zeros((2, 0, 3))})[0].shape == (2, 0)


def test_reshape_from_the_back() -> None:
    data = counting(10, 5, 4)
    assert apply("Reshape", data, shape="(-1, 0)", reverse="True").shape == (50, 4)


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ((5, 5), ShapeError),
        ((-1, 5), ShapeError),
        ((0, 0, 0, 0), ShapeError),
        ((-4, 5, -1, -2), ShapeError),
        ((-1, -1), OperatorError),
        ((-7,), OperatorError),
    ],
)
def test_impossible_reshapes_are_refused(codes: tuple[int, ...], error: type[Exception]) -> None:
    with pytest.raises(error, match="Reshape"):
        target_shape(codes, (2, 3, 4))


FACTORS = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(FACTORS, st.data())
def test_any_reshape_keeps_the_order_of_elements(factors: list[int], data: st.DataObject) -> None:
    def grouped() -> tuple[int, ...]:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(factors)), max_size=len(factors))))
        pieces = [factors[a:b] for a, b in zip([0, *cuts], [*cuts, len(factors)], strict=True)]
        return tuple(math.prod(piece) for piece in pieces)

    before, after = grouped(), grouped()
    array = counting(*before)
    np.testing.assert_array_equal(apply("Reshape", array, shape=after), array.reshape(after))


def test_dimensions_that_pass_through_reshape_stay_splittable() -> None:
    bound = get("Reshape").bind({"data": (6, 2, 3, 5)}, shape=(6, -1, 5))
    by_variable = {strategy.variable: strategy for strategy in bound.strategies}
    assert set(by_variable) == {"i0", "i1", "i2"}
    regions = by_variable["i0"].input_regions(worker=1, workers=2)
    assert regions == {"data": ((3, 6), (0, 2), (0, 3), (0, 5))}
    regions = by_variable["i1"].input_regions(worker=1, workers=2)
    assert regions == {"data": ((0, 6), (1, 2), (0, 3), (0, 5))}


def test_flatten() -> None:
    data = counting(2, 3, 4)
    np.testing.assert_array_equal(apply("Flatten", data), data.reshape(2, 12))


def test_permutations() -> None:
    data = counting(2, 3, 4)
    np.testing.assert_array_equal(apply("transpose", data), data.T)
    np.testing.assert_array_equal(apply("transpose", data, axes=(2, 0, 1)), data.transpose(2, 0, 1))
    np.testing.assert_array_equal(apply("SwapAxis", data, dim1=0, dim2=2), data.swapaxes(0, 2))
    np.testing.assert_array_equal(apply("reverse", data, axis=(0, 2)), data[::-1, :, ::-1])
    np.testing.assert_array_equal(apply("expand_dims", data, axis=-1), data[..., None])


def test_slices() -> None:
    data = counting(4, 6)
    np.testing.assert_array_equal(apply("slice_axis", data, axis=1, begin=-3, end="None"), data[:, -3:])
    np.testing.assert_array_equal(apply("slice", data, begin=(1,), end=(3,)), data[1:3])
    with pytest.raises(ShapeError, match=r"end=9 is not a range in dimension 1, which has 6"):
        apply("slice_axis", data, axis=1, begin=0, end=9)


@pytest.mark.parametrize("squeeze", [False, True])
def test_slice_channel(squeeze: bool) -> None:
    data = counting(2, 3, 4)
    bound = get("split").bind({"data": (2, 3, 4)}, num_outputs=3, squeeze_axis=squeeze)
    parts = np.split(data, 3, axis=1)
    for result, part in zip(bound.compute({"data": data}), parts, strict=True):
        np.testing.assert_array_equal(result, part[:, 0] if squeeze else part)


def test_slice_channel_says_what_does_not_divide() -> None:
    with pytest.raises(ShapeError, match="5 elements, not a multiple of num_outputs=2"):
        get("SliceChannel").bind({"data": (2, 5)}, num_outputs=2)


def test_concat_and_stack() -> None:
    parts = {"arg0": counting(2, 3), "arg1": -counting(2, 1), "arg2": counting(2, 2) + 50}
    bound = get("Concat").bind({name: part.shape for name, part in parts.items()}, num_args=3, dim=1)
    np.testing.assert_array_equal(bound.compute(parts)[0], np.concatenate(list(parts.values()), axis=1))
    pair = {"arg0": counting(2, 3), "arg1": -counting(2, 3)}
    bound = get("stack").bind({name: part.shape for name, part in pair.items()}, num_args=2, axis=1)
    np.testing.assert_array_equal(bound.compute(pair)[0], np.stack(list(pair.values()), axis=1))
    with pytest.raises(ShapeError, match="arg1 has shape"):
        get("Concat").bind({"arg0": (2, 3), "arg1": (3, 3)}, num_args=2)


def test_stretching() -> None:
    data = counting(1, 3)
    np.testing.assert_array_equal(apply("broadcast_to", data, shape=(4, 0)), np.broadcast_to(data, (4, 3)))
    stretched = apply("broadcast_axis", data, axis=0, size=4)
    np.testing.assert_array_equal(stretched, np.broadcast_to(data, (4, 3)))
    with pytest.raises(ShapeError, match="equal, or 1"):
        get("broadcast_add").bind({"lhs": (2, 3), "rhs": (2, 4)})
