"""Descriptions that call operators of the library."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu.errors import DescriptionError
from tofu.operators.library import registry

MIX = "def mix(x, v):\n    return lambda b, d: Sum(lambda t: softmax(x[b, :])[t] * v[t, d])"
RNG = np.random.default_rng(4)

CALLED = 123
"""Operators of the library whose example can be written as a call."""


def test_a_call_is_written_out_and_has_strategies_and_gradients() -> None:
    operator = tofu.parse(MIX)
    assert [stage.name for stage in operator.written.stages] == ["softmax_peak", "softmax_total", "softmax"]
    x, v, head = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(3, 2))
    bound = operator.bind({"x": x.shape, "v": v.shape})
    weights = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(bound.compute({"x": x, "v": v})[0], weights @ v)
    assert [strategy.variable for strategy in bound.strategies] == ["b", "d", "t"]
    found = operator.gradients({"x": x, "v": v}, [head])
    back = head @ v.T
    np.testing.assert_allclose(
        found["x"], weights * (back - (back * weights).sum(1, keepdims=True)), atol=1e-12
    )


def test_every_operator_computes_the_same_when_it_is_called() -> None:
    called = [name for name in registry.names() if _same_when_called(name)]
    assert len(called) == CALLED


def _same_when_called(name: str) -> bool:
    """Return whether the example of an operator can be a call. If so, hold it against the operator."""
    operator = registry.get(name)
    example = operator.example
    if example is None or not all(isinstance(v, int | float | str) for v in example.attributes.values()):
        return False
    attributes = operator.attributes(example.attributes)
    tensors = example.tensors(np.random.default_rng(1))
    bound = operator.bind(example.shapes, **example.attributes)
    if len(bound.output_shapes) != 1 or not all(map(len, example.shapes.values())):
        return False
    names = operator.arguments(attributes)
    sliced = ", ".join(f"{each}[{', '.join(':' for _ in example.shapes[each])}]" for each in names)
    settings = "".join(f", {key}={_written(value)}" for key, value in example.attributes.items())
    indices = ", ".join(f"at{axis}" for axis in range(len(bound.output_shapes[0])))
    extents = ", ".join(f"at{axis}={extent}" for axis, extent in enumerate(bound.output_shapes[0]))
    call = f"called({sliced}{settings})[{indices or '()'}]"
    text = f"def caller({', '.join(names)}):\n    return lambda {extents}: {call}"
    try:
        caller = tofu.parse(text, operators={"called": operator})
    except DescriptionError:
        return False
    given = {each: tensors[each] for each in names}
    (found,) = caller.bind({each: example.shapes[each] for each in names}).compute(given)
    (expected,) = bound.compute(tensors)
    np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)
    return True


def _written(value: object) -> str:
    """Return the value of an attribute as a call has it."""
    return f'"{value}"' if isinstance(value, str) else str(int(value) if isinstance(value, bool) else value)


def test_what_the_text_declares_hides_the_library() -> None:
    text = "def f(x):\n    softmax = Opaque()\n    return lambda b, i: softmax(x[b, :])[i]"
    assert tofu.parse(text).written.opaques == ("softmax",)
    text = "def softmax(x):\n    return lambda i: x[i] + 1\n"
    text += "def f(x):\n    return lambda b, i: softmax(x[b, :])[i]"
    assert "x[b, i] + 1" in str(tofu.parse(text))


def test_given_operators_hide_the_library_and_may_be_of_it() -> None:
    text = str(MIX)
    given = tofu.parse(text, operators={"softmax": tofu.operators.get("log_softmax")})
    assert [stage.name for stage in given.written.stages][-1] == "log_softmax"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("softmax(x)[i]", "'softmax' needs slices"),
        ("softmax(x[i, :], axis=3)[j]", "axis 3 is outside"),
        ("softmax(x[i, :], axs=1)[j]", "did you mean 'axis'"),
        ("softmax(x[i, :], axis=x.shape[0])[j]", "must be known in the text"),
        ("softmax(x[i, :], x[j, :])[j]", "softmax expects 1 tensor, data, and found 2"),
        ("softmax(x[:, :], x)[i, j]", "'softmax' needs the number of dimensions of 'x'"),
        ("BatchNorm(x[:, :], x[0, :], x[0, :])[i, j]", "more than its description"),
        ("BlockGrad(x[:, :])[i, j]", "more than its description"),
        ("Reshape(x[:, :], shape=4)[i]", "depends on the extents"),
        ("softmax(x[i, j])", "unknown function 'softmax'"),
    ],
)
def test_calls_that_do_not_fit_are_refused(call: str, reason: str) -> None:
    with pytest.raises(DescriptionError, match=reason):
        tofu.parse(f"def f(x):\n    return lambda i, j: {call} + x[i, j]")


def test_a_string_that_is_not_a_word_has_one_complaint() -> None:
    with pytest.raises(DescriptionError) as caught:
        tofu.parse('def f(x):\n    return lambda i: sum(x[:, :], axis="(1,)")[i]')
    assert [each.message for each in caught.value.diagnostics] == ['"(1,)" is not a word']
