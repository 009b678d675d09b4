"""Types of elements, inferred in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import sym
from tofu.errors import GraphError


def test_types_follow_forwards_backwards_and_through_casts() -> None:
    with sym.NameScope():
        half = sym.Cast(sym.Variable("data"), dtype="float16", name="half")
        fc = sym.FullyConnected(half, num_hidden=3, name="fc")
        out = sym.SoftmaxOutput(sym.Cast(fc, dtype=np.float32), name="softmax")
    arguments, outputs, auxiliary = out.infer_type(data=np.uint8)
    assert dict(zip(out.list_arguments(), arguments, strict=True)) == {
        "data": np.uint8,
        "fc_weight": np.float16,
        "fc_bias": np.float16,
        "softmax_label": np.float32,
    }
    assert (outputs, auxiliary) == ([np.float32], [])


def test_types_of_variables_and_defaults() -> None:
    with sym.NameScope():
        total = sym.Variable("a", dtype="float64") + sym.Variable("b")
        states = sym.BatchNorm(sym.Variable("x"), name="bn")
    assert total.infer_type() == ([np.float64, np.float64], [np.float64], [])
    assert states.infer_type()[2] == [np.float32, np.float32]
    old = sym.load_json(total.tojson().replace('"float64"', '"1"'))
    assert old.infer_type()[1] == [np.float64]


def test_types_that_disagree() -> None:
    with sym.NameScope():
        total = sym.elemwise_add(sym.Variable("a"), sym.Variable("b"), name="total")
    with pytest.raises(GraphError, match=r"'total' needs one type, but 'a' is float16 and 'b' is float32"):
        total.infer_type(a="float16", b="float32")
    with pytest.raises(GraphError, match=r"'c', which is not an argument"):
        total.infer_type(c="float32")
    with pytest.raises(GraphError, match="3 types were given, but there are 2 arguments"):
        total.infer_type("float32", "float32", "float32")
    with pytest.raises(GraphError, match=r"the type of 'a' is 'flot', expected one such as float32"):
        total.infer_type(a="flot")
