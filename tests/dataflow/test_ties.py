from __future__ import annotations

import json

import pytest

from tofu import models
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.settings import TIE
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.ties import find_ties
from tofu.dataflow.training import training_graph


def without_ties(symbol: Symbol) -> Symbol:
    """The symbol as a graph file that states no ties."""
    graph = json.loads(symbol.tojson())
    for node in graph["nodes"]:
        node.get("attr", {}).pop(TIE, None)
    return sym.load_json(json.dumps(graph))


def classes(graph: Graph) -> set[frozenset[str]]:
    """The operations that share a strategy, by name."""
    groups: dict[object, set[str]] = {}
    for operation in graph.operations:
        key = (operation.tie, id(operation.bound)) if operation.tie else operation.index
        groups.setdefault(key, set()).add(operation.name)
    return {frozenset(group) for group in groups.values()}


def tied(symbol: Symbol, *data: str) -> dict[str, str]:
    return {node.name: tie for node, tie in find_ties(symbol.nodes, data).items()}


@pytest.mark.parametrize(
    ("name", "options"),
    [("rnn-2-8", {"steps": 4}), ("lstm", {"steps": 5, "hidden": 8}), ("rnn-1-8", {"steps": 2})],
)
def test_time_steps_are_found_as_the_cells_state_them(name: str, options: dict[str, int]) -> None:
    model = models.get(name, batch=8, **options)
    found = training_graph(without_ties(model.symbol), model.shapes)
    assert classes(found) == classes(model.training_graph())
    assert any(len(group) > 1 for group in classes(found))


def chain() -> Symbol:
    """Three products with one weight, each but the last followed by an activation and a sum."""
    with NameScope():
        state, weight = sym.Variable("x"), sym.Variable("weight")
        for time in range(3):
            state = sym.FullyConnected(state, weight, num_hidden=4, no_bias=True, name=f"product{time}")
            if time < 2:
                state = sym.Activation(state, act_type="tanh", name=f"tanh{time}")
                state = sym.elemwise_add(state, sym.Variable(f"y{time}"), name=f"sum{time}")
    return state


def test_copies_share_parameters_and_so_do_their_only_users() -> None:
    assert tied(chain(), "x", "y0", "y1") == {
        **dict.fromkeys(("product0", "product1", "product2"), "copies(product0)"),
        **dict.fromkeys(("tanh0", "tanh1"), "copies(tanh0)"),
        **dict.fromkeys(("sum0", "sum1"), "copies(sum0)"),
    }


def test_reading_the_same_data_makes_no_copies() -> None:
    with NameScope():
        data = sym.Variable("data")
        both = sym.Activation(data, act_type="tanh", name="a") + sym.Activation(
            data, act_type="tanh", name="b"
        )
    assert tied(both, "data") == {}
    assert set(tied(both)) == {"a", "b"}


def test_other_attributes_make_other_operators() -> None:
    with NameScope():
        data, weight = sym.Variable("data"), sym.Variable("weight")
        rows = sym.FullyConnected(data, weight, num_hidden=4, no_bias=True, name="rows")
        flat = sym.FullyConnected(data, weight, num_hidden=4, no_bias=True, flatten=False, name="flat")
    assert tied(sym.Group([rows, flat]), "data") == {}


def test_users_of_which_a_copy_has_two_alike_stay_apart() -> None:
    with NameScope():
        weight = sym.Variable("weight")
        outputs = []
        for time in range(2):
            product = sym.FullyConnected(
                sym.Variable(f"x{time}"), weight, num_hidden=4, no_bias=True, name=f"p{time}"
            )
            outputs += [sym.Activation(product, act_type="tanh", name=f"tanh{time}{copy}") for copy in "ab"]
    assert set(tied(sym.Group(outputs), "x0", "x1")) == {"p0", "p1"}


def test_a_stated_tie_stays() -> None:
    with NameScope():
        weight = sym.Variable("weight")
        products = [
            sym.FullyConnected(
                sym.Variable(f"x{time}"), weight, num_hidden=4, no_bias=True, name=f"p{time}", attr=attr
            )
            for time, attr in enumerate(({TIE: "mine"}, {}, {}))
        ]
    assert tied(sym.Group(products), "x0", "x1", "x2") == {
        "p0": "mine",
        "p1": "copies(p1)",
        "p2": "copies(p1)",
    }
