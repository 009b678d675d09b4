"""`tofu sync` with encoders and delays, and `tofu train` along the plan that it saves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

Tofu = Callable[..., Result]
STRATEGY = """
strategy: 1
variables:
  "*_weight": {sync: all-reduce, encode: {type: bfloat16, feedback: true}, delay: 1}
  "*": {sync: ps, worker: 1, encode: float16}
"""


def test_a_strategy_with_encoders_is_planned_saved_and_trained(
    tofu: Tofu, tmp_path: Path, signs: tuple[str, str]
) -> None:
    (tmp_path / "strategy.yaml").write_text(STRATEGY)
    (net, data), file = signs, str(tmp_path / "plan.json")
    shapes = ("--shape", "data=8,6", "--shape", "softmax_label=8")
    asked = ("sync", net, *shapes, "--strategy", str(tmp_path / "strategy.yaml"), "--workers", "2")
    planned = json.loads(tofu(*asked, "--save", file, "--json").output)
    weight, bias = 2 * 6 * 2, 2
    assert planned["other_bytes"] == 0
    assert planned["cost_bytes"] == 2 * weight + (2 + 4) * bias
    checked = tofu("verify", file, net)
    assert checked.exit_code == 0, checked.output
    trained = facts(
        tofu(
            *("train", net, "--data", data, "--batch", "8", "--epochs", "2"),
            *("--optimizer", "sgd", "--plan", file, "--json"),
        )
    )
    assert trained["fetched_bytes_per_step"] == planned["cost_bytes"]
    assert trained["final_loss"] < 0.7


def test_a_run_with_encoders_goes_on_along_the_same_plan_alone(
    tofu: Tofu, tmp_path: Path, signs: tuple[str, str]
) -> None:
    (tmp_path / "strategy.yaml").write_text(STRATEGY)
    net, data = signs
    for workers in ("2", "4"):
        tofu(
            *("sync", net, "--shape", "data=8,6", "--shape", "softmax_label=8", "--workers", workers),
            *("--strategy", str(tmp_path / "strategy.yaml"), "--save", str(tmp_path / f"{workers}.json")),
        )
    run = ("train", net, "--data", data, "--batch", "8", "--optimizer", "sgd", "--epochs")
    folder = ("--checkpoint", str(tmp_path / "run"))
    begun = tofu(*run, "1", *folder, "--plan", str(tmp_path / "2.json"))
    assert begun.exit_code == 0, begun.output
    for others, here in (
        (("--plan", str(tmp_path / "4.json")), "has shape (4, 2, 6)"),
        (("--workers", "4"), "does not exist"),
    ):
        refused = tofu(*run, "2", *folder, "--resume", *others)
        assert refused.exit_code == 2
        said = " ".join(refused.output.split())
        assert f"{here} in this run and has shape (2, " in said
        assert "the same plan if it changes gradients" in said


def facts(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output.splitlines()[-1])
    return found
