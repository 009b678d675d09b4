"""Settings of nodes: given directly, by scope, and inherited by variables."""

from __future__ import annotations

import pytest

from tofu import sym
from tofu.dataflow.settings import SettingsScope
from tofu.errors import GraphError, OperatorError


def test_scopes_nest_and_what_is_given_goes_first() -> None:
    with sym.NameScope(), SettingsScope(ctx_group="a", __lr_mult__="2"):
        with SettingsScope(ctx_group="b"):
            inner = sym.Variable("inner", lr_mult=3)
        outer = sym.Variable("outer", attr={"mood": "calm"})
        after = SettingsScope().get({"x": "y"})
    plain = sym.Variable("plain")
    assert inner.list_attr() == {"__ctx_group__": "b", "__lr_mult__": "3"}
    assert outer.list_attr() == {"__ctx_group__": "a", "__lr_mult__": "2", "__mood__": "calm"}
    assert (outer.attr("mood"), outer.attr("__mood__"), outer.attr("none")) == ("calm", "calm", None)
    assert plain.list_attr() == {}
    assert after == {"x": "y"}


def test_a_scope_may_be_entered_inside_itself() -> None:
    names, settings = sym.NameScope(), SettingsScope(ctx_group="a")
    with names, settings:
        with SettingsScope(__lr_mult__="2"), names, settings:
            inner = sym.zeros((2,))
        outer = sym.zeros((2,))
    assert (inner.name, inner.list_attr()["__lr_mult__"], inner.attr("ctx_group")) == ("_zeros0", "2", "a")
    assert (outer.name, outer.attr("__lr_mult__"), outer.attr("ctx_group")) == ("_zeros1", None, "a")


def test_variables_made_for_an_operator_inherit() -> None:
    with sym.NameScope():
        settings = {"lr_mult": "2", "weight_lr_mult": "5"}
        made = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc", attr=settings, wd_mult=0)
    texts = made.attr_dict()
    assert texts["fc_bias"]["__lr_mult__"] == "2"
    assert texts["fc_weight"]["__lr_mult__"] == "5"
    assert texts["fc_weight"]["__wd_mult__"] == texts["fc"]["__wd_mult__"] == "0"
    assert texts["fc_weight"]["num_hidden"] == "3"


def test_settings_are_text_and_unknown_ones_of_variables_are_errors() -> None:
    with pytest.raises(GraphError, match=r"setting lr_mult is 2; settings are text, such as '2'"):
        SettingsScope(lr_mult=2)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"no setting 'shpe'; did you mean 'shape'"):
        sym.Variable("x", shpe=(2,))
    with pytest.raises(OperatorError, match=r"has no attribute 'num_hiden'; did you mean 'num_hidden'"):
        sym.FullyConnected(sym.Variable("x"), num_hiden=2)
