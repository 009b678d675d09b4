"""torchrun starts `tofu train --distributed`, and starts it again from the newest checkpoint after a loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tofu.runtime.checkpoint import CheckpointFolder

PATIENCE_SECONDS = 120
EPOCHS = 30

pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.torch]


def command(data: Path, folder: Path, *options: str) -> list[str]:
    return [
        *("-m", "tofu", "train", "mlp", "--data", str(data), "--batch", "12", "--epochs", str(EPOCHS)),
        *("--checkpoint", str(folder), *options),
    ]


def members(folder: Path) -> list[int]:
    """Return the processes that train into a folder, by number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = dict(each.split("=", 1) for each in path.read_text().split("\0") if "=" in each)
            arguments = (path.parent / "cmdline").read_text()
        except (OSError, ValueError):
            continue
        if "RANK" in variables and str(folder) in arguments and "torchrun" not in arguments:
            found[int(variables["RANK"])] = int(path.parent.name)
    return [found[number] for number in sorted(found)]


def tensors(folder: Path) -> dict[str, bytes]:
    found = CheckpointFolder(folder).load()
    assert len(found.state["standing"]["history"]) == EPOCHS
    return {name: array.tobytes() for name, array in found.tensors.items()}


@pytest.mark.parametrize("victim", [0, 1])
def test_after_a_loss_training_goes_on_as_if_undisturbed(tmp_path: Path, victim: int) -> None:
    random = np.random.default_rng(0)
    images = random.standard_normal((480, 16)).astype(np.float32)
    data = tmp_path / "data.npz"
    np.savez(data, data=images, label=images[:, :4].argmax(axis=1))
    alone, several = tmp_path / "alone", tmp_path / "several"
    subprocess.run([sys.executable, *command(data, alone, "--workers", "2")], check=True, capture_output=True)
    launcher = ["torchrun", "--nproc-per-node", "2", "--max-restarts", "2"]
    with subprocess.Popen(
        [*launcher, *command(data, several, "--distributed")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(CheckpointFolder(several).paths()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(members(several)[victim], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert f"process {victim} (worker {victim} on " in err
    assert tensors(several) == tensors(alone)
