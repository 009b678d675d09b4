"""Training that is killed at random moments: no checkpoint may be torn, none that was reported lost.

    python -m benchmarks.kill_resume [--kills 500] [--seed 0] [--save benchmarks/results/kills.json]

A forked process trains with a checkpoint after every epoch and reports each epoch over a pipe once it is
saved. It is killed (SIGKILL) at a random moment; the next process continues from what it left. After every
kill the newest checkpoint must be readable and hold all epochs that were reported.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tofu
from tofu.errors import DataError
from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.progress import Epoch

from .machine import described
from .record import keep

EPOCHS = 1_000_000
LONGEST_SECONDS = 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill training processes.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="also write the result to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = {
            **described(),
            **killed(arguments.kills, Random(arguments.seed), Path(folder)),
        }
    print(keep(found, arguments.save))


def killed(kills: int, random: Random, folder: Path) -> dict[str, int]:
    """Counts over all kills. `while saving` are kills that left a temporary file behind."""
    counts = {"kills": 0, "torn": 0, "lost": 0, "while saving": 0, "before the first epoch": 0}
    reported = saved = 0
    with tempfile.TemporaryDirectory() as other:
        train(Path(other), epochs=1)  # so that the forked processes have all modules and caches
    while counts["kills"] < kills:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            train(folder, EPOCHS, writing, resume=saved > 0)
            os._exit(0)
        os.close(writing)
        time.sleep(random.uniform(0.02, LONGEST_SECONDS))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reading, "rb") as pipe:
            lines = pipe.read().split()
        counts["kills"] += 1
        reported = max(reported, *map(int, lines)) if lines else reported
        counts["while saving"] += any(folder.glob("*.temporary"))
        counts["before the first epoch"] += not lines
        try:
            saved = len(CheckpointFolder(folder).load().state["standing"]["history"])
        except DataError:
            counts["torn"] += reported > 0
            continue
        counts["lost"] += saved < reported
    return {**counts, "epochs": saved}


def train(folder: Path, epochs: int, pipe: int | None = None, *, resume: bool = False) -> None:
    """Train with a checkpoint after every epoch, reporting those that are saved."""

    def report(epoch: Epoch) -> None:
        if pipe is not None:
            os.write(pipe, b"%d\n" % (epoch.number + 1))

    data = tofu.sym.Variable("data")
    hidden = tofu.sym.Activation(tofu.sym.FullyConnected(data, num_hidden=64, name="fc1"), act_type="tanh")
    net = tofu.sym.SoftmaxOutput(tofu.sym.FullyConnected(hidden, num_hidden=4, name="fc2"), name="softmax")
    samples = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    batches = tofu.ArrayIterator(samples, samples[:, :4].argmax(axis=1), batch_size=32)
    with tofu.Module(net, context=[tofu.cpu(worker) for worker in range(4)]) as module:
        module.fit(
            batches,
            num_epoch=epochs,
            learning_rate=1e-4,
            checkpoint=folder,
            resume=resume,
            on_epoch=report,
        )


if __name__ == "__main__":
    main()
