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
