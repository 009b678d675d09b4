"""Composition of symbols with symbols."""

from __future__ import annotations

import pytest

from tofu import sym
from tofu.errors import GraphError


def block() -> sym.Symbol:
    with sym.NameScope():
        first = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="first")
        return sym.Activation(first, act_type="relu", name="act")


def test_arguments_are_replaced_by_name_and_by_position() -> None:
    with sym.NameScope():
        below = sym.Variable("pixels") * 2
    one = block()(data=below)
    assert one.list_arguments() == ["pixels", "first_weight", "first_bias"]
    assert block()(below).tojson() == one.tojson()
    assert one.infer_shape(pixels=(3, 5))[1] == [(3, 4)]
    assert block()(data=below, name="other").list_outputs() == ["other_output"]


def test_an_operator_without_inputs_can_be_completed_later() -> None:
    with sym.NameScope():
        late = sym.FullyConnected(num_hidden=2, name="late")
        assert late.list_arguments() == ["late_data", "late_weight", "late_bias"]
        assert late(late_data=sym.Variable("x")).list_arguments() == ["x", "late_weight", "late_bias"]


def test_the_original_stays() -> None:
    original = block()
    original(data=sym.Variable("other"))
    assert original.list_arguments()[0] == "data"


def test_what_cannot_be_composed() -> None:
    x = sym.Variable("x")
    with pytest.raises(GraphError, match="no argument 'dat'; did you mean 'data'"):
        block()(dat=x)
    with pytest.raises(GraphError, match="by position or by name"):
        block()(x, first_bias=x)
    with pytest.raises(GraphError, match="4 symbols are given, but there are 3 arguments"):
        block()(x, x, x, x)
    with pytest.raises(GraphError, match="expected a symbol of one output"):
        block()(data=sym.Group([x, x]))
    with pytest.raises(GraphError, match="two nodes of the graph are named 'first_bias'"):
        block()(data=sym.Variable("first_bias"))
    with pytest.raises(GraphError, match="name= renames"):
        x(name="y")
