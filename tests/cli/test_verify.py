"""`tofu verify` accepts what `tofu plan --save` writes and names what is wrong with anything else."""

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
    assert tofu("plan", "mlp", "--workers", "4", "--save", path).exit_code == 0
    return path


def test_a_plan_in_16_bits_and_parts_of_a_batch_is_found_again(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    options = ("--batch", "64", "--dtype", "bfloat16", "--accumulate", "4")
    whole, half = (
        json.loads(tofu("plan", "mlp", "--batch", "16", *more, "--json").output)
        for more in ((), options[2:4])
    )
    made = tofu("plan", "mlp", *options, "--save", path)
    assert made.output.startswith("mlp, batch 64 in 4 micro-batches, bfloat16, over 8 workers")
    assert half["cost_bytes"] < 0.6 * whole["cost_bytes"]
    assert tofu("verify", path).exit_code == 0
    assert tofu("verify", path, "mlp", *options).exit_code == 0
    refused = tofu("verify", path, "--accumulate", "2")
    assert refused.exit_code == 2
    assert "the plan is for other shapes" in refused.output
    no_parts = tofu("plan", "mlp", "--batch", "10", "--accumulate", "4")
    assert no_parts.exit_code == 2
    assert "does not split into 4 micro-batches" in no_parts.output


def test_a_saved_plan_is_valid(tofu: Tofu, plan: str) -> None:
    facts = json.loads(tofu("verify", plan, "mlp", "--json").output)
    assert facts["verified"] is True
    assert facts["workers"] == 4
    assert "is valid for mlp on 4 workers" in tofu("verify", plan, "mlp").output


def test_another_batch_or_worker_count_is_refused_by_name(tofu: Tofu, plan: str) -> None:
    for arguments, message in (
        (("--workers", "8"), "the plan is for 4 workers, not for 8"),
        (("--batch", "48"), "the plan is for other shapes"),
    ):
        result = tofu("verify", plan, "mlp", *arguments)
        assert result.exit_code == 2
        assert message in result.output
