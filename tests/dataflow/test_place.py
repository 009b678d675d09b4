"""Messages name the line of the user's script."""

from __future__ import annotations

import pytest

import tofu.mx as mx
from tofu import sym
from tofu.dataflow.place import Place
from tofu.errors import DescriptionError, GraphError, OperatorError, ShapeError


def test_a_shape_error_shows_the_line_and_the_producers() -> None:
    with mx.name.NameManager():
        left = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="left")
        right = mx.sym.FullyConnected(mx.sym.Variable("x2"), num_hidden=4, name="right")
        total = left + right  # here they meet
    with pytest.raises(ShapeError) as caught:
        total.infer_shape(x=(2, 5), x2=(2, 5))
    message = str(caught.value)
    assert "test_place.py, line " in message
    assert "total = left + right # here they meet" in message
    assert "'left_output' (from FullyConnected) of shape (2, 3)" in message
    assert "'right_output' (from FullyConnected) of shape (2, 4)" in message


def test_an_error_of_composition_shows_the_line() -> None:
    with pytest.raises(
        OperatorError, match=r"did you mean 'act_type'\?\n  at test_place.py, line \d+: sym.Act"
    ):
        sym.Activation(sym.Variable("x"), act_typ="relu")


def test_an_error_of_a_description_shows_the_line() -> None:
    with sym.NameScope():
        net = sym.tile(sym.Variable("x"), reps=(10**20,))
    with pytest.raises(
        DescriptionError, match=r"(?s)does not fit.*in tile 'tile0', made at test_place.py, line"
    ):
        net.infer_shape(x=(2,))


def test_two_of_a_name_show_both_lines() -> None:
    with sym.NameScope():
        first = sym.Variable("same")
        second = sym.Variable("same")
        with pytest.raises(GraphError) as caught:
            sym.Group([first, second])
    assert str(caught.value).count("test_place.py, line ") == 2


def test_a_line_that_cannot_be_read_is_left_out() -> None:
    assert str(Place("<stdin>", 3)) == "<stdin>, line 3"
