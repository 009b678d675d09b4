"""Descriptions that call others: what they are written out to, and that they compute the same."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

import tofu
from tests.analyzer.random_expressions import random_expression
from tests.hangs import no_hang
from tofu import tdl
from tofu.analyzer.bind.staged_bound import bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import DescriptionError, OperatorError, ShapeError

SOFTMAX = """
def softmax(x):
    top = Max(lambda k: x[k])
    e = lambda k: exp(x[k] - top)
    return lambda j: e[j] / Sum(lambda k: e[k])
"""
RNG = np.random.default_rng(3)


def written_out(text: str) -> list[str]:
    return [line.strip() for line in tdl.format(tdl.parse(text)).splitlines()[1:]]


def softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def test_stages_get_the_variables_of_the_slice() -> None:
    assert written_out(SOFTMAX + "def f(s):\n    return lambda b, j: softmax(s[b, :])[j]") == [
        "softmax_top = lambda b: Max(lambda k: s[b, k])",
        "softmax_e = lambda b, k: exp(s[b, k] - softmax_top[b])",
        "softmax = lambda b, j: softmax_e[b, j] / Sum(lambda k: softmax_e[b, k])",
        "return lambda b, j: softmax[b, j]",
    ]


def test_equal_calls_share_their_stages() -> None:
    lines = written_out(SOFTMAX + "def f(s):\n    return lambda i, j: softmax(s)[i] - softmax(s)[j]")
    assert lines[-1] == "return lambda i, j: softmax[i] - softmax[j]"
    assert len(lines) == 4


def test_names_of_the_caller_keep_their_meaning() -> None:
    text = "def dot(a, b):\n    return lambda: Sum(lambda k: a[k] * b[k])\n"
    text += "def f(k, dot_2):\n    dot = lambda i: k[i, 0]\n"
    text += "    return lambda b, m: dot(k[b, :], dot_2[m, :])[()] + dot[b]"
    assert written_out(text) == [
        "dot = lambda i: k[i, 0]",
        "dot_3 = lambda b, m: Sum(lambda k_2: k[b, k_2] * dot_2[m, k_2])",
        "return lambda b, m: dot_3[b, m] + dot[b]",
    ]


def test_attributes_and_extents_are_those_of_the_call() -> None:
    text = "def mean(x, *, shift=0):\n    return lambda *i: Sum(lambda k: x[*i, k]) / x.shape[-1] + shift\n"
    text += "def f(s, *, n):\n    size = 2 * n\n    return lambda b, c: mean(s[:, b, :], shift=size)[c]"
    with pytest.raises(tofu.DescriptionError, match="the ':' of its slice are apart"):
        tdl.parse(text)
    assert written_out(text.replace("s[:, b, :]", "s[b, :, :]")) == [
        "mean = lambda b, *i: Sum(lambda k: s[b, *i, k]) / s.shape[2] + 2 * n",
        "return lambda b, c: mean[b, c]",
    ]


def test_an_extent_is_stated_if_a_stage_reads_the_slice_only_shifted() -> None:
    text = "def shifted(x):\n    return lambda i=x.shape[0]: pad(x[i - 1], 0)\n"
    text += "def f(s):\n    return lambda b, i: shifted(s[b, :])[i]"
    assert written_out(text)[0] == "shifted = lambda b=s.shape[0], i=s.shape[1]: pad(s[b, i - 1], 0)"


def test_attention_from_a_called_softmax_has_strategies_and_gradients() -> None:
    operator = tofu.parse(
        SOFTMAX + "def mix(s, v):\n    return lambda b, d: Sum(lambda t: softmax(s[b, :])[t] * v[t, d])"
    )
    scores, values = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))
    (result,) = operator.bind({"s": (3, 4), "v": (4, 2)}).compute({"s": scores, "v": values})
    np.testing.assert_allclose(result, softmax(scores) @ values)
    shapes = {"s": (3, 4), "v": (4, 2)}
    stages = operator.stages({}, shapes)
    assert stages[0].produces == ("softmax_top",)
    assert [len(stage.adjoint(stage.inputs[0])) > 0 for stage in stages] == [True] * len(stages)
    tofu.testing.assert_partitionable(operator, shapes=shapes)


def test_operators_are_given_by_name() -> None:
    given = tofu.parse(SOFTMAX)
    operator = tofu.parse("def f(s):\n    return lambda i: norm(s)[i]", operators={"norm": given})
    (result,) = operator.bind({"s": (3,)}).compute({"s": np.arange(3.0)})
    np.testing.assert_allclose(result, softmax(np.arange(3.0)))
    with pytest.raises(OperatorError, match="norm=3 cannot be called"):
        tofu.parse("def f(s):\n    return lambda i: norm(s)[i]", operators={"norm": 3})  # type: ignore[dict-item]


def test_a_text_of_several_descriptions_gives_the_last_or_the_one_named() -> None:
    text = SOFTMAX + "def twice(x):\n    return lambda i: 2 * softmax(x)[i]\n"
    assert tofu.parse(text).name == "twice"
    assert tofu.parse(text, name="softmax").name == "softmax"
    with pytest.raises(OperatorError, match="<string> has no description 'twise'; did you mean 'twice'"):
        tofu.parse(text, name="twise")


def test_a_call_of_a_wrong_description_gives_the_complaints_about_that_one() -> None:
    text = (
        "def exps(x):\n    return lambda j: exp(x[j] - Max(lambda x: x[k]))\n"
        "def uses(q):\n    return lambda j: exps(q)[j]\n"
        "def through(q):\n    return lambda j: uses(q)[j]\n"
        "def alone(q):\n    return lambda j: q[i]\n"
    )
    with pytest.raises(DescriptionError) as caught:
        tofu.parse(text)
    said = [line for line in str(caught.value).splitlines() if line.startswith("<string>:")]
    assert said == [
        "<string>:2:44: variable 'x' shadows the tensor",
        "<string>:2:49: unknown name 'k'",
        "<string>:8:24: unknown name 'i'",
    ]


def test_descriptions_that_are_too_long_together_are_refused_at_once() -> None:
    # each is within the limits, but has 40 stages when its calls are written out
    chain = ["def f0(x):\n    return lambda i: x[i] * 2"]
    chain += [f"def f{d}(x):\n    return lambda i: f{d - 1}(x)[i] + 1" for d in range(1, 40)]
    assert tofu.parse("\n".join(chain)).name == "f39"
    wide = [f"def g{d}(x):\n    return lambda i: f39(x)[i] + {d}" for d in range(300)]
    with no_hang(), pytest.raises(DescriptionError, match="with calls written out, all descriptions up to"):
        tofu.parse("\n".join((*chain, *wide)))


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_with_calls_mean_what_they_mean_without(seed: int) -> None:
    """A call of a description that copies its tensor takes the place of some elements."""
    random = Random(seed)
    text, shapes = random_expression(random)

    def call(match: re.Match[str]) -> str:
        tensor, indices = match[1], match[2].split(", ")
        if tensor not in shapes or random.random() < 0.5:
            return match[0]
        if len(indices) == 2 and re.fullmatch("[a-z]", indices[0]) and random.random() < 0.6:
            return f"copy({tensor}[{indices[0]}, :])[{indices[1]}]"
        return f"copy({tensor})[{match[2]}]"

    called = "def copy(x):\n    return lambda *i: x[*i]\n" + re.sub(r"\b(\w)\[([^\[\]]*)\]", call, text)
    tensors = {name: np.random.default_rng(seed).uniform(0.5, 1.5, shape) for name, shape in shapes.items()}
    ranks = {name: len(shape) for name, shape in shapes.items()}
    try:
        expected = bind(specialize(tdl.parse(text), {}, ranks), shapes).interpret(tensors)
    except ShapeError:
        with pytest.raises(ShapeError):
            bind(specialize(tdl.parse(called), {}, ranks), shapes)
        return
    found = tofu.parse(called).bind(shapes)
    for computed, theirs in zip(found.compute(tensors), expected, strict=True):
        np.testing.assert_allclose(computed, theirs, rtol=1e-9)
