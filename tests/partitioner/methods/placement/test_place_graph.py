"""`tofu.place`: placements of users' graphs fit, are the best of those tried, and can be saved."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest

import tofu
from tofu.errors import MachineError, PlanError
from tofu.programs.memory import plan_memory


def two_branches(length: int) -> nx.DiGraph:
    """Return two chains from one node, which end in another one."""
    graph = nx.DiGraph()
    graph.add_node("begin", seconds=0.001, bytes=1000)
    graph.add_node("end", seconds=0.001)
    for branch in "ab":
        nodes = ["begin", *(f"{branch}{number}" for number in range(length)), "end"]
        for node in nodes[1:-1]:
            graph.add_node(node, seconds=0.01, bytes=1000, persistent_bytes=10**6)
        graph.add_edges_from(pairwise(nodes))
    return graph


def test_placements_fit_and_say_what_they_take(tmp_path: Path) -> None:
    graph = two_branches(10)
    found = tofu.place(graph, "dgx-1-v100", 2)
    assert set(found.placement) == set(graph) == set(found.order)
    assert found.seconds >= found.lower_bound_seconds >= 0.102
    tight = tofu.place(graph, "dgx-1-v100", 4, memory="6MB")
    assert max(tight.peak_bytes_per_worker) <= 6_000_000
    assert sum(tight.peak_bytes_per_worker) >= 20_000_000
    place = {node: number for number, node in enumerate(tight.order)}
    assert all(place[maker] < place[reader] for maker, reader in graph.edges)
    assert tofu.place(graph, "dgx-1-v100", 4, memory=6_000_000) == tight
    tight.save(tmp_path / "placement.json")
    assert json.loads((tmp_path / "placement.json").read_text()) == {
        "placement": tight.placement,
        "order": list(tight.order),
        "seconds": tight.seconds,
        "lower_bound_seconds": tight.lower_bound_seconds,
        "peak_bytes_per_worker": list(tight.peak_bytes_per_worker),
    }
    assert "22 nodes on 4 workers" in repr(tight)
    assert "<table>" in (tight._repr_html_() or "")


def test_colocated_nodes_share_a_worker() -> None:
    graph = two_branches(6)
    for number in range(6):
        graph.nodes[f"a{number}"]["colocate"] = number % 2
    found = tofu.place(graph, "dgx-1-v100", 4, memory="4MB").placement
    for parity in range(2):
        assert len({found[f"a{number}"] for number in range(parity, 6, 2)}) == 1


def test_mistakes_are_refused() -> None:
    graph = two_branches(2)
    for workers in (0, -1, True, 2.0):
        with pytest.raises(PlanError, match="the number of workers is"):
            tofu.place(graph, "dgx-1-v100", workers)  # type: ignore[arg-type]
    with pytest.raises(MachineError, match="9 workers need 9 devices"):
        tofu.place(graph, "dgx-1-v100", 9)
    with pytest.raises(MachineError, match="memory is 'much'"):
        tofu.place(graph, "dgx-1-v100", 2, memory="much")
    with pytest.raises(PlanError, match="values that last take 4,000,000 bytes, and all 2 workers"):
        tofu.place(graph, "dgx-1-v100", 2, memory="1.5MB")
    with pytest.raises(PlanError, match="node 'a0' alone needs 1,002,000 bytes"):
        tofu.place(graph, "dgx-1-v100", 2, memory=1_001_999)


@pytest.mark.parametrize("model", ["mlp", "lenet", "lstm"])
def test_training_graphs_go_out_and_come_in(model: str) -> None:
    """On one worker the time is that of the program. The arena is that without operations in place."""
    graph = tofu.models.get(model, batch=32).training_graph()
    plain = graph.to_networkx(tofu.simulator.operation_seconds(graph, "dgx-1-v100"))
    program = tofu.lower(graph, tofu.partition(graph, 1))
    found = tofu.place(plain, "dgx-1-v100", 1)
    arena = plan_memory(program).arena_bytes[0]
    assert arena * 0.98 <= found.peak_bytes_per_worker[0] <= arena * 1.25
    assert found.seconds == pytest.approx(tofu.simulate(program, "dgx-1-v100").seconds, rel=1e-3)
    spread = tofu.place(plain, "dgx-1-v100", 4, memory=int(arena / 1.2))
    assert max(spread.peak_bytes_per_worker) <= arena / 1.2
    for operation in graph.operations:
        for output in operation.outputs:
            alias = graph.tensors[output].alias
            if alias is not None:
                name = graph.tensors[alias].name
                assert spread.placement[name] == spread.placement[operation.name]
