"""PyTorch's training step, in a separate process. A message says if PyTorch is missing."""

from __future__ import annotations

import os
import subprocess
from statistics import median
from typing import Any

from benchmarks.peers import started

from .training import STEPS, WARM_UP

FORMS = ("eager", "compile")
SECONDS_TO_START = 120


def missing(interpreter: str) -> str | None:
    """Return why this Python cannot run PyTorch on a card; None if it can."""
    question = "import torch; assert torch.cuda.is_available(), 'PyTorch finds no card'"
    result = subprocess.run(
        [interpreter, "-c", question],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_TO_START,
    )
    return None if result.returncode == 0 else result.stderr.strip().rpartition("\n")[2]


def step(interpreter: str, folder: str, form: str, precision: str) -> dict[str, Any]:
    """Seconds of a step, and its first losses."""
    command = [interpreter, "-m", "benchmarks.gpu.torch_step", folder, form, precision]
    with started(f"PyTorch, {form}", command, os.environ) as contender:
        contender.facts = contender.hear()
        for _ in range(WARM_UP + STEPS):
            contender.step()
        nbytes = contender.ask("memory")
    return {
        **contender.facts,
        "seconds": median(contender.wall[WARM_UP:]),
        "losses": contender.losses[:3],
        "most_bytes": nbytes,
    }
