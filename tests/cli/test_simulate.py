"""`tofu simulate` prints the time line that `tofu.simulate` makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import tofu as package

from ..written_plans import mixed, training_graph

Tofu = Callable[..., Result]
SMALL = ("mlp", "--batch", "8", "--workers", "4")


@pytest.fixture
def written(tmp_path: Path) -> str:
    """The file of a plan in many forms, for 4 workers."""
    path = tmp_path / "plan.json"
    mixed(training_graph()).save(path)
    return str(path)


def test_figures_as_json(tofu: Tofu) -> None:
    graph = package.models.get("mlp", batch=8).training_graph()
    plan = package.partition(graph, 4, method="refine")
    timeline = package.simulate(package.lower(graph, plan), "2x-k80-node")
    found = json.loads(
        tofu("simulate", *SMALL, "--method", "refine", "--machine", "2x-k80-node", "--json").output
    )
    for name in ("seconds", "compute_seconds", "transfer_seconds", "critical_path_seconds", "times"):
        assert found[name] == getattr(timeline, name)
    assert found["seconds"] > found["critical_path_seconds"] > 0
    assert found["machine"] == "2x-k80-node"
    assert found["moved_bytes"] == plan.cost_bytes
    assert len(found["shares"]) == 4
    path = sum(each["computing_seconds"] + each["moving_seconds"] for each in found["deciding_path"])
    assert path == pytest.approx(found["seconds"])


def test_a_page_of_text(tofu: Tofu) -> None:
    shown = tofu("simulate", *SMALL, "--machine", "pcie-8").output
    for words in ("mlp on 4 workers of pcie-8", "estimated", "waiting", "critical path", "fc1.product"):
        assert words in shown


def test_one_worker_moves_nothing(tofu: Tofu) -> None:
    shown = tofu("simulate", "mlp", "--workers", "1", "--machine", "dgx-h100", "--json").output
    found = json.loads(shown)
    assert found["transfer_seconds"] == found["moved_bytes"] == 0
    assert found["seconds"] == found["compute_seconds"] >= found["critical_path_seconds"]


def test_plan_files_are_simulated_as_they_are(tofu: Tofu, written: str, tmp_path: Path) -> None:
    graph = training_graph()
    timeline = package.simulate(package.lower(graph, mixed(graph)), "dgx-a100")
    trace = tmp_path / "trace.json"
    result = tofu("simulate", written, "--machine", "dgx-a100", "--trace", str(trace))
    assert result.exit_code == 0
    assert result.output.endswith(f"trace written to {trace}\n")
    timeline.save_trace(tmp_path / "same.json")
    assert trace.read_bytes() == (tmp_path / "same.json").read_bytes()
    found = json.loads(tofu("simulate", written, "--machine", "dgx-a100", "--json").output)
    assert found["seconds"] == timeline.seconds


def test_mistakes_end_in_a_message(tofu: Tofu, written: str, tmp_path: Path) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text("{machine: bare, levels: [{name: gpu, bandwidth: 9 GB/s}], devices: [a, b, c, d]}")
    broken = tmp_path / "broken.yaml"
    broken.write_text("{machine: a, kind: v1, levels: [{name: gpu, bandwidth: 9 GB/s}], devices: [a]}")
    for arguments, says in (
        (SMALL, "--machine"),
        ((*SMALL, "--machine", "dgx"), "neither a preset nor a machine file named 'dgx'"),
        ((*SMALL, "--machine", str(bare)), "'bare' does not say how fast its devices are"),
        ((*SMALL, "--machine", str(broken)), "broken.yaml' cannot be used: kind is 'v1'"),
        (
            ("mlp", "--workers", "9", "--machine", "pcie-8"),
            "9 workers need 9 devices, but machine 'pcie-8' has 8",
        ),
        ((written, "--machine", "pcie-8", "--workers", "8"), "the plan is for 4 workers, not for 8"),
        ((written, "--machine", "pcie-8", "--method", "refine"), "--method searches a plan for MODEL"),
        ((*SMALL, "--machine", "pcie-8", "--trace", str(tmp_path / "no" / "t.json")), "there is no folder"),
        (("missing.json", "--machine", "pcie-8"), "missing.json"),
    ):
        result = tofu("simulate", *arguments)
        assert result.exit_code == 2, arguments
        assert says in " ".join(result.output.split()), result.output


def test_machines_of_links_count_nothing_by_level(tofu: Tofu, tmp_path: Path) -> None:
    pair = tmp_path / "pair.yaml"
    pair.write_text(
        "{machine: pair, kind: p100, devices: [a, b], links: [{between: [a, b], bandwidth: 9 GB/s}]}"
    )
    options = ("mlp", "--workers", "2", "--machine", str(pair))
    assert json.loads(tofu("simulate", *options, "--json").output)["transfer_seconds"] > 0
    found = json.loads(tofu("plan", *options, "--method", "anneal", "--proposals", "5", "--json").output)
    assert found["step_seconds"] > 0
    assert "levels" not in found
    refused = tofu("plan", *options, "--objective", "time")
    assert refused.exit_code == 2
    assert "'pair' lists links instead of levels" in refused.output
