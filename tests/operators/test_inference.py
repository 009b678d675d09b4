"""Shape inference of one operator: forward, backward, and what disagrees."""

from __future__ import annotations

import pytest

from tofu import parse
from tofu.errors import ShapeError
from tofu.operators import get
from tofu.operators.shapes.shape_solver import PartialShape

RECURRENT = {"state_size": 2, "num_layers": 1, "mode": "rnn_tanh"}


@pytest.mark.parametrize(
    ("name", "attributes", "given", "expected"),
    [
        (
            "FullyConnected",
            {"num_hidden": 10},
            {"data": (5, 3, 4)},
            {"weight": (10, 12), "bias": (10,), "output_0": (5, 10)},
        ),
        (
            "FullyConnected",
            {"num_hidden": 10},
            {"data": (None, 7), "output_0": (5, 10)},
            {"data": (5, 7), "weight": (10, 7)},
        ),
        (
            "Convolution",
            {"kernel": (3, 3), "num_filter": 8, "num_group": 2, "pad": (1, 1)},
            {"data": (2, 4, 9, 9)},
            {"weight": (8, 2, 3, 3), "bias": (8,), "output_0": (2, 8, 9, 9)},
        ),
        (
            "Convolution",
            {"kernel": (3,), "num_filter": 8},
            {"data": (None, 4, 9)},
            {"weight": (8, 4, 3), "bias": (8,), "output_0": (None, 8, 7)},
        ),
        (
            "BatchNorm",
            {},
            {"data": (None, 3, None, 4)},
            {"gamma": (3,), "beta": (3,), "moving_mean": (3,), "output_0": (None, 3, None, 4)},
        ),
        ("elemwise_add", {}, {"lhs": (2, None), "rhs": (None, 3)}, {"output_0": (2, 3), "lhs": (2, 3)}),
        ("elemwise_add", {}, {"output_0": (2, 3)}, {"lhs": (2, 3), "rhs": (2, 3)}),
        ("Activation", {"act_type": "relu"}, {"output_0": (2, None)}, {"data": (2, None)}),
        ("Embedding", {"input_dim": 9, "output_dim": 4}, {"data": (2, 5)}, {"weight": (9, 4)}),
        ("SoftmaxOutput", {}, {"data": (2, 5)}, {"label": (2,), "output_0": (2, 5)}),
        ("SoftmaxOutput", {"multi_output": True}, {"data": (2, 5, 3)}, {"label": (2, 3)}),
        ("LinearRegressionOutput", {}, {"data": (2, 1)}, {"label": (2,)}),
        ("_zeros", {"shape": (0, 4)}, {}, {"output_0": (None, 4)}),
        ("_zeros", {"shape": (0, 4)}, {"output_0": (3, None)}, {"output_0": (3, 4)}),
        ("mean", {"axis": 1}, {"data": (2, None, 4)}, {"output_0": (2, 4)}),
        ("dot", {}, {"lhs": (2, 3), "rhs": (None, 4)}, {"rhs": (3, 4), "output_0": (2, 4)}),
        ("Concat", {"num_args": 2}, {"arg0": (2, 3)}, {"arg1": None, "output_0": None}),
        ("LeakyReLU", {"act_type": "prelu"}, {"data": (2, 3, 4)}, {"gamma": (3,)}),
        ("Dropout", {"p": 0.5}, {"data": (2, 3)}, {"output_0": (2, 3)}),
        (
            "FullyConnected",
            {"num_hidden": 10, "flatten": False, "no_bias": True},
            {"data": (5, 3, 4)},
            {"weight": (10, 4), "output_0": (5, 3, 10)},
        ),
        ("pick", {"axis": 1}, {"data": (2, 3, 4)}, {"index": (2, 4), "output_0": (2, 4)}),
        ("RNN", RECURRENT, {}, {"data": None, "parameters": None, "state": None}),
        ("RNN", RECURRENT, {"data": (4, None, 3)}, {"parameters": (14,), "state": (1, None, 2)}),
        ("GridGenerator", {"transform_type": "warp"}, {}, {"data": (None, 2, None, None)}),
        ("GridGenerator", {"transform_type": "warp"}, {"data": (2, None, 3, 4)}, {"data": (2, 2, 3, 4)}),
        ("BatchNorm", {}, {}, {"data": None, "gamma": None, "moving_var": None}),
        ("_arange", {"start": 5.0, "step": 2.0}, {}, {"output_0": (3,)}),
    ],
)
def test_shapes_that_follow(
    name: str,
    attributes: dict[str, object],
    given: dict[str, PartialShape],
    expected: dict[str, PartialShape],
) -> None:
    inferred = get(name).infer(attributes, given)
    assert {tensor: inferred[tensor] for tensor in expected} == expected


def test_a_users_operator_is_solved_through_its_bare_indices() -> None:
    operator = parse("def outer(a, b):\n    return lambda i, j, *k: a[i, *k] * b[j, *k]")
    inferred = operator.infer({}, {"a": (2, None), "output_0": (None, 5, 7)})
    assert inferred == {"a": (2, 7), "b": (5, 7), "output_0": (2, 5, 7)}


def test_stages_carry_extents_on() -> None:
    operator = parse(
        "def scaled(data, scale):\n"
        "    total = lambda i: Sum(lambda j: data[i, j])\n"
        "    return lambda i, j: data[i, j] * scale[j] / total[i]"
    )
    inferred = operator.infer({}, {"data": (2, None), "scale": (3,)})
    assert inferred == {"data": (2, 3), "scale": (3,), "output_0": (2, 3)}


def test_a_stated_extent_may_be_part_of_a_dimension() -> None:
    operator = parse("def head(data, *, count):\n    return lambda i=count, j: data[i, j]")
    assert operator.infer({"count": 2}, {"data": (5, None)})["output_0"] == (2, None)
    assert operator.infer({"count": 2}, {"data": (None, 4)})["data"] == (None, 4)


@pytest.mark.parametrize(
    ("name", "attributes", "given", "message"),
    [
        ("elemwise_add", {}, {"lhs": (2, 3), "rhs": (2, 4)}, "extent 3 .* but 4"),
        ("elemwise_add", {}, {"lhs": (2, None), "rhs": (3, None)}, "dimension 0 of lhs is 2 and .* rhs is 3"),
        (
            "elemwise_add",
            {},
            {"lhs": (2, None), "rhs": (None,)},
            "rhs has 1 dimension, but is read with 2 indices",
        ),
        (
            "FullyConnected",
            {"num_hidden": 4},
            {"data": (2, 3), "weight": (5, 3)},
            "of weight is 5.* 4 is needed",
        ),
        ("FullyConnected", {"num_hidden": 4}, {"data": (2,)}, r"data has 1 dimension, but must be batch"),
        ("exp", {}, {"data": (2, 3), "output_0": (2, 4)}, "output_0 is 4"),
        (
            "BatchNorm",
            {},
            {"data": (2, 3), "gamma": (3, 1)},
            r"gamma has shape \(3, 1\), but \(3,\) with 1 dimension is needed",
        ),
    ],
)
def test_disagreements_name_both_values(
    name: str, attributes: dict[str, object], given: dict[str, PartialShape], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        get(name).infer(attributes, given)


def test_fewer_dimensions_than_indices_before_a_star() -> None:
    operator = parse("def rows(a):\n    return lambda i, j, *k: a[i, j, *k]")
    with pytest.raises(ShapeError, match="rows: a has 1 dimension, but is read with 2 indices or more"):
        operator.infer({}, {"a": (None,)})


CONV1D = "lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])"


@pytest.mark.parametrize(
    ("tensors", "output", "given", "expected"),
    [
        (
            "a, b",
            "lambda i, j: Sum(lambda k: a[i, k] * b[k, j])",
            {"a": (None, 4), "output_0": (3, 5)},
            {"a": (3, 4), "b": (4, 5)},
        ),
        (
            "a, b",
            "lambda *i, *j: Sum(lambda k: a[*i, k] * b[k, *j])",
            {"a": (None, 4), "output_0": (3, 5, 6)},
            {"a": (3, 4), "b": (4, 5, 6)},
        ),
        (
            "data, filters",
            CONV1D,
            {"filters": (3, None, 3), "output_0": (4, 6, 10)},
            {"data": (4, 3, 12), "filters": (3, 6, 3)},
        ),
        (
            "data, filters",
            CONV1D,
            {"data": (4, 3, 12), "output_0": (4, 6, 10)},
            {"filters": (3, 6, 3)},
        ),
        (
            "data, filters",
            CONV1D,
            {"data": (None, 3, 12), "filters": (3, 6, 3)},
            {"output_0": (None, 6, 10)},
        ),
        (
            "a, w",
            "lambda x: Sum(lambda d: a[x + 2 * d + 1] * w[d])",
            {"a": (10,), "output_0": (5,)},
            {"w": (3,)},
        ),
        (
            "a, w",
            "lambda x: Sum(lambda d: a[x + 2 * d + 1] * w[d])",
            {"a": (10,), "output_0": (4,)},
            {"w": (None,)},
        ),
        ("a, w", "lambda x: Sum(lambda d: a[x - d + 2] * w[d])", {"output_0": (4,)}, {"a": (6,)}),
        ("a", "lambda x: a[2 * x]", {"a": (9,)}, {"output_0": (5,)}),
        ("a", "lambda x: a[2 * x]", {"output_0": (5,)}, {"a": (None,)}),
        ("a", "lambda x: a[x // 2]", {"output_0": (5,)}, {"a": (None,)}),
        ("a", "lambda x: a[x + 1] * a[x + 2]", {"output_0": (5,)}, {"a": (None,)}),
        ("a", "lambda x: a[x + 1] * a[x // 2]", {"output_0": (5,)}, {"a": (None,)}),
        ("a", "lambda x=2 * a.shape[0]: a[x // 2]", {"output_0": (8,)}, {"a": (4,)}),
        ("a", "lambda x=2 * a.shape[0]: a[x // 2]", {"output_0": (7,)}, {"a": (None,)}),
        ("a", "lambda x=a.shape[0] + 3: pad(a[x - 1], 0)", {"output_0": (8,)}, {"a": (5,)}),
        ("a", "lambda x=a.shape[0] + 3: pad(a[x - 1], 0)", {"output_0": (2,)}, {"a": (None,)}),
        ("a", "lambda x=a.shape[0] // 2: a[2 * x]", {"output_0": (4,)}, {"a": (None,)}),
        (
            "a, b",
            "lambda x=a.shape[0] + b.shape[0]: pad(a[x], 0) + pad(b[x - a.shape[0]], 0)",
            {"a": (3,), "output_0": (8,)},
            {"b": (5,)},
        ),
        (
            "a",
            "lambda x=a.shape[0] * a.shape[1]: a[x // a.shape[1], x % a.shape[1]]",
            {"a": (None, 4), "output_0": (12,)},
            {"a": (3, 4)},
        ),
        (
            "a",
            "lambda x=a.shape[0] * a.shape[1]: a[x // a.shape[1], x % a.shape[1]]",
            {"output_0": (12,)},
            {"a": (None, None)},
        ),
        ("a, b", "lambda x=-(2 - a.shape[0]), y: a[x + 1] * b[y]", {"a": (5,)}, {"output_0": (3, None)}),
        ("a, b", "lambda x=a.shape[0] % 4, y: a[x] * b[y]", {"a": (7,)}, {"output_0": (3, None)}),
        (
            "a, b",
            "lambda x=a.shape[0] ** 2, y: a[x // a.shape[0]] * b[y]",
            {"a": (3,)},
            {"output_0": (None, None), "b": (None,)},
        ),
        (
            "a, b",
            "lambda x=maximum(a.shape[0], 4), y: pad(a[x], 0) * b[y]",
            {"a": (3,)},
            {"output_0": (None, None), "b": (None,)},
        ),
    ],
)
def test_inputs_follow_from_outputs_where_indices_allow_it(
    tensors: str, output: str, given: dict[str, PartialShape], expected: dict[str, PartialShape]
) -> None:
    inferred = parse(f"def operator({tensors}):\n    return {output}").infer({}, given)
    assert {tensor: inferred[tensor] for tensor in expected} == expected


def test_windows_are_solved_through_stages_and_attributes() -> None:
    operator = parse(
        "def twice(data, *, size):\n"
        "    once = lambda x: Sum(lambda d=size: data[x + d])\n"
        "    return lambda x: Sum(lambda d=size: once[x + d])"
    )
    assert operator.infer({"size": 3}, {"output_0": (6,)})["data"] == (10,)
    assert operator.infer({"size": 3}, {"data": (10,)})["output_0"] == (6,)


def test_a_window_and_an_output_that_disagree() -> None:
    operator = parse(f"def conv1d(data, filters):\n    return {CONV1D}")
    given: dict[str, PartialShape] = {"data": (None, 3, 12), "filters": (3, 6, 3), "output_0": (4, 6, 9)}
    with pytest.raises(ShapeError, match=r"dimension 2 of output_0 is 9 in \(4, 6, 9\), but 10 is needed"):
        operator.infer({}, given)
