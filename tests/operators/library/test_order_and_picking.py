"""Sorting, picking and sequences of different lengths, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get

RNG = np.random.default_rng(16)
DATA = RNG.permutation(24).reshape(2, 3, 4).astype(float)


def apply(name: str, tensors: dict[str, np.ndarray], **attributes: object) -> tuple[np.ndarray, ...]:
    shapes = {tensor: array.shape for tensor, array in tensors.items()}
    return get(name).bind(shapes, **attributes).compute(tensors)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("is_ascend", [True, False])
def test_sorting(axis: int, is_ascend: bool) -> None:
    sign = 1 if is_ascend else -1
    (values,) = apply("sort", {"data": DATA}, axis=axis, is_ascend=is_ascend)
    np.testing.assert_array_equal(values, sign * np.sort(sign * DATA, axis))
    (positions,) = apply("argsort", {"data": DATA}, axis=axis, is_ascend=is_ascend)
    np.testing.assert_array_equal(positions, np.argsort(sign * DATA, axis))


def test_equal_elements_keep_their_order() -> None:
    data = np.array([[2.0, 1.0, 2.0, 1.0]])
    np.testing.assert_array_equal(apply("argsort", {"data": data})[0], [[1, 3, 0, 2]])
    np.testing.assert_array_equal(apply("argsort", {"data": data}, is_ascend=False)[0], [[0, 2, 1, 3]])


def test_order_of_flattened_data() -> None:
    (values,) = apply("sort", {"data": DATA}, axis=None)
    np.testing.assert_array_equal(values, np.sort(DATA.ravel()))
    (mask,) = apply("topk", {"data": DATA}, axis=None, k=5, ret_typ="mask")
    np.testing.assert_array_equal(mask, DATA >= 19)


def test_topk() -> None:
    largest = -np.sort(-DATA, -1)[..., :2]
    places = np.argsort(-DATA, -1)[..., :2]
    np.testing.assert_array_equal(apply("topk", {"data": DATA}, k=2)[0], places)
    values, positions = apply("topk", {"data": DATA}, k=2, ret_typ="both")
    np.testing.assert_array_equal(values, largest)
    np.testing.assert_array_equal(positions, places)
    (mask,) = apply("topk", {"data": DATA}, k=2, ret_typ="mask", is_ascend=True, axis=1)
    np.testing.assert_array_equal(mask, np.sort(DATA, 1)[:, 1:2] >= DATA)
    with pytest.raises(OperatorError, match="k=5, but dimension 2 has 4"):
        apply("topk", {"data": DATA}, k=5)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_pick(axis: int, keepdims: bool) -> None:
    kept = tuple(1 if d == axis else extent for d, extent in enumerate(DATA.shape))
    index = RNG.integers(-1, DATA.shape[axis] + 1, kept)
    expected = np.take_along_axis(DATA, np.clip(index, 0, DATA.shape[axis] - 1), axis)
    expected = expected if keepdims else expected.squeeze(axis)
    for given in (index, index.squeeze(axis)):
        tensors = {"data": DATA, "index": given.astype(float)}
        np.testing.assert_array_equal(apply("pick", tensors, axis=axis, keepdims=keepdims)[0], expected)


def test_pick_needs_an_axis() -> None:
    with pytest.raises(OperatorError, match="axis=None"):
        apply("pick", {"data": DATA, "index": np.zeros((2, 3))}, axis=None)


def test_rows() -> None:
    data, position = DATA[0], np.array([2.0, 7.0, 0.0])
    expected = data[np.arange(3), [2, 3, 0]]
    np.testing.assert_array_equal(apply("batch_take", {"a": data, "indices": position})[0], expected)
    np.testing.assert_array_equal(apply("choose_element_0index", {"lhs": data, "rhs": position})[0], expected)
    filled = data.copy()
    filled[[0, 2], [2, 0]] = [-1, -3]
    tensors = {"lhs": data, "mhs": np.array([-1.0, -2.0, -3.0]), "rhs": position}
    np.testing.assert_array_equal(apply("fill_element_0index", tensors)[0], filled)


LENGTHS = np.array([2.0, 1.0, 3.0])
SEQUENCES = RNG.normal(size=(3, 3, 2))


def test_sequences_of_different_lengths() -> None:
    tensors = {"data": SEQUENCES, "sequence_length": LENGTHS}
    (last,) = apply("SequenceLast", tensors, use_sequence_length=True)
    np.testing.assert_array_equal(last, SEQUENCES[[1, 0, 2], [0, 1, 2]])
    (masked,) = apply("SequenceMask", tensors, use_sequence_length=True, value=7)
    (turned,) = apply("SequenceReverse", tensors, use_sequence_length=True)
    for n, length in enumerate(LENGTHS.astype(int)):
        np.testing.assert_array_equal(masked[:length, n], SEQUENCES[:length, n])
        np.testing.assert_array_equal(masked[length:, n], 7)
        np.testing.assert_array_equal(turned[:length, n], SEQUENCES[:length, n][::-1])
        np.testing.assert_array_equal(turned[length:, n], SEQUENCES[length:, n])


def test_sequences_of_one_length() -> None:
    for name, expected in (
        ("SequenceLast", SEQUENCES[-1]),
        ("SequenceMask", SEQUENCES),
        ("SequenceReverse", SEQUENCES[::-1]),
    ):
        np.testing.assert_array_equal(apply(name, {"data": SEQUENCES})[0], expected, err_msg=name)


def test_lengths_are_inferred() -> None:
    shapes = get("SequenceMask").infer({"use_sequence_length": True}, {"data": (5, 3, 2)})
    assert shapes["sequence_length"] == (3,)


@pytest.mark.parametrize("reps", [(2,), (2, 3), (2, 1, 3), (2, 1, 1, 3)])
def test_tile(reps: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(apply("tile", {"data": DATA}, reps=reps)[0], np.tile(DATA, reps))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_repeat(axis: int | None) -> None:
    (result,) = apply("repeat", {"data": DATA}, repeats=3, axis=axis)
    np.testing.assert_array_equal(result, np.repeat(DATA, 3, axis))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("width", [(0, 0, 1, 2, 2, 0), (0, 0, 0, 0, 3, 1), (0,) * 6])
def test_pad(mode: str, width: tuple[int, ...]) -> None:
    pairs = list(zip(width[::2], width[1::2], strict=True))
    expected = np.pad(DATA, pairs, mode) if mode != "constant" else np.pad(DATA, pairs, constant_values=2)
    (result,) = apply("Pad", {"data": DATA}, mode=mode, pad_width=width, constant_value=2)
    np.testing.assert_array_equal(result, expected)


def test_pad_says_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="needs 6"):
        apply("Pad", {"data": DATA}, mode="edge", pad_width=(1, 1))
    with pytest.raises(ShapeError, match="dimension 0 of data has 2 elements; reflection adds at most 1"):
        apply("Pad", {"data": DATA}, mode="reflect", pad_width=(2, 0, 0, 0, 0, 0))


def test_boxes_are_assigned() -> None:
    expected = DATA[0].copy()
    expected[1:, :2] = -1
    box = {"begin": (1, 0), "end": (3, 2)}
    (filled,) = apply("_crop_assign_scalar", {"data": DATA[0]}, scalar=-1, **box)
    np.testing.assert_array_equal(filled, expected)
    (assigned,) = apply("_slice_assign", {"lhs": DATA[0], "rhs": -np.ones((2, 2))}, **box)
    np.testing.assert_array_equal(assigned, expected)
    with pytest.raises(
        ShapeError, match=r"rhs has shape \(2, 3\), but the box from begin to end has \(2, 2\)"
    ):
        apply("_slice_assign", {"lhs": DATA[0], "rhs": np.ones((2, 3))}, **box)


def test_crop() -> None:
    data = RNG.normal(size=(2, 2, 6, 5))
    (fixed,) = apply("Crop", {"arg0": data}, num_args=1, h_w=(3, 2), offset=(1, 3))
    np.testing.assert_array_equal(fixed, data[:, :, 1:4, 3:5])
    tensors = {"arg0": data, "arg1": np.zeros((1, 1, 2, 3))}
    (centred,) = apply("Crop", tensors, num_args=2, center_crop=True)
    np.testing.assert_array_equal(centred, data[:, :, 2:4, 1:4])


def test_products_at_places_have_the_gradients_of_products_with_zeros() -> None:
    data = np.array([[0.0, 2], [0, 3], [5, 0], [2, 7]])
    index = np.array([[0.0, 1], [0, 1], [1, 1], [1, 2]])
    operator, attributes = get("scatter_prod"), {"axis": 0, "size": 3}
    (product,) = apply("scatter_prod", {"data": data, "index": index}, **attributes)
    np.testing.assert_array_equal(product, [[0, 1], [10, 0], [1, 7]])
    head = np.array([[1.0, 10], [2, 20], [3, 30]])
    found = operator.gradients({"data": data, "index": index}, [head], **attributes)
    np.testing.assert_array_equal(found["data"], [[0, 0], [0, 0], [4, 120], [10, 30]])
