"""Where MXNet's operators do what their names do not say; each value here is one that MXNet computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu.errors import OperatorError, ShapeError
from tofu.operators import get


def counting(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


def apply(name: str, tensors: dict[str, np.ndarray], **attributes: object) -> np.ndarray:
    operator, values = get(name), dict(tensors)
    for stage in operator.stages(attributes, {name: array.shape for name, array in tensors.items()}):
        bound = stage.bind({name: values[name].shape for name in stage.inputs})
        values.update(zip(stage.produces, bound.compute(values), strict=True))
    return values["output_0"]


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "nansum", "nanprod"])
def test_a_reduction_that_excludes_every_dimension_changes_nothing(name: str) -> None:
    data = counting(2, 3)
    np.testing.assert_array_equal(apply(name, {"data": data}, axis=(0, 1), exclude=True), data)


def test_without_an_axis_extremes_are_found_in_flat_data() -> None:
    data = np.array([[3.0, 9.0, 1.0], [9.0, 0.0, 2.0]])
    np.testing.assert_array_equal(apply("argmax", {"data": data}), [1])
    np.testing.assert_array_equal(apply("argmin", {"data": data}, axis=None), [4])
    np.testing.assert_array_equal(apply("argmax", {"data": data}, keepdims=True), [[1]])


def test_norms_of_order_one_and_two_along_dimensions() -> None:
    data = counting(2, 3, 4) - 10
    np.testing.assert_allclose(apply("norm", {"data": data}, axis=(0, 2)), np.sqrt((data**2).sum((0, 2))))
    expected = abs(data).sum(1, keepdims=True)
    np.testing.assert_allclose(apply("norm", {"data": data}, ord=1, axis=1, keepdims=True), expected)
    with pytest.raises(OperatorError, match="ord=3"):
        get("norm").bind({"data": (2, 3)}, ord=3)


def test_transposed_dot_keeps_the_order_of_the_other_dimensions() -> None:
    lhs, rhs = counting(3, 2, 5), counting(4, 2, 3)
    found = apply("dot", {"lhs": lhs, "rhs": rhs}, transpose_a=True, transpose_b=True)
    np.testing.assert_allclose(found, np.einsum("kab,cdk->abcd", lhs, rhs))


@pytest.mark.parametrize("name", ["linalg_potrf", "linalg_potri"])
def test_one_matrix_needs_no_batch(name: str) -> None:
    matrix = np.array([[4.0, 0.0], [2.0, 3.0]])
    matrix = matrix @ matrix.T if name == "linalg_potrf" else matrix
    np.testing.assert_allclose(apply(name, {"A": matrix}), apply(name, {"A": matrix[None]})[0])


def test_the_old_target_shape_infers_zeros_and_keeps_the_highest() -> None:
    data = counting(2, 3, 4)
    assert apply("Reshape", {"data": data}, target_shape=(4, 0)).shape == (4, 6)
    assert apply("Reshape", {"data": data}, target_shape=(9, 0), keep_highest=True).shape == (2, 12)


@pytest.mark.parametrize(
    ("begin", "end", "step"),
    [
        ((None, 1), (None, None), ()),
        ((0, None), (3, -1), (2, 2)),
        ((None, -1), (None, 0), (1, -2)),
        ((1, 0), (9, 3), ()),
    ],
)
def test_slices_with_open_ends_and_steps(begin: tuple, end: tuple, step: tuple) -> None:
    data = counting(4, 5)
    box = tuple(slice(*ends) for ends in zip(begin, end, step or (None, None), strict=True))
    attributes = {"begin": begin, "end": end, "step": step}
    np.testing.assert_array_equal(apply("slice", {"data": data}, **attributes), data[box])
    written = data.copy()
    written[box] = -1
    np.testing.assert_array_equal(
        apply("_crop_assign_scalar", {"data": data}, scalar=-1, **attributes), written
    )
    part = -counting(*data[box].shape)
    written[box] = part
    np.testing.assert_array_equal(apply("_slice_assign", {"lhs": data, "rhs": part}, **attributes), written)
    gradients = get("_slice_assign").gradients({"lhs": data, "rhs": part}, [data], **attributes)
    np.testing.assert_array_equal(gradients["rhs"], data[box])
    data[box] = 0
    np.testing.assert_array_equal(gradients["lhs"], data)


def test_slices_of_nothing_are_errors() -> None:
    with pytest.raises(ShapeError, match="begin=2, end=1 is not a range in dimension 0, which has 3"):
        get("slice").bind({"data": (3,)}, begin=(2,), end=(1,))
    with pytest.raises(OperatorError, match="begin is 'x', expected a tuple of integers or None"):
        get("slice").attributes({"begin": "x", "end": (1,)})


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_any_axis(mode: str, axis: int) -> None:
    table, places = counting(2, 3, 4), np.array([[-5.0, 0.0], [1.0, 7.0]])
    expected = np.take(table, places.astype(int), axis=axis, mode=mode)
    np.testing.assert_array_equal(
        apply("take", {"a": table, "indices": places}, axis=axis, mode=mode), expected
    )


def test_embedding_moves_indices_that_leave_the_table_to_its_edge() -> None:
    weight = counting(3, 2)
    found = apply(
        "Embedding", {"data": np.array([-1.0, 1.0, 8.0]), "weight": weight}, input_dim=3, output_dim=2
    )
    np.testing.assert_array_equal(found, weight[[0, 1, 2]])


def test_pick_takes_the_last_axis_unless_told_otherwise_and_may_wrap() -> None:
    data, index = counting(2, 4), np.array([-1.0, 6.0])
    np.testing.assert_array_equal(apply("pick", {"data": data, "index": index}), [0, 7])
    np.testing.assert_array_equal(apply("pick", {"data": data, "index": index}, mode="wrap"), [3, 6])


def test_a_condition_of_one_dimension_chooses_rows() -> None:
    tensors = {"condition": np.array([1.0, 0.0]), "x": counting(2, 3), "y": -counting(2, 3)}
    np.testing.assert_array_equal(apply("where", tensors), [[0, 1, 2], [-3, -4, -5]])


def test_prelu_may_share_one_slope() -> None:
    tensors = {"data": -counting(1, 3, 2), "gamma": np.array([0.5])}
    np.testing.assert_array_equal(apply("LeakyReLU", tensors, act_type="prelu"), tensors["data"] / 2)


def test_random_slopes_lie_between_their_bounds_and_at_their_mean_in_inference() -> None:
    attributes = {"act_type": "rrelu", "lower_bound": 0.2, "upper_bound": 0.4}
    data = -np.ones((50, 40))
    drawn = -apply("LeakyReLU", {"data": data, "seed": np.array([3.0])}, **attributes)
    assert 0.2 <= drawn.min() < 0.201
    assert 0.399 < drawn.max() <= 0.4
    (output,) = (
        get("LeakyReLU")
        .bind({"data": (2, 2)}, training=False, **attributes)
        .compute({"data": -np.ones((2, 2))})
    )
    np.testing.assert_allclose(output, -0.3)


def test_the_gradient_of_a_maximum_goes_to_the_first_that_attains_it(gradients: Callable[..., dict]) -> None:
    data = np.array([[1.0, 1.0, 0.0, 2.0], [1.0, 0.0, 2.0, 2.0]]).reshape(1, 1, 2, 4)
    head = np.array([5.0, 7.0]).reshape(1, 1, 1, 2)
    attributes = {"kernel": (2, 2), "stride": (2, 2), "pool_type": "max"}
    found = gradients(get("Pooling"), attributes, {"data": data}, (head,))["data"]
    np.testing.assert_array_equal(found[0, 0], [[5, 0, 0, 7], [0, 0, 0, 0]])
    attributes = {"global_pool": True, "pool_type": "max"}
    found = gradients(get("Pooling"), attributes, {"data": data}, (head[..., :1],))["data"]
    np.testing.assert_array_equal(found[0, 0], [[0, 0, 0, 5], [0, 0, 0, 0]])


def test_an_average_may_leave_out_the_padding() -> None:
    attributes = {"kernel": (3,), "pad": (1,), "pool_type": "avg", "count_include_pad": False}
    found = apply("Pooling", {"data": np.array([[[2.0, 4.0, 6.0]]])}, **attributes)
    np.testing.assert_array_equal(found, [[[3, 4, 5]]])


def test_softmax_activation_is_over_the_last_dimension(forward: Callable[..., dict]) -> None:
    data = counting(2, 3, 2)
    found = forward(get("SoftmaxActivation"), {}, {"data": data})["output_0"]
    np.testing.assert_allclose(found.sum(-1), np.ones((2, 3)))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_temperatures_divide(name: str, forward: Callable[..., dict]) -> None:
    data = counting(2, 3) ** 2
    cooled = forward(get(name), {"temperature": 4}, {"data": data})["output_0"]
    np.testing.assert_allclose(cooled, forward(get(name), {}, {"data": data / 4})["output_0"])
    with pytest.raises(OperatorError, match="temperature=0"):
        get(name).bind({"data": (2, 3)}, temperature=0)


def test_the_batch_of_kept_dimensions_is_all_of_them(gradients: Callable[..., dict]) -> None:
    tensors = {"data": np.zeros((2, 3, 2)), "label": np.zeros((2, 3))}
    attributes = {"preserve_shape": True, "normalization": "batch"}
    found = gradients(get("SoftmaxOutput"), attributes, tensors, (np.ones((2, 3, 2)),))["data"]
    np.testing.assert_allclose(found[..., 0], np.full((2, 3), -0.5 / 6))


def test_labels_may_be_smoothed(gradients: Callable[..., dict]) -> None:
    tensors = {"data": np.zeros((1, 4)), "label": np.array([2.0])}
    found = gradients(get("SoftmaxOutput"), {"smooth_alpha": 0.3}, tensors, (np.ones((1, 4)),))["data"]
    np.testing.assert_allclose(found, [[0.15, 0.15, -0.45, 0.15]])
    with pytest.raises(OperatorError, match="smooth_alpha=2"):
        gradients(get("SoftmaxOutput"), {"smooth_alpha": 2}, tensors, (np.ones((1, 4)),))


def test_sequences_may_lie_along_dimension_one() -> None:
    data, lengths = counting(2, 3), np.array([1.0, 2.0])
    tensors = {"data": data, "sequence_length": lengths}
    attributes = {"use_sequence_length": True, "axis": 1}
    np.testing.assert_array_equal(apply("SequenceMask", tensors, **attributes), [[0, 0, 0], [3, 4, 0]])
    np.testing.assert_array_equal(apply("SequenceLast", tensors, **attributes), [0, 4])
    np.testing.assert_array_equal(apply("SequenceLast", {"data": data}, axis=1), [2, 5])
    with pytest.raises(OperatorError, match="axis=2"):
        apply("SequenceMask", tensors, use_sequence_length=True, axis=2)


def test_dropout_may_drop_in_inference_too() -> None:
    seeded = {"data": np.ones((20, 20)), "seed": np.array([1.0])}
    shapes = {name: array.shape for name, array in seeded.items()}
    (always,) = get("Dropout").bind(shapes, training=False, mode="always").compute(seeded)
    assert set(np.unique(always)) == {0, 2}
    (kept,) = get("Dropout").bind(shapes, training=False).compute(seeded)
    np.testing.assert_array_equal(kept, seeded["data"])


@pytest.mark.parametrize("name", ["_mod", "broadcast_mod"])
def test_remainders_have_the_sign_of_the_divisor_and_are_zero_for_zero(name: str) -> None:
    lhs, rhs = np.array([5.0, -5, 5, -5, 1, 0]), np.array([3.0, 3, -3, -3, 0, 0])
    np.testing.assert_array_equal(apply(name, {"lhs": lhs, "rhs": rhs}), [2, 1, -1, -2, 0, 0])


def test_remainders_of_numbers_are_zero_for_zero() -> None:
    data = np.array([5.0, -5, 0])
    np.testing.assert_array_equal(apply("_mod_scalar", {"data": data}, scalar=0), [0, 0, 0])
    np.testing.assert_array_equal(apply("_mod_scalar", {"data": data}, scalar=3), [2, 1, 0])
    np.testing.assert_array_equal(apply("_rmod_scalar", {"data": data}, scalar=7), [2, -3, 0])
