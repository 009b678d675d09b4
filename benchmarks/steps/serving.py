"""A process that runs one training step for every line it reads, and writes one JSON line about it.

It needs only the standard library and NumPy, because peers run it in other environments.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

RATE, MOMENTUM = 0.01, 0.9


def given(folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model's facts, and its start values and batch by name."""
    facts = json.loads((Path(folder) / "facts.json").read_text(encoding="utf-8"))
    with np.load(Path(folder) / "tensors.npz") as tensors:
        return facts, {name: tensors[name] for name in tensors.files}


def pin(core: int) -> None:
    """Stay on one core, so that no library makes more threads than that has."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def loss_of(probabilities: Any, labels: Any) -> float:
    """Return the mean cross entropy of rows of probabilities."""
    chosen = probabilities[np.arange(labels.size), labels.ravel().astype(int)]
    return float(-np.log(chosen).mean())


def serve(facts: Mapping[str, Any], step: Callable[[], float], **others: Callable[[], Any]) -> None:
    """Announce `facts`; then answer every line: `step` is timed, the commands in `others` are not."""
    _say(facts)
    for line in sys.stdin:
        command = line.strip()
        if command in others:
            _say(others[command]())
            continue
        processor, wall = time.process_time(), time.perf_counter()
        loss = step()
        _say(
            {
                "processor_seconds": time.process_time() - processor,
                "wall_seconds": time.perf_counter() - wall,
                "loss": loss,
            }
        )


def _say(message: Any) -> None:
    print(json.dumps(message), flush=True)
