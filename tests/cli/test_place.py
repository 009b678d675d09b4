"""`tofu place`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from click.testing import Result

Tofu = Callable[..., Result]
ASKED = ("--machine", "dgx-1-v100", "--workers", "2")


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    """Write a chain of four nodes, each with a megabyte that lasts."""
    graph = nx.DiGraph()
    for number in range(4):
        graph.add_node(f"n{number}", seconds=0.01, bytes=1000, persistent_bytes=10**6)
    nx.add_path(graph, [f"n{number}" for number in range(4)])
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    return path


def test_placements_are_printed_and_saved(tofu: Tofu, graph_file: Path, tmp_path: Path) -> None:
    saved = tmp_path / "placement.json"
    result = tofu("place", str(graph_file), *ASKED, "--memory", "2.5MB", "--json", "--save", str(saved))
    assert result.exit_code == 0, result.output
    facts = json.loads(result.output)
    assert json.loads(saved.read_text()) == facts
    assert list(facts) == ["placement", "order", "seconds", "lower_bound_seconds", "peak_bytes_per_worker"]
    assert facts["order"] == ["n0", "n1", "n2", "n3"]
    assert sorted(facts["placement"].values()) == [0, 0, 1, 1]
    assert max(facts["peak_bytes_per_worker"]) <= 2_500_000
    text = tofu("place", str(graph_file), *ASKED).output
    assert "4 nodes on 2 workers: 40.00 ms for an iteration; no placement takes less than 40.00 ms" in text


def test_mistakes_end_with_one_message(tofu: Tofu, graph_file: Path, tmp_path: Path) -> None:
    file = str(graph_file)
    for wrong, message in (
        ((file, *ASKED, "--memory", "1.5MB"), "values that last take 4,000,000 bytes"),
        ((file, *ASKED, "--memory", "lots"), "memory is 'lots'"),
        ((file, "--machine", "nothing"), "there is neither a preset nor a machine file"),
        ((file, "--machine", "dgx-1-v100", "--workers", "9"), "9 workers need 9 devices"),
        ((file, *ASKED, "--save", str(tmp_path / "no" / "p.json")), "there is no folder"),
        ((str(tmp_path / "missing.json"), *ASKED), "cannot read the graph file"),
        ((file,), "Missing option '--machine'"),
    ):
        result = tofu("place", *wrong)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
