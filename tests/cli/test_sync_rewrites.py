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


def facts(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output.splitlines()[-1])
    return found
