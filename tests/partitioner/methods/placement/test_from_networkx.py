"""Graphs of users: what they mean, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import tofu
from tofu.errors import GraphError
from tofu.partitioner.methods.placement.from_networkx import PlainGraph, from_networkx


def pair() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_node("a", seconds=0.5, bytes=100)
    graph.add_node("b", seconds=np.float32(0.25), bytes=np.int64(7))
    graph.add_edge("a", "b")
    return graph


def values(plain: PlainGraph) -> list[tuple[str, int, int, bool, list[str]]]:
    """List maker, sent bytes, stored bytes, whether it lasts, and readers of each value."""
    of, nodes = plain.graph, plain.nodes
    return [
        (nodes[of.maker[v]], int(of.sent_bytes[v]), int(of.stored_bytes[v]), bool(of.lasting[v]),
         [nodes[reader] for reader in of.readers[v]])
        for v in range(len(of.maker))
    ]  # fmt: skip


def test_nodes_and_edges_mean_what_they_say() -> None:
    graph = pair()
    graph.add_node("c", seconds={"slow": 2, "fast": 1}, persistent_bytes=1000, bytes=9, colocate="x")
    graph.add_node(4, seconds=0, colocate="x")
    graph.add_node("w", seconds=0, bytes=50, persistent_bytes=50, output_persists=True)
    graph.add_edges_from([("a", "c"), ("w", "b")])
    graph.add_edge("a", 4, bytes=30)
    graph.add_edge("c", 4, bytes=0)
    plain = from_networkx(graph, ("fast", "slow"))
    assert plain.nodes == ("a", "c", 4, "w", "b")
    assert plain.graph.nanoseconds.tolist() == [
        [500_000_000, 1_000_000_000, 0, 0, 250_000_000],
        [500_000_000, 2_000_000_000, 0, 0, 250_000_000],
    ]
    assert values(plain) == [
        ("a", 30, 30, False, [4]),
        ("a", 100, 100, False, ["c", "b"]),
        ("c", 9, 9, False, []),
        ("c", 0, 1000, True, []),
        ("w", 50, 0, False, ["b"]),
        ("w", 0, 50, True, []),
        ("b", 7, 7, False, []),
    ]
    assert plain.graph.leader.tolist() == [0, 1, 1, 3, 4]
    assert [each.tolist() for each in map(plain.graph.after.__getitem__, range(5))] == [[], [2], [], [], []]


def test_the_order_is_the_users_if_edges_allow_it() -> None:
    graph = nx.DiGraph()
    for node in "dacb":
        graph.add_node(node, seconds=1, bytes=1)
    assert from_networkx(graph, ("v100",)).nodes == ("d", "a", "c", "b")
    graph.add_edge("b", "d")
    assert from_networkx(graph, ("v100",)).nodes == ("a", "c", "b", "d")


def change(node: str, **attributes: object) -> Callable[[nx.DiGraph], None]:
    return lambda graph: graph.nodes[node].update(attributes)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (change("a", seconds=-1), r"`seconds` of node 'a' is -1; it must be finite and not negative"),
        (change("a", seconds=math.nan), r"`seconds` of node 'a' is nan; it must be finite"),
        (change("a", seconds=math.inf), r"`seconds` of node 'a' is inf; it must be finite"),
        (change("a", seconds="1"), r"`seconds` of node 'a' is '1', a str; it must be a number"),
        (change("a", seconds=True), r"`seconds` of node 'a' is True, a bool; it must be a number"),
        (change("a", seconds={"v100": 1}), r"`seconds` of node 'a' has no time for 'a100'.* it has 'v100'"),
        (change("a", seconds=2e9), r"all nodes together take 2e\+09 s; .* check the unit"),
        (change("a", bytes=1.5), r"`bytes` of node 'a' is 1.5; it must be a whole number"),
        (change("a", bytes=2**48 + 1), r"`bytes` of node 'a' is 281474976710657; it must be at most"),
        (change("a", bytes=10**5000), r"`bytes` of node 'a' is too large; it must be finite"),
        (change("a", bytes=None), r"`bytes` of node 'a' is None, a NoneType; it must be a number"),
        (change("a", persistent_bytes=-5), r"`persistent_bytes` of node 'a' is -5"),
        (change("a", output_persists="yes"), r"`output_persists` of node 'a' is 'yes'; it must be True or"),
        (change("a", colocate=[1]), r"`colocate` of node 'a' is a list; give a name or a number"),
        (change("a", second=1), r"a node has the attribute 'second'; write 'seconds'"),
        (lambda graph: graph.edges["a", "b"].update(byte=1), r"an edge has the attribute 'byte'"),
        (lambda graph: graph.edges["a", "b"].update(bytes=-1), r"`bytes` of the edge from 'a' to 'b' is -1"),
        (lambda graph: graph.nodes["a"].pop("seconds"), r"node 'a' has no `seconds`"),
        (lambda graph: graph.nodes["a"].pop("bytes"), r"node 'a' has no `bytes`, but 'b' reads its output"),
        (lambda graph: graph.add_edge("a", "a"), r"node 'a' reads itself"),
        (lambda graph: graph.add_edge("b", "a"), r"2 nodes form a cycle: 'b' -> 'a' -> 'b'; remove an edge"),
        (lambda graph: graph.add_nodes_from([1, "1"]), r"nodes 1 and '1' have the same name as text"),
        (lambda graph: graph.clear(), r"the graph has no nodes"),
        (lambda graph: graph.add_edge("b", "new\x00"), r"node 'new\\x00' has no `seconds`"),
    ],
)  # fmt: skip
def test_mistakes_are_named(changed: Callable[[nx.DiGraph], None], message: str) -> None:
    graph = pair()
    changed(graph)
    with pytest.raises(GraphError, match=message):
        from_networkx(graph, ("v100", "a100"))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.MultiDiGraph([(1, 2)]), "several edges between two nodes"),
        (nx.Graph([(1, 2)]), "has no directions"),
        ({"a": ["b"]}, "expected a networkx.DiGraph, found a dict"),
    ],
)
def test_other_graphs_are_refused(graph: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        tofu.place(graph, "dgx-1-v100", 2)  # type: ignore[arg-type]


def test_all_bytes_together_are_bounded() -> None:
    graph = nx.DiGraph()
    for node in range(4097):
        graph.add_node(node, seconds=0, persistent_bytes=2**48)
    with pytest.raises(GraphError, match="all values together have"):
        from_networkx(graph, ("v100",))


def test_a_long_cycle_is_shown_in_part() -> None:
    graph = nx.DiGraph()
    nx.add_cycle(graph, range(100_000))
    with pytest.raises(GraphError, match=r"100000 nodes form a cycle: 1 -> 2 -> .* -> \.\.\. -> 1;"):
        from_networkx(graph, ("v100",))
