from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import tofu
from tofu.cli.training_run import Devices
from tofu.runtime.checkpoint import CheckpointFolder

FIGURES = {
    "workers",
    "steps",
    "final_loss",
    "seconds_per_step",
    "fetched_bytes_per_step",
    "planned_bytes_per_step",
    "peak_bytes_per_worker",
    "metric",
}
TIMED = ("seconds_per_step", "samples_per_second")
Tofu = Callable[..., Result]


def _train(tofu: Tofu, *arguments: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in tofu("train", *arguments, "--json").output.splitlines()]
    for name in TIMED:
        assert lines[-1].pop(name) > 0
    return lines


def test_last_line_is_the_summary(tofu: Tofu) -> None:
    *epochs, summary = _train(tofu, "mlp", "--epochs", "2", "--workers", "3")
    assert len(epochs) == 2
    assert summary.keys() >= FIGURES - set(TIMED)
    assert summary["workers"] == 3
    assert summary["fetched_bytes_per_step"] == summary["planned_bytes_per_step"] != 0


def test_two_runs_are_bit_identical(tofu: Tofu) -> None:
    first, second = (_train(tofu, "mlp", "--epochs", "1", "--workers", "4") for _ in range(2))
    assert first == second


def test_another_seed_is_another_run(tofu: Tofu) -> None:
    first, second = (_train(tofu, "mlp", "--epochs", "1", "--seed", seed)[0] for seed in ("0", "1"))
    assert first != second


def test_page(tofu: Tofu) -> None:
    output = tofu("train", "mlp", "--epochs", "1", "--workers", "2").output
    for part in ("epoch 1/1", "parameters", "planned", "measured", "peak memory", "samples per second"):
        assert part in output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mlp", "--learning-rate", "nan"], "nan is not a finite number"),
        (["mlp", "--loss-scale", "1e400"], "is not a finite number"),
        (["wresnets"], "did you mean 'wresnet'"),
        (["mlp", "--epochs", "0"], "0 is not in the range"),
        (["mlp", "--learning-rate", "-1"], "-1"),
        (["mlp", "--batch", "100000", "--epochs", "1"], ""),
        (["mlp", "--workers", "two"], "'two' is not a valid integer."),
        (["mlp", "--epochs", "1.5"], "'1.5' is not a valid integer."),
        (["mlp", "--clip-norm", "inf"], "inf is not a finite number"),
        (["mlp", "--clip-norm", "x"], "'x' is not a valid number."),
    ],
)
def test_mistakes_end_in_one_message(tofu: Tofu, arguments: list[str], says: str) -> None:
    result = tofu("train", *arguments)
    assert result.exit_code in (0, 2) if not says else result.exit_code == 2
    assert says in result.output


def test_resumes_where_a_run_stopped(tofu: Tofu, tmp_path: Path) -> None:
    arguments = ("mlp", "--epochs", "3", "--workers", "2")
    whole = _train(tofu, *arguments)
    folder = str(tmp_path / "run")
    stopped = CheckpointFolder(tmp_path / "run")
    _train(tofu, *arguments, "--checkpoint", folder)
    stopped.paths()[-1].unlink()
    resumed = _train(tofu, *arguments, "--checkpoint", folder, "--resume")
    assert resumed[0] == whole[2]
    assert resumed[-1]["metric"] == whole[-1]["metric"]
    assert resumed[-1]["final_loss"] == whole[-1]["final_loss"]
    result = tofu("train", *arguments, "--checkpoint", folder, "--resume")
    assert result.exit_code == 2
    assert "all 3 epochs are in the checkpoint" in result.output
    assert "already holds checkpoints" in tofu("train", *arguments, "--checkpoint", folder).output


@pytest.mark.parametrize(
    ("context", "named"),
    [
        ((tofu.cpu(0), tofu.cpu(1)), "cpu"),
        ((tofu.gpu(0),), "1 GPU"),
        ((tofu.gpu(0), tofu.gpu(0)), "1 GPU, shared"),
        ((tofu.gpu(0), tofu.gpu(1)), "2 GPUs"),
        ((tofu.gpu(0), tofu.gpu(1)) * 2, "2 GPUs, shared"),
    ],
)
def test_devices_are_named_by_how_many_there_are(context: tuple[tofu.Context, ...], named: str) -> None:
    assert Devices(context).named == named
