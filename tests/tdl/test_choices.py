"""Choices: attributes whose values are words, resolved when a description is bound."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu import tdl
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import OperatorError
from tofu.tdl.choices import choices_of, chosen

BORDER = """
def border(x, *, width=1, mode="edge"):
    return lambda i=x.shape[0] + 2 * width: (
        x[minimum(maximum(i - width, 0), x.shape[0] - 1)] if mode == "edge"
        else x[(i - width) % x.shape[0]] if mode == "wrap"
        else pad(x[i - width], 0) if mode != "mean"
        else Sum(lambda k: x[k]) / x.shape[0] + 1 if mode != "constant" else 0)
"""
X = np.array([1.0, 2, 3, 6])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("edge", [1, 1, 2, 3, 6, 6]),
        ("wrap", [6, 1, 2, 3, 6, 1]),
        ("constant", [0, 1, 2, 3, 6, 0]),
        ("mean", [4, 4, 4, 4, 4, 4]),
    ],
)
def test_a_choice_decides_what_is_computed(mode: str, expected: list[float]) -> None:
    bound = tofu.parse(BORDER).bind({"x": (4,)}, mode=mode)
    np.testing.assert_array_equal(bound.compute({"x": X})[0], expected)
    np.testing.assert_array_equal(bound.interpret({"x": X})[0], expected)


def test_the_words_are_those_of_the_text() -> None:
    assert choices_of(tdl.parse(BORDER)) == {"mode": ("edge", "wrap", "mean", "constant")}


@pytest.mark.parametrize("value", ["Edge", "1", 1, ("edge",)])
def test_other_values_are_refused_with_the_list(value: object) -> None:
    with pytest.raises(
        OperatorError,
        match=f"mode is {value!r}, expected one of edge, wrap, mean, constant".replace("(", r"\(").replace(
            ")", r"\)"
        ),
    ):
        tofu.parse(BORDER).bind({"x": (4,)}, mode=value)
    with pytest.raises(OperatorError, match="it is one of edge, wrap, mean, constant"):
        specialize(tdl.parse(BORDER), {"mode": value}, {"x": 1})


def test_text_and_equality() -> None:
    operator = tofu.parse(BORDER)
    assert tofu.parse(str(operator)) == operator
    assert tofu.parse(BORDER.replace('"wrap"', '"reflect"')) != operator


def test_stages_follow_from_the_choice() -> None:
    operator = tofu.parse(BORDER)
    counts = {mode: len(operator.stages({"mode": mode}, {"x": (4,)})) for mode in ("edge", "mean")}
    assert counts == {"edge": 1, "mean": 2}


def test_reducers_of_a_choice_keep_their_strategies() -> None:
    operator = tofu.parse("""
def pool(a, *, by="sum"):
    return lambda i: Max(lambda k: a[i, k]) if by == "max" else Sum(lambda k: a[i, k])
""")
    reducers = [
        [(split.variable, str(split.reducer)) for split in operator.bind({"a": (4, 6)}, by=by).strategies[1:]]
        for by in ("sum", "max")
    ]
    assert reducers == [[("k", "Sum")], [("k", "Max")]]


def test_stages_that_are_not_chosen_are_gone() -> None:
    text = """
def f(a, *, mode="one"):
    first = lambda i: exp(a[i])
    second = lambda i: 2 * first[i]
    third = lambda i: 3 * a[i]
    return lambda i: (
        second[i] if mode == "one" else third[i] if mode == "two" else a[i] if mode != "three" else 0)
"""
    found = {
        word: [s.name for s in chosen(tdl.parse(text), {"mode": word}).stages]
        for word in ("one", "two", "three")
    }
    assert found == {"one": ["first", "second"], "two": ["third"], "three": []}


@pytest.mark.parametrize(("mode", "extent"), [("same", 6), ("valid", 4)])
def test_extents_and_indices_by_choice(mode: str, extent: int) -> None:
    operator = tofu.parse("""
def window(a, w, *, mode="valid"):
    before = 1 if mode == "same" else 0
    lost = 0 if mode == "same" else w.shape[0] - 1
    return lambda i=a.shape[0] - lost: Sum(lambda d: pad(a[i + d - before], 0) * w[d])
""")
    a, w = np.arange(6.0), np.array([1.0, 10, 100])
    bound = operator.bind({"a": (6,), "w": (3,)}, mode=mode)
    assert bound.extents["i"] == extent
    np.testing.assert_allclose(bound.compute({"a": a, "w": w})[0], np.correlate(a, w, mode))


def test_gradients_by_choice() -> None:
    operator = tofu.parse(BORDER)
    found = {
        mode: operator.gradients({"x": X}, [np.ones(6)], mode=mode)["x"].tolist()
        for mode in ("edge", "wrap", "constant", "mean")
    }
    assert found == {"edge": [2, 1, 1, 2], "wrap": [2, 1, 1, 2], "constant": [1] * 4, "mean": [1.5] * 4}


def test_calls_give_words() -> None:
    text = (
        BORDER
        + """
def both(x):
    return lambda i=6: border(x, mode="wrap")[i] - border(x)[i] + border(x, mode="wrap")[i]
"""
    )
    operator = tofu.parse(text)
    assert len(operator.written.stages) == 2
    (result,) = operator.bind({"x": (4,)}).compute({"x": X})
    np.testing.assert_array_equal(result, [11, 1, 2, 3, 6, -4])


def test_networks_take_words() -> None:
    net = tofu.sym.apply(tofu.parse(BORDER), tofu.sym.Variable("x"), mode="wrap", name="border")
    assert net.infer_shape(x=(4,))[1] == [(6,)]
    with pytest.raises(OperatorError, match="expected one of"):
        tofu.sym.apply(tofu.parse(BORDER), tofu.sym.Variable("x"), mode="warp", name="border")
