"""`--merge`: operations that do the same to several tensors are one, planned, verified and trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

Tofu = Callable[..., Result]
SHAPES = ("--shape", "data=32,4", "--shape", "softmax_label=32,4")


@pytest.fixture
def network(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(
        "from tofu import models\n"
        "def build():\n"
        "    return models.get('lstm', batch=32, steps=4, hidden=32, layers=1).symbol\n"
    )
    return f"{tmp_path / 'net.py'}:build"


def test_a_merged_plan_is_told_saved_and_trained(tofu: Tofu, network: str, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    result = tofu("plan", network, *SHAPES, "--workers", "2", "--merge", "--save", path)
    assert "operations that do the same to several tensors are one" in result.output
    assert tofu("verify", path, network).exit_code == 0
    other = tofu("lower", path, network, "--shape", "data=16,4", "--shape", "softmax_label=16,4")
    assert other.exit_code == 2
    assert "If this is the rewritten graph, its batch size, other shapes" in other.output
    draw = np.random.default_rng(0).integers(0, 20, (64, 4))
    np.savez(tmp_path / "data.npz", data=draw, label=draw)
    asked = ("train", network, "--data", str(tmp_path / "data.npz"), "--batch", "32", "--epochs", "1")
    asked = (*asked, "--optimizer", "sgd", "--json")
    planned = json.loads(tofu(*asked, "--plan", path).output.splitlines()[-1])
    merged = json.loads(tofu(*asked, "--workers", "2", "--merge").output.splitlines()[-1])
    assert planned["fetched_bytes_per_step"] == planned["planned_bytes_per_step"] > 0
    assert planned["final_loss"] == merged["final_loss"]


def test_figures_say_whether_operations_are_merged(tofu: Tofu, network: str) -> None:
    asked = ("plan", network, *SHAPES, "--workers", "2", "--json")
    merged, alone = (json.loads(tofu(*asked, *more).output) for more in (["--merge"], []))
    assert merged["merged"] is True
    assert "merged" not in alone
    assert merged["operators"] < alone["operators"]


def test_it_is_said_if_nothing_is_merged(tofu: Tofu) -> None:
    assert "operations are not merged" in tofu("plan", "mlp", "--workers", "2", "--merge").output


def test_methods_are_compared_on_the_graph_that_each_planned(
    tofu: Tofu, network: str, tmp_path: Path
) -> None:
    asked = ("plan", network, *SHAPES, "--workers", "2", "--merge")
    compared = json.loads(tofu(*asked, "--compare", "--json").output)["methods"]
    assert {each["merged"] for each in compared} == {True, False}
    few = ("--pin", "data=*")  # most methods take no pins
    assert "operations merged" in tofu(*asked, "--compare", "--memory", "unlimited", *few).stdout
    page = tmp_path / "plan.html"
    for method in ("recursive", "megatron"):
        result = tofu(*asked, "--memory", "unlimited", "--method", method, "--report", str(page))
        assert result.exit_code == 0, result.output
        assert page.exists()
