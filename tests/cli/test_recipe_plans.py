"""`recipe:NAME`: a plan for what `tofu train NAME` trains."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Tofu = Callable[..., Result]


@pytest.mark.parametrize("batch", [(), ("--batch", "16")])
def test_training_follows_a_plan_of_its_recipe(tofu: Tofu, tmp_path: Path, batch: tuple[str, ...]) -> None:
    path = str(tmp_path / "plan.json")
    assert tofu("plan", "recipe:mlp", *batch, "--workers", "3", "--save", path).exit_code == 0
    assert tofu("verify", path).exit_code == 0
    trained = tofu("train", "mlp", *batch, "--epochs", "1", "--plan", path, "--json")
    summary = json.loads(trained.output.splitlines()[-1])
    assert summary["workers"] == 3
    assert summary["fetched_bytes_per_step"] == json.loads(Path(path).read_text())["cost_bytes"]


def test_a_plan_for_the_zoo_is_refused_with_the_command_to_run(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    tofu("plan", "mlp", "--workers", "2", "--save", path)
    refused = tofu("train", "mlp", "--plan", path)
    assert refused.exit_code == 2
    assert "`tofu plan recipe:mlp --save FILE` makes a plan for this run" in " ".join(refused.output.split())


def test_another_optimizer_makes_another_graph(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    tofu("plan", "recipe:mlp", "--optimizer", "adam", "--workers", "2", "--save", path)
    assert tofu("train", "mlp", "--plan", path).exit_code == 2
    followed = tofu("train", "mlp", "--plan", path, "--optimizer", "adam", "--epochs", "1")
    assert followed.exit_code == 0


def test_unknown_recipes_are_named(tofu: Tofu) -> None:
    refused = tofu("plan", "recipe:lsmt")
    assert refused.exit_code == 2
    assert "'lsmt' is not a recipe; did you mean 'lstm'?" in refused.output
