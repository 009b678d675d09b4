from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tofu import models
from tofu.partitioner import METHODS, Plan

FIGURES = {
    "model",
    "workers",
    "method",
    "operators",
    "tensors",
    "weight_state_bytes",
    "cost_bytes",
    "step_cost_bytes",
    "lower_bound_bytes",
    "search_seconds",
    "peak_bytes_per_worker",
    "single_device_peak_bytes",
}
Tofu = Callable[..., Result]


def test_figures_are_one_object(tofu: Tofu) -> None:
    facts = json.loads(tofu("plan", "mlp", "--workers", "4", "--json").output)
    assert facts.keys() >= FIGURES
    assert facts["workers"] == 4
    assert sum(facts["step_cost_bytes"]) == facts["cost_bytes"] >= facts["lower_bound_bytes"] > 0
    assert facts["peak_bytes_per_worker"] < facts["single_device_peak_bytes"]


def test_one_worker_moves_nothing(tofu: Tofu) -> None:
    facts = json.loads(tofu("plan", "mlp", "--workers", "1", "--json").output)
    assert facts["cost_bytes"] == 0
    assert facts["peak_bytes_per_worker"] == facts["single_device_peak_bytes"]


def test_page_shows_steps_contributors_and_memory(tofu: Tofu) -> None:
    output = tofu("plan", "lenet", "--workers", "4").output
    for part in ("Communication", "Largest contributors", "Memory", "one device", "2-way", "proven"):
        assert part in output


def test_saved_plan_is_for_this_graph(tofu: Tofu, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert tofu("plan", "mlp", "--workers", "2", "--batch", "16", "--save", str(path)).exit_code == 0
    Plan.load(path).verify(models.get("mlp", batch=16).training_graph("sgd"))


def test_graph_file_and_python_function(tofu: Tofu, tmp_path: Path) -> None:
    model = models.get("mlp", batch=8)
    model.symbol.save(tmp_path / "mlp-symbol.json")
    shapes = [f"--shape={name}={','.join(map(str, shape))}" for name, shape in model.shapes.items()]
    (tmp_path / "mine.py").write_text(
        "import tofu\ndef small():\n    return tofu.models.get('mlp', batch=8)\n", encoding="utf-8"
    )
    graph = json.loads(tofu("plan", str(tmp_path / "mlp-symbol.json"), *shapes, "--json").output)
    function = json.loads(tofu("plan", f"{tmp_path / 'mine.py'}:small", "--json").output)
    assert graph["cost_bytes"] == function["cost_bytes"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "wrsnet-50-4"], "did you mean wresnet-50-4"),
        (["plan", "mlp", "--workers", "0"], "0 is not in the range"),
        (["plan", "mlp", "--batch", "-3"], "-3 is not in the range"),
        (["plan", "mlp", "--method", "magic"], "there are: all-row, data-parallel"),
        (["plan", "mlp", "--optimizer", "sdg"], "did you mean 'sgd'"),
        (["plan", "mlp", "--shape", "data=8,8"], "follow from --batch"),
        (["plan", "mlp", "--save", "/no/such/folder/plan.json"], "No such file"),
        (["plan", "missing-symbol.json", "--shape", "data=8,8"], "missing-symbol.json"),
        (["plan", "missing.py:build"], "no Python file missing.py"),
        (["plann"], "did you mean 'plan'"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, arguments: list[str], says: str) -> None:
    result = tofu(*arguments)
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output


def test_methods_are_compared_side_by_side(tofu: Tofu) -> None:
    facts = json.loads(tofu("plan", "mlp", "--workers", "4", "--compare", "--json").output)
    by_method = {entry["method"]: entry for entry in facts["methods"]}
    assert by_method.keys() == METHODS.keys()
    assert by_method["refine"]["cost_bytes"] <= by_method["recursive"]["cost_bytes"]
    assert all(sum(entry["step_cost_bytes"]) == entry["cost_bytes"] for entry in by_method.values())
    text = tofu("plan", "mlp", "--workers", "4", "--compare").output
    assert all(method in text for method in METHODS)


def test_a_comparison_cannot_be_saved(tofu: Tofu) -> None:
    result = tofu("plan", "mlp", "--compare", "--save", "plan.json")
    assert result.exit_code == 2
    assert "choose one by --method" in result.output
