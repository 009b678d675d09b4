from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tofu import GraphError, OperatorError
from tofu.dataflow import sym
from tofu.dataflow.naming import NameScope
from tofu.dataflow.symbol.compose import apply
from tofu.dataflow.training import gradient_graph
from tofu.operators.declare import parse

MXNET_FILE: dict[str, Any] = {
    "nodes": [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "bn_gamma", "attr": {"fix_gamma": "True"}, "inputs": []},
        {"op": "null", "name": "bn_beta", "attr": {"fix_gamma": "True"}, "inputs": []},
        {"op": "null", "name": "bn_moving_mean", "inputs": []},
        {"op": "null", "name": "bn_moving_var", "inputs": []},
        {
            "op": "BatchNorm",
            "name": "bn",
            "attr": {"eps": "2e-05", "fix_gamma": "True", "momentum": "0.9"},
            "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]],
        },
        {"op": "null", "name": "conv_weight", "inputs": []},
        {
            "op": "Convolution",
            "name": "conv",
            "attr": {
                "kernel": "(3, 3)",
                "no_bias": "True",
                "num_filter": "4",
                "pad": "(1, 1)",
                "workspace": "256",
            },
            "inputs": [[5, 0, 0], [6, 0, 0]],
        },
        {"op": "SliceChannel", "name": "split0", "attr": {"num_outputs": "2"}, "inputs": [[7, 0, 0]]},
        {"op": "elemwise_add", "name": "_plus0", "inputs": [[8, 1, 0], [8, 0, 0]]},
    ],
    "arg_nodes": [0, 1, 2, 3, 4, 6],
    "heads": [[9, 0, 0]],
    "attrs": {"mxnet_version": ["int", 1100]},
}


def changed(path: list[Any], value: Any) -> str:
    graph = json.loads(json.dumps(MXNET_FILE))
    place = graph
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(graph)


def test_a_file_of_mxnet_is_read() -> None:
    net = sym.load_json(json.dumps(MXNET_FILE))
    assert net.list_arguments() == ["data", "bn_gamma", "bn_beta", "conv_weight"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.get_internals()["conv_output"].attr("kernel") == "(3, 3)"
    arguments, outputs, auxiliary = net.infer_shape(data=(2, 3, 8, 8))
    assert arguments == [(2, 3, 8, 8), (3,), (3,), (4, 3, 3, 3)]
    assert outputs == [(2, 2, 8, 8)]
    assert auxiliary == [(3,), (3,)]


def test_what_was_read_is_written_again_exactly() -> None:
    written = json.loads(sym.load_json(json.dumps(MXNET_FILE)).tojson())
    rows = written.pop("node_row_ptr")
    assert written == MXNET_FILE
    assert rows == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]


@pytest.mark.parametrize("key", ["attrs", "param"])
def test_other_versions_write_attributes_under_other_keys(key: str) -> None:
    graph = json.loads(json.dumps(MXNET_FILE))
    for node in graph["nodes"]:
        if "attr" in node:
            node[key] = node.pop("attr")
        node["inputs"] = [reference[:2] for reference in node["inputs"]]
    net = sym.load_json(json.dumps(graph))
    assert json.loads(net.tojson())["nodes"] == MXNET_FILE["nodes"]


def test_settings_without_underscores_are_those_of_old_versions() -> None:
    net = sym.load_json(changed(["nodes", 6, "attr"], {"lr_mult": "0.1"}))
    assert net.attr_dict()["conv_weight"] == {"__lr_mult__": "0.1"}


def test_settings_that_old_versions_wrote_for_an_input_reach_its_variable() -> None:
    attributes = {"num_filter": "4", "kernel": "(3, 3)", "no_bias": "True", "weight_lr_mult": "0.1"}
    net = sym.load_json(changed(["nodes", 7, "attr"], attributes))
    assert net.attr_dict()["conv_weight"] == {"__lr_mult__": "0.1"}
    assert "__lr_mult__" not in net.attr_dict()["bn_gamma"]


def test_missing_trailing_inputs_inherit_settings() -> None:
    graph = json.loads(changed(["nodes", 5, "inputs"], [[0, 0, 0], [1, 0, 0], [2, 0, 0]]))
    graph["nodes"][5]["attr"] |= {"ctx_group": "stage1", "moving_var_lr_mult": "0.5"}
    net = sym.load_json(json.dumps(graph))
    assert net.attr_dict()["bn_moving_mean"].items() >= {"__ctx_group__": "stage1"}.items()
    assert net.attr_dict()["bn_moving_var"].items() >= {"__lr_mult__": "0.5"}.items()


def test_an_attribute_of_a_users_operator_may_be_called_as_a_setting() -> None:
    scaled = parse("def scaled(x, *, step_lr_mult=2.0): return lambda i: x[i] * step_lr_mult")
    written = apply(scaled, sym.Variable("x"), step_lr_mult=3.0).tojson()
    assert sym.load_json(written).tojson() == written
    assert '"step_lr_mult": "3.0"' in written


def test_missing_trailing_inputs_become_variables() -> None:
    net = sym.load_json(changed(["nodes", 5, "inputs"], [[0, 0, 0], [1, 0, 0], [2, 0, 0]]))
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


def test_a_file_on_disk(tmp_path: Path) -> None:
    net = sym.load_json(json.dumps(MXNET_FILE))
    path = tmp_path / "net-symbol.json"
    net.save(path)
    with pytest.raises(GraphError, match=r"cannot write the graph file .*none/net\.json.: No such file"):
        net.save(tmp_path / "none" / "net.json")
    assert sym.load(path).tojson() == net.tojson()
    path.write_text(net.tojson(), encoding="utf-8-sig")
    assert sym.load(path).tojson() == net.tojson()
    path.write_text(path.read_text()[:-40])
    with pytest.raises(GraphError, match="this is not a graph file"):
        sym.load(path)
    path.write_text("[" * 100_000)
    with pytest.raises(GraphError, match="this is not a graph file: it is nested too deeply"):
        sym.load(path)
    with pytest.raises(GraphError, match=r"other\.json cannot be read: No such file"):
        sym.load(tmp_path / "other.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GraphError, match="not a graph file"):
        sym.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a graph file"),
        ("[" * 100_000, "not a graph file"),
        ("[]", 'an object with a list "nodes" is expected'),
        ('{"nodes": 3}', 'an object with a list "nodes" is expected'),
        ('{"nodes": []}', 'no "heads"'),
        (changed(["heads"], []), 'no "heads"'),
        (changed(["heads"], [[10, 0, 0]]), "list of heads refers to node 10, but there are 10 nodes"),
        (changed(["heads"], [[9, 1, 0]]), "refers to output 1 of '_plus0', which has 1"),
        (changed(["heads"], ["9"]), "'9' is not a reference"),
        (changed(["nodes", 0], 7), "node 0 is 7, expected an object"),
        (changed(["nodes", 0, "name"], None), 'node 0 lacks "op" or "name"'),
        (changed(["nodes", 0, "inputs"], [[0, 0, 0]]), "does not come before it: a cycle"),
        (changed(["nodes", 1, "inputs"], [[0, 0, 0]]), "is a variable and cannot have inputs"),
        (changed(["nodes", 7, "inputs"], "x"), "inputs are 'x', expected a list"),
        (changed(["nodes", 7, "inputs"], [[True, 0, 0]]), "is not a reference"),
        (changed(["nodes", 9, "inputs"], [[7, 0, 0]] * 3), "has 3 inputs; elemwise_add takes lhs, rhs"),
        (changed(["nodes", 7, "attr"], {"kernel": 3}), "attr must be an object whose values are text"),
        (changed(["nodes", 6, "name"], "data"), "two nodes of the graph are named 'data'"),
    ],
)
def test_malformed_files(text: str, message: str) -> None:
    with pytest.raises(GraphError) as raised:
        sym.load_json(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(["nodes", 7, "op"], "Convolutoin"), "node 7 (Convolutoin 'conv'): there is no operator"),
        (changed(["nodes", 7, "op"], "Convolutoin"), "did you mean 'Convolution'?"),
        (changed(["nodes", 7, "attr", "kernal"], "(3, 3)"), "node 7 (Convolution 'conv')"),
    ],
)
def test_unknown_operators_and_attributes(text: str, message: str) -> None:
    with pytest.raises(OperatorError) as raised:
        sym.load_json(text)
    assert message in str(raised.value)


def test_a_long_chain() -> None:
    with NameScope():
        body = sym.Variable("x")
        for _ in range(5000):
            body = body * 2
    assert len(sym.load_json(body.tojson()).nodes) == 5001


def test_a_users_operator_is_written_with_its_description() -> None:
    conv1d = parse(
        "def conv1d(data, filters, *, scale=1):\n"
        "    return lambda b, co, x: scale * Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])"
    )
    net = sym.apply(conv1d, sym.Variable("data"), name="c1", scale=2)
    assert net.list_arguments() == ["data", "c1_filters"]
    again = sym.load_json(net.tojson())
    assert again.heads[0].node.operator == conv1d
    assert again.tojson() == net.tojson()
    shapes = again.infer_shape(data=(4, 3, 12), c1_filters=(3, 6, 3))
    assert shapes == ([(4, 3, 12), (3, 6, 3)], [(4, 6, 10)], [])
    graph = gradient_graph(again, {"data": (4, 3, 12), "c1_filters": (3, 6, 3)}, ["c1_filters"])
    assert [graph.tensors[index].name for index in graph.outputs] == ["c1_output", "grad(c1_filters)"]
