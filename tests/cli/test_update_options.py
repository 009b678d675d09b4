"""`tofu train --schedule`, `--clip-norm` and what goes with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import tofu
from tofu.cli.update_options import RateSchedule, UpdateOptions

Tofu = Callable[..., Result]
STEPS_PER_EPOCH = 23
"""Batches of 64 in the digits that the recipe `mlp` trains on."""


def _rates(tofu: Tofu, path: Path, *arguments: str) -> list[float]:
    log = path / "run.jsonl"
    run = tofu("train", "mlp", "--workers", "1", "--lr", "0.1", *arguments, "--log", str(log))
    assert run.exit_code == 0, run.output
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [record["learning_rate"] for record in records if "learning_rate" in record]


@pytest.mark.parametrize(
    ("arguments", "rate"),
    [
        ((), tofu.optimizer.CosineRate(0.1, 2 * STEPS_PER_EPOCH, 4)),
        (("--schedule", "constant"), tofu.optimizer.ConstantRate(0.1)),
        (
            ("--schedule", "linear", "--warmup", "3", "--final-rate", "0.01"),
            tofu.optimizer.LinearRate(0.1, 2 * STEPS_PER_EPOCH, 3, 0.01),
        ),
        (("--schedule", "step:0.5@1"), tofu.optimizer.StepRate(0.1, 0.5, (STEPS_PER_EPOCH,))),
    ],
)
def test_every_step_has_the_rate_of_the_schedule(
    tofu: Tofu, tmp_path: Path, arguments: tuple[str, ...], rate: Callable[[int], float]
) -> None:
    found = _rates(tofu, tmp_path, "--epochs", "2", *arguments)
    assert found == pytest.approx([rate(step) for step in range(2 * STEPS_PER_EPOCH)])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--schedule", "stepp:0.1@1"], "there is no schedule 'stepp'; did you mean 'step'?"),
        (["--schedule", "falling"], "give one of cosine, linear, step, constant"),
        (["--schedule", "cosine:3"], "cosine takes nothing after its name, found 'cosine:3'"),
        (["--schedule", "step"], "such as step:0.1@30,60, found 'step'"),
        (["--schedule", "step:0@1"], "found 'step:0@1'"),
        (["--schedule", "step:nan@1"], "found 'step:nan@1'"),
        (["--schedule", "step:0.1@0"], "found 'step:0.1@0'"),
        (["--schedule", "step:0.1@1,"], "found 'step:0.1@1,'"),
        (["--schedule", "step:0.1@9999999999"], "found 'step:0.1@9999999999'"),
        (["--schedule", "step:0.1@1,7", "--epochs", "7"], "after epoch 7, but the run has 7 epochs"),
        (["--schedule", "constant", "--warmup", "3"], "need --schedule cosine or linear, not constant"),
        (["--schedule", "step:0.1@1", "--final-rate", "0"], "cosine or linear, not step"),
        (["--warmup", "23", "--epochs", "1"], "--warmup is 23, but the run has 23 steps"),
        (["--final-rate", "1"], "--final-rate is 1, and the highest learning rate is 0.1"),
        (["--final-rate", "nan"], "'--final-rate': nan is not a finite number"),
        (["--learning-rate", "inf"], "inf is not a finite number"),
        (["--clip-norm", "0"], "0.0 is not in the range x>0"),
        (["--clip-norm", "nan"], "'--clip-norm': nan is not a finite number"),
        (["--clip-value", "inf"], "'--clip-value': inf is not a finite number"),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, tmp_path: Path, arguments: list[str], says: str) -> None:
    folder = tmp_path / "run"
    result = tofu("train", "mlp", *arguments, "--checkpoint", str(folder))
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert not folder.exists()


def test_bounds_reach_the_optimizer_of_the_recipe() -> None:
    options = UpdateOptions(RateSchedule(), None, None, 0.5, 0.25)
    optimizer = options.clipped(tofu.optimizer.sgd(momentum=0.9, weight_decay=0.1))
    assert optimizer == tofu.optimizer.sgd(0.9, 0.1, clip_norm=0.5, clip_value=0.25)
    assert UpdateOptions(RateSchedule(), None, None, None, None).clipped(optimizer) == optimizer


def test_clipped_runs_learn_something_else(tofu: Tofu) -> None:
    arguments = ("train", "mlp", "--epochs", "1", "--workers", "2", "--json")
    losses = {
        json.loads(tofu(*arguments, *bounds).output.splitlines()[-1])["final_loss"]
        for bounds in ((), ("--clip-norm", "0.1"), ("--clip-value", "0.001"))
    }
    assert len(losses) == 3


def test_plans_without_clipping_are_refused_with_the_reason(tofu: Tofu, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    assert tofu("plan", "recipe:mlp", "--workers", "2", "--save", path).exit_code == 0
    refused = tofu("train", "mlp", "--plan", path, "--clip-norm", "1")
    assert refused.exit_code == 2
    assert "leave out --clip-norm" in " ".join(refused.output.split())
