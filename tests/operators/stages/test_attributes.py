"""Attributes as Python values and as the text of graph files."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import OperatorError
from tofu.operators import get
from tofu.operators.stages.attributes import Attributes, check_attributes, flag, integer, number, shape


@pytest.mark.parametrize(
    ("text", "value"),
    [("(3, 3)", (3, 3)), ("[3,3]", (3, 3)), ("(3L, 3L)", (3, 3)), ("3", (3,)), ("()", ()), ((3, 3), (3, 3))],
)
def test_shapes(text: object, value: tuple[int, ...]) -> None:
    assert check_attributes("op", [shape("kernel")], {"kernel": text})["kernel"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("2e-05", 2e-5), ("1", 1), (0.5, 0.5), (np.float32(0.5), 0.5), (np.array(0.5), 0.5), (np.array(3), 3)],
)
def test_numbers(text: object, value: float) -> None:
    assert check_attributes("op", [number("eps")], {"eps": text})["eps"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("False", False), ("0", False), (1, True), (False, False), (np.bool_(True), True)],
)
def test_flags(text: object, value: bool) -> None:
    assert check_attributes("op", [flag("on", True)], {"on": text})["on"] is value


def test_defaults_are_filled_in_and_variables_settings_skipped() -> None:
    specs = [integer("axis", 1), integer("end", optional=True)]
    values = check_attributes("op", specs, {"__shape__": "(0, 3)"})
    assert dict(values) == {"axis": 1, "end": None}
    assert check_attributes("op", specs, {"end": "None"})["end"] is None


@pytest.mark.parametrize(
    ("spec", "value", "message"),
    [
        (integer("n"), "many", "attribute n is 'many', expected an integer"),
        (integer("n"), 1.5, "attribute n is 1.5, expected an integer"),
        (integer("n"), True, "attribute n is True, expected an integer"),
        (shape("k"), "(3, x)", r"attribute k is '\(3, x\)', expected a tuple of integers"),
        (number("e"), "__import__('os')", "expected a number"),
        (number("e"), "(" * 5000, "expected a number"),
        (number("e"), 10**400, "expected a number"),
        (number("e"), np.array([1.0, 2.0]), "expected a number"),
        (integer("n"), np.array([1, 2]), "expected an integer"),
        (integer("n", least=1), 0, "attribute n is 0, expected an integer of at least 1"),
        (flag("on", True), "yes", "expected True or False"),
        (flag("on", True), np.array([1, 2]), "expected True or False"),
    ],
)
def test_bad_values_are_named(spec: object, value: object, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        check_attributes("op", [spec], {spec.name: value})


def test_unknown_and_missing_names() -> None:
    operator = get("Convolution")
    with pytest.raises(OperatorError, match="Convolution has no attribute 'kernal'; did you mean 'kernel'"):
        operator.attributes({"kernal": (3, 3)})
    with pytest.raises(OperatorError, match=r"needs a value for kernel \(a tuple of integers\), num_filter"):
        operator.attributes({})
    with pytest.raises(OperatorError, match="'relu6', expected one of relu, sigmoid, tanh, softrelu"):
        get("Activation").attributes({"act_type": "relu6"})
    with pytest.raises(OperatorError, match="exp has no attribute 'axis'; it has no attributes"):
        get("exp").attributes({"axis": 1})


def test_settings_that_choose_an_implementation_are_accepted() -> None:
    text = {"kernel": "(3, 3)", "num_filter": "8", "workspace": "256", "cudnn_tune": "off"}
    values = get("Convolution").attributes(text)
    assert values.shape("kernel") == (3, 3)


def test_equal_attributes_hash_alike_and_types_keep_apart() -> None:
    specs = [number("scale", 1.0)]
    one, other = (check_attributes("op", specs, {"scale": text}) for text in ("2", 2))
    assert one == other
    assert hash(one) == hash(other)
    assert hash(Attributes({"x": 1})) != hash(Attributes({"x": True}))
    assert Attributes({"x": 1}) != Attributes({"x": True})
    assert check_attributes("op", specs, one) is one
