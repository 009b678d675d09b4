"""`--unroll`: all micro-batches of a batch in one graph, planned, verified and trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Tofu = Callable[..., Result]
PARTS = ("--accumulate", "4", "--unroll")


def test_a_plan_is_for_the_graph_of_all_micro_batches(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    result = tofu("plan", "mlp", "--workers", "2", *PARTS, "--save", path)
    assert "batch 64 in 4 micro-batches of one iteration" in result.output
    assert "bytes are those of the last micro-batch" not in result.output
    assert tofu("verify", path).exit_code == 0
    assert tofu("verify", path, "mlp", "--accumulate", "2").exit_code == 2
    facts = json.loads(tofu("plan", "mlp", "--workers", "2", *PARTS, "--json").output)
    assert facts["unroll"] is True
    alone = json.loads(tofu("plan", "mlp", "--workers", "2", "--json").output)
    assert facts["operators"] > 3 * alone["operators"]


def test_training_follows_the_plan(tofu: Tofu, tmp_path: Path, signs: tuple[str, str]) -> None:
    (net, data), file = signs, str(tmp_path / "plan.json")
    shapes = ("--shape", "data=8,6", "--shape", "softmax_label=8")
    assert tofu("plan", net, *shapes, *PARTS, "--workers", "2", "--save", file).exit_code == 0
    asked = ("train", net, "--data", data, "--batch", "8", "--epochs", "1")
    asked = (*asked, "--optimizer", "sgd", "--json")
    in_turn = _summary(tofu(*asked, "--workers", "1", "--accumulate", "4"))
    alone = _summary(tofu(*asked, "--workers", "1", *PARTS))
    assert alone["final_loss"] == in_turn["final_loss"]
    planned = _summary(tofu(*asked, "--plan", file, *PARTS))
    assert planned["workers"] == 2
    assert planned["fetched_bytes_per_step"] == planned["planned_bytes_per_step"] > 0
    refused = tofu(*asked, "--plan", file, "--accumulate", "4")
    assert refused.exit_code == 2
    assert "number of micro-batches: partition again" in refused.output


def test_one_part_cannot_be_unrolled(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    tofu("plan", "mlp", "--workers", "2", "--save", path)
    for command in (("plan", "mlp"), ("train", "mlp"), ("verify", path)):
        refused = tofu(*command, "--unroll")
        assert refused.exit_code == 2
        assert "--accumulate 2 or more" in " ".join(refused.output.split())


def _summary(result: Result) -> dict[str, float]:
    assert result.exit_code == 0, result.output
    found: dict[str, float] = json.loads(result.output.splitlines()[-1])
    return found
