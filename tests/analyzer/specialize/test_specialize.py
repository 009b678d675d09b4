"""Attributes, stars and constants; and descriptions taken apart into their stages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.specialize.specialize import specialize
from tofu.analyzer.specialize.split_stages import split_stages
from tofu.errors import DescriptionError, OperatorError, ShapeError


def result(text, ranks, **attributes):
    """The body after `return `."""
    return tdl.format(specialize(tdl.parse(text), attributes, ranks)).split("return ")[1].strip()


def test_attributes_become_constants_and_fold():
    text = """
def pool(data, *, kernel, stride=(1, 2), scale=1):
    return lambda y, x: scale * Max(
        lambda dy=kernel[0], dx=kernel[1]: data[y * stride[0] + dy, x * stride[1] + dx + 0])
"""
    assert result(text, {"data": 2}, kernel=(2, 3)) == (
        "lambda y, x: Max(lambda dy=2, dx=3: data[y + dy, x * 2 + dx])"
    )


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("a[i + 0]", "a[i]"),
        ("a[0 + i * 1]", "a[i]"),
        ("a[i // 1]", "a[i]"),
        ("a[i + floor(5 / 2)]", "a[i + 2]"),
        ("a[i] * 1 + 0", "a[i]"),
        ("a[i] * 0", "a[i] * 0"),
        ("a[i] + 0.0", "a[i] + 0.0"),
        ("a[i] // 1", "a[i] // 1"),
        ("where(2 > 1, a[i], exp(a[i]))", "a[i]"),
        ("where(2 < 1, exp(a[i]), a[i])", "a[i]"),
        ("where(1 == 1 and a[i] > 0, a[i], 0)", "where(a[i] > 0, a[i], 0)"),
        ("where(1 != 1 and a[i] > 0, a[i], 2) + a[i]", "2 + a[i]"),
        ("where(not 0 or a[i] > 0, a[i], 0)", "a[i]"),
        ("a[i] * 2 ** 3", "a[i] * 8"),
        ("a[i] * 10 ** 10 ** 10", "a[i] * 10 ** 10000000000"),
        ("a[i] * (-1) ** 0.5", "a[i] * (-1) ** 0.5"),
        ("a[i] + 1 / (2 - 2)", "a[i] + 1 / 0"),
        ("-(-a[i])", "a[i]"),
        ("a[i] * -(2)", "a[i] * -2"),
        ("a[i] + (-(2) + 5)", "a[i] + 3"),
        ("a[i] - 0", "a[i]"),
        ("0 - a[i]", "0 - a[i]"),
        ("0 + a[i]", "a[i]"),
        ("a[i] ** 1", "a[i]"),
        ("1 * a[i]", "a[i]"),
        ("1 ** a[i]", "1 ** a[i]"),
        ("a[i] * 1.0", "a[i] * 1.0"),
        ("a[i] / 1", "a[i] / 1"),
        ("a[i] % 1", "a[i] % 1"),
        ("maximum(3, 2) + minimum(3, 2) * a[i]", "3 + 2 * a[i]"),
        ("maximum(2, 3) + minimum(2, 3) * a[i]", "3 + 2 * a[i]"),
        ("maximum(a[i], 2)", "maximum(a[i], 2)"),
        ("a[i + ceil(5 / 2)]", "a[i + 3]"),
        ("a[i + (floor(5 / 2) + 1)]", "a[i + 3]"),
        ("a[i + trunc(-5 / 2)]", "a[i + -2]"),
        ("a[i + round(7 / 4)]", "a[i + 2]"),
        ("a[i + floor(-5 / 2)]", "a[i + -3]"),
        ("a[(i + 0) // 1 * 2]", "a[i * 2]"),
        ("floor(2.5) * a[i]", "floor(2.5) * a[i]"),
        ("a[i] + 7 // 2 + 7 % 4", "a[i] + 3 + 3"),
        ("a[i] + 7 / 2", "a[i] + 3.5"),
        ("a[i] + (3 - 5)", "a[i] + -2"),
        ("where(3 >= 2 and 2 <= 2, a[i], 0)", "a[i]"),
        ("where(3 == 2 or 3 < 2, 0, a[i])", "a[i]"),
        ("where(a[i] > 0 and 1, a[i], 0)", "where(a[i] > 0, a[i], 0)"),
        ("where(1 and a[i], a[i], 0)", "where(1 and a[i], a[i], 0)"),
        ("where(0 or a[i] != 0, a[i], 0)", "where(a[i] != 0, a[i], 0)"),
        ("where(a[i] > 0 or 1, a[i], 0)", "a[i]"),
        ("where(a[i] > 0 or 0, a[i], 0)", "where(a[i] > 0, a[i], 0)"),
        ("where(a[i] > 0 and 0, a[i], 2) + a[i]", "2 + a[i]"),
        ("where(not 1, 2, a[i])", "a[i]"),
        ("where(1 and not a[i], 2, a[i])", "where(not a[i], 2, a[i])"),
        ("a[i] * (2305843009213693951 * 2)", "a[i] * 4611686018427387902"),
        ("a[i] * (2305843009213693952 * 2)", "a[i] * (2305843009213693952 * 2)"),
        ("where(0 or 1, a[i], 2)", "a[i]"),
        ("where(1 and 0, 2, a[i])", "a[i]"),
        ("where(0 and 1, 2, a[i])", "a[i]"),
        ("where(1 or 0, a[i], 2)", "a[i]"),
        ("a[i] * (2 ** 61 + 1)", "a[i] * 2305843009213693953"),
        ("a[i] * 2 ** 62", "a[i] * 2 ** 62"),
        ("a[i] * 2 ** 31 ** 1", "a[i] * 2147483648"),
        ("a[i] * 2 ** -1", "a[i] * 0.5"),
        ("a[i] + 10.0 ** 300 * 10.0 ** 300", "a[i] + 1e+300 * 1e+300"),
        ("a[i] * 0 ** -1", "a[i] * 0 ** -1"),
    ],
)
def test_folding(written, folded):
    assert result(f"def f(a):\n    return lambda i: {written}", {"a": 1}) == f"lambda i: {folded}"


def test_an_attribute_keeps_its_kind():
    text = "def f(a, *, k):\n    return lambda i: a[i] * k"
    assert result(text, {"a": 1}, k=2) == "lambda i: a[i] * 2"
    assert result(text, {"a": 1}, k=2.0) == "lambda i: a[i] * 2.0"
    assert result(text, {"a": 1}, k=True) == "lambda i: a[i]"


def test_equal_arguments_give_the_same_object():
    description = tdl.parse("def f(a, *, k=(1, 2)):\n    return lambda i: a[i] * k[0]")
    first = specialize(description, {"k": (3, 4)}, {"a": 1})
    assert specialize(description, {"k": [3, 4]}, {"a": 1, "unrelated": 5}) is first


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"strde": 2, "eps": 1}, "it has no attribute 'strde'; did you mean 'stride'?"),
        ({}, "attribute 'eps' needs a value"),
        ({"eps": "1"}, "'eps' is '1'; give a finite number"),
        ({"eps": float("nan")}, "give a finite number"),
        ({"eps": 1, "stride": 2}, r"'stride' is 2; .* needs a tuple of 2 values, such as \(2, 2\)"),
        ({"eps": 1, "stride": (1, 2, 3)}, "'stride' has 3 values in .* needs 2"),
        ({"eps": (1,)}, r"'eps' is \(1,\); the description needs one number"),
    ],
)
def test_bad_attributes(attributes, message):
    text = "def f(a, *, eps, stride=(1, 1)):\n    return lambda i=2: a[i * stride[0]] + eps + stride[1]"
    with pytest.raises(OperatorError, match=message):
        specialize(tdl.parse(text), attributes, {"a": 1})


@pytest.mark.parametrize(
    ("text", "ranks", "expanded"),
    [
        ("lambda *i: tanh(a[*i])", {"a": 0}, "lambda: tanh(a[()])"),
        ("lambda *i: tanh(a[*i])", {"a": 2}, "lambda i0, i1: tanh(a[i0, i1])"),
        ("lambda n, *i: a[n, *i]", {"a": 3}, "lambda n, i0, i1: a[n, i0, i1]"),
        ("lambda i0, *i: a[i0, *i] * i0", {"a": 2}, "lambda i0, i1: a[i0, i1] * i0"),
        ("lambda: Sum(lambda *k: a[*k])", {"a": 2}, "lambda: Sum(lambda k0, k1: a[k0, k1])"),
        ("lambda *i: a[*i, a.shape[-1] - 1]", {"a": 3}, "lambda i0, i1: a[i0, i1, a.shape[2] - 1]"),
        ("lambda *i: a[*i, *i]", {"a": 4}, "lambda i0, i1: a[i0, i1, i0, i1]"),
    ],
)
def test_stars(text, ranks, expanded):
    assert result(f"def f(a):\n    return {text}", ranks) == expanded


def test_stars_take_their_ranks_from_stages():
    text = "def f(a):\n    half = lambda *i: a[*i] / 2\n    return lambda n, *k: half[n, *k] + half[n, *k]"
    assert result(text, {"a": 3}) == "lambda n, k0, k1: half[n, k0, k1] + half[n, k0, k1]"


@pytest.mark.parametrize(
    ("text", "ranks", "message"),
    [
        ("lambda n, *i: a[n, *i]", {"a": 0}, "a has 0 dimensions, but is read with 1 index"),
        ("lambda *i: a[*i] + a[*i, 0]", {"a": 2}, "a has 2 dimensions, but is read with 3 indices"),
        ("lambda i: a[i, 0]", {"a": 3}, "a has 3 dimensions, but is read with 2 indices"),
        ("lambda *i: a[*i]", {}, r"how many variables '\*i'"),
        ("lambda *i: a[*i, *i]", {"a": 3}, "a has 3 dimensions, but is read with 0 indices"),
        ("lambda i: a[i, i]", {"a": 1}, "a has 1 dimension, but is read with 2 indices"),
    ],
)
def test_ranks_that_do_not_fit(text, ranks, message):
    with pytest.raises(ShapeError, match=message):
        specialize(tdl.parse(f"def f(a):\n    return {text}"), {}, ranks)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_does_not_exist(axis):
    text = f"def f(a):\n    return lambda *i: a[*i] / a.shape[{axis}]"
    with pytest.raises(DescriptionError, match=rf"there is no a.shape\[{axis}\]"):
        specialize(tdl.parse(text), {}, {"a": 2})


def test_stages_become_descriptions():
    text = """
def softmax(x, scale):
    top = lambda b: Max(lambda c: x[b, c])
    exps = lambda b, c: exp((x[b, c] - top[b]) * scale[0])
    total = lambda b: Sum(lambda c: exps[b, c])
    return lambda b, c: exps[b, c] / total[b]
"""
    parts = split_stages(tdl.parse(text))
    assert [(part.name, part.tensor_names) for part in parts] == [
        ("softmax_top", ("x",)),
        ("softmax_exps", ("x", "scale", "top")),
        ("softmax_total", ("exps",)),
        ("softmax", ("exps", "total")),
    ]
    assert all(tdl.parse(tdl.format(part)) == part for part in parts)


def test_a_star_of_one_tensor_says_what_is_left_of_another() -> None:
    text = "def f(a, b):\n    return lambda *i: Sum(lambda *k: a[*i, *k] * b[*k])"
    assert result(text, {"a": 3, "b": 1}) == "lambda i0, i1: Sum(lambda k0: a[i0, i1, k0] * b[k0])"


def test_stars_index_results_of_opaque_functions() -> None:
    text = "def f(a):\n    g = Opaque()\n    return lambda n, *i: g(a[n, :, :])[*i] + a[n, *i]"
    assert result(text, {"a": 3}) == "lambda n, i0, i1: g(a[n, :, :])[i0, i1] + a[n, i0, i1]"


def test_errors_about_ranks_name_the_operator() -> None:
    text = "def f(a):\n    half = lambda *i: a[*i] / 2\n    return lambda i: half[i]"
    with pytest.raises(ShapeError, match=r"^f: half has 2 dimensions, but is read with 1 index;"):
        specialize(tdl.parse(text), {}, {"a": 2})


def test_tuples_keep_the_kinds_of_their_numbers() -> None:
    text = "def f(a, *, k):\n    return lambda i: a[i] * k[0] + k[1]"
    assert result(text, {"a": 1}, k=(2, 3)) == "lambda i: a[i] * 2 + 3"
    assert result(text, {"a": 1}, k=(2.0, 3)) == "lambda i: a[i] * 2.0 + 3"
    with pytest.raises(OperatorError, match="needs a tuple of 2 values"):
        result(text, {"a": 1}, k=3)
    with pytest.raises(OperatorError, match=r"'k' has 1 values in \(3,\); the description needs 2"):
        result(text, {"a": 1}, k=(3,))


def test_unknown_attributes_are_told_what_there_is() -> None:
    plain, scaled = (tdl.parse(f"def f(a{p}):\n    return lambda i: a[i]{u}") for p, u in PARAMETERS)
    with pytest.raises(OperatorError, match=r"^f: it has no attribute 'axis'; it has none$"):
        specialize(plain, {"axis": 1}, {"a": 1})
    with pytest.raises(OperatorError, match=r"^f: it has no attribute 'axis'; it has scale, shift$"):
        specialize(scaled, {"axis": 1}, {"a": 1})
    with pytest.raises(OperatorError, match=r"^f: it has no attribute 'scal'; did you mean 'scale'?"):
        specialize(scaled, {"scal": 1}, {"a": 1})


PARAMETERS = [("", ""), (", *, scale, shift", " * scale + shift")]


def test_an_axis_is_told_which_there_are() -> None:
    text = "def f(a):\n    return lambda *i: a[*i] / a.shape[5]"
    with pytest.raises(DescriptionError, match=r"hint: axes run from 0 to 1$"):
        specialize(tdl.parse(text), {}, {"a": 2})
    with pytest.raises(DescriptionError, match=r"a has 1 dimension, so there is no a\.shape\[5\]"):
        specialize(tdl.parse(text), {}, {"a": 1})
    with pytest.raises(DescriptionError, match=r"a has 0 dimensions") as caught:
        specialize(tdl.parse(text), {}, {"a": 0})
    assert "hint" not in str(caught.value)


def test_reducers_of_ones_own_keep_the_kinds_of_their_numbers() -> None:
    text = "def f(a):\n    g = Reducer(lambda u, v: u + v + {}, 0)\n    return lambda: g(lambda i: a[i])"
    whole, real = (analyze(tdl.parse(text.format(zero))) for zero in ("0", "0.0"))
    assert whole is not real
    assert whole is analyze(tdl.parse(text.format("0")))


def test_axes_of_tensors_of_unknown_rank() -> None:
    text = "def f(a, b):\n    return lambda i: a[i] / b.shape[{}]"
    with pytest.raises(ShapeError, match=r"^f: the number of dimensions of b is not known$"):
        specialize(tdl.parse(text.format(-1)), {}, {"a": 1})
    assert result(text.format(2), {"a": 1}) == "lambda i: a[i] / b.shape[2]"
    assert result(text.format(0), {"a": 1}) == "lambda i: a[i] / b.shape[0]"
    assert result(text.format(-1), {"a": 1, "b": 3}) == "lambda i: a[i] / b.shape[2]"


def test_a_description_with_stages_is_not_analysed_as_one() -> None:
    text = "def f(a):\n    h = lambda i: a[i]\n    return lambda i: h[i]"
    with pytest.raises(OperatorError, match=r"^f has stages: split_stages makes a description of each$"):
        analyze(tdl.parse(text))


def test_errors_of_descriptions_without_text_name_the_operator() -> None:
    parsed = tdl.parse("def f(a):\n    return lambda i: pad(a[i - 1], 0)")
    with pytest.raises(
        DescriptionError, match=r"^f: the extent of index variable 'i' .*; state it: lambda i="
    ):
        analyze(replace(parsed, source=""))


def test_numbers_beyond_64_bits_are_no_attributes() -> None:
    description = tdl.parse("def f(a, *, scale):\n    return lambda i: a[i] * scale")
    for value in (10**400, -(10**5000)):
        with pytest.raises(OperatorError, match=r"^f: attribute 'scale' does not fit 64 bits"):
            specialize(description, {"scale": value}, {"a": 1})


@pytest.mark.parametrize("text", ["lambda i=3: a[floor(inf)] * i", "lambda i=ceil(-inf): a[i]"])
def test_infinity_is_no_index_and_no_extent(text: str) -> None:
    with pytest.raises(DescriptionError, match=r"f:2:\d+: an index is affine"):
        analyze(specialize(tdl.parse(f"def f(a):\n    return {text}"), {}, {"a": 1}))
