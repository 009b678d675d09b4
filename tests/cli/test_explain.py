"""`tofu explain`, `tofu diff` and `tofu verify` find the graph that a plan file was made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Tofu = Callable[..., Result]


@pytest.fixture
def plan(tofu: Tofu, tmp_path: Path) -> str:
    path = str(tmp_path / "plan.json")
    arguments = ("--workers", "4", "--batch", "16", "--optimizer", "adam", "--save", path)
    assert tofu("plan", "mlp", *arguments).exit_code == 0
    return path


def test_the_model_is_known_from_the_file(tofu: Tofu, plan: str) -> None:
    assert json.loads(tofu("verify", plan, "--json").output)["model"] == "mlp"
    facts = json.loads(tofu("explain", plan, "fc1.product", "--json").output)
    assert facts["what"] == "operator"
    assert {"choice", "bytes", "moved", "alternatives"} <= facts.keys()
    chosen = next(entry for entry in facts["alternatives"] if entry["choice"] == facts["choice"])
    assert chosen["held_bytes"] == facts["plan_bytes"]
    assert {entry["operation"] for entry in facts["moved"]} == {"fc1.product"}


def test_a_page_names_choice_cost_and_alternatives(tofu: Tofu, plan: str) -> None:
    output = tofu("explain", plan, "fc1_weight").output
    for part in ("tensor fc1_weight", "split on dimensions", "What moves", "Alternatives", "all else held"):
        assert part in output
    assert "tensor fc1.product" in tofu("explain", plan, "fc1.product", "--as", "tensor").output


def test_without_a_name_every_weight_is_listed(tofu: Tofu, plan: str) -> None:
    layers = {each["weight"]: each for each in json.loads(tofu("explain", plan, "--json").output)["layers"]}
    assert list(layers) == ["fc1_weight", "fc2_weight", "fc3_weight"]
    for name, layer in layers.items():
        chosen = json.loads(tofu("explain", plan, name, "--json").output)
        parts = [1, 1]
        for dimension in chosen["choice"]:
            if dimension is not None:
                parts[dimension] *= 2
        assert layer["weight_parts"] == parts
    output = " ".join(tofu("explain", plan).output.split())
    assert "bytes are those of one layer" in output
    for name, layer in layers.items():
        cut = [
            f"{n}/{p}" if p > 1 else str(n)
            for n, p in zip(layer["shape"], layer["weight_parts"], strict=True)
        ]
        assert f"{name} │ {' x '.join(cut)} │ {layer['operator']}" in output


def test_two_plans_side_by_side(tofu: Tofu, plan: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.json")
    arguments = ("--workers", "4", "--batch", "16", "--optimizer", "adam", "--method", "all-row")
    assert tofu("plan", "mlp", *arguments, "--save", other).exit_code == 0
    facts = json.loads(tofu("diff", plan, other, "--json").output)
    assert facts["methods"] == ["recursive", "all-row"]
    assert facts["operators"]
    assert "operators differ" in tofu("diff", plan, other).output
    assert "the same choices" in tofu("diff", plan, plan).output


def test_mistakes_end_in_one_message(tofu: Tofu, plan: str, tmp_path: Path) -> None:
    document = json.loads(Path(plan).read_text(encoding="utf-8"))
    nameless, code = tmp_path / "nameless.json", tmp_path / "code.json"
    code.write_text(json.dumps({**document, "source": {**document["source"], "model": "mine.py:build"}}))
    del document["source"]
    nameless.write_text(json.dumps(document))
    for arguments, says in (
        (("explain", plan, "fc1_weigth"), "did you mean 'fc1_weight'"),
        (("explain", str(nameless), "fc1_weight"), "name MODEL"),
        (("verify", str(code)), "not run because a file says so"),
        (("explain", plan, "fc1_weight", "--batch", "8"), "fingerprint"),
        (("diff", plan, "missing.json"), "missing.json"),
    ):
        result = tofu(*arguments)
        assert result.exit_code == 2, arguments
        assert says in result.output
    named = tofu("verify", str(nameless), "mlp", "--batch", "16", "--optimizer", "adam")
    assert named.exit_code == 0
    options = ("--batch", "16", "--optimizer", "adam")
    for path in (str(nameless), str(code)):
        listed = tofu("explain", path, "mlp", *options)
        assert listed.exit_code == 0, path
        assert "activations move" in listed.output
        assert tofu("explain", path, "fc1_weight", "mlp", *options).output.startswith("tensor fc1_weight")
