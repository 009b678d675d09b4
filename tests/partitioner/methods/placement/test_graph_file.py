"""Files of plain graphs are read as networkx writes them, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from tofu.errors import GraphError
from tofu.partitioner.methods.placement.graph_file import read_graph


def document() -> dict[str, object]:
    return {
        "directed": True,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": "a", "seconds": 1, "bytes": 8}, {"id": 2, "seconds": 0.5}],
        "edges": [{"source": "a", "target": 2, "bytes": 3}],
    }


@pytest.mark.parametrize("edges", ["edges", "links"])
def test_what_networkx_writes_is_read(tmp_path: Path, edges: str) -> None:
    graph = nx.DiGraph()
    graph.add_node("a\n", seconds=1, bytes=8, colocate="x")
    graph.add_node(2, seconds={"v100": 0.5})
    graph.add_edge("a\n", 2, bytes=3)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges=edges)))
    found = read_graph(path)
    assert nx.utils.graphs_equal(found, graph)
    assert list(found) == ["a\n", 2]


def test_only_nodes_and_edges_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text('{"nodes": [{"id": 0}], "edges": []}')
    assert list(read_graph(path)) == [0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"directed": False}, "'directed' is False; it must be true"),
        ({"multigraph": True}, "'multigraph' is True; it must be false"),
        ({"nodes": {}}, "nodes is an object; it must be a list"),
        ({"nodes": [1]}, r"nodes\[0\] is 1; it must be an object"),
        ({"nodes": [{"seconds": 1}]}, r"'id' of nodes\[0\] is None; it must be text"),
        ({"nodes": [{"id": [1]}]}, r"'id' of nodes\[0\] is \[1\]; it must be text"),
        ({"nodes": [{"id": 1}, {"id": 1}]}, r"nodes\[1\] has the id 1 of an earlier node"),
        ({"edges": [{"source": "a", "target": "z"}]}, r"edges\[0\] names 'z', which is not a node"),
        ({"edges": [{"source": "a"}]}, r"'target' of edges\[0\] is None"),
        ({"edges": [{"source": "a", "target": 2}] * 2}, r"edges\[1\] is a second edge from 'a' to 2"),
        ({"links": []}, "the file has an unknown key 'edges'"),
        ({"other": 1}, "the file has an unknown key 'other'"),
    ],
)
def test_other_documents_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({**document(), **changes}))
    with pytest.raises(GraphError, match=message) as refused:
        read_graph(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("[]", "the file is a list; it must be an object"),
        ('{"nodes": [{"id": 1, "seconds": NaN}], "edges": []}', "NaN is not a number"),
        ('{"nodes": [], "nodes": [], "edges": []}', "the key 'nodes' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "graph.json"
    path.write_text(text)
    with pytest.raises(GraphError, match=message):
        read_graph(path)
    with pytest.raises(GraphError, match="cannot read the graph file"):
        read_graph(tmp_path / "missing.json")
