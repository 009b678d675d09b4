"""Processes that are killed or stopped at random moments, again and again: the result is undisturbed."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.distributed.processes import Processes

from .forked import forked
from .test_training import alone, fitted, kept

COUNT = 4
LONGEST_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0
STILL_SECONDS = 60.0
"""The time within which the rest of a run writes another checkpoint, or ends."""

JOIN_SECONDS = 5.0
NOT_YET_JOINED = ("a process was lost while", "these did not come", "found no first process")
"""How processes fail if another one is lost before all know each other."""

BUSY_SECONDS = 15.0
"""The time that a busy machine may take to end processes."""


def disturb(folder: Path, losses: int, sent: signal.Signals, epochs: int, seed: int) -> None:
    """Train, and lose one process at a random moment of every attempt."""
    drawn = random.Random(seed)

    def work(processes: Processes) -> None:
        processes.attempt = 1
        fitted(processes, folder, num_epoch=epochs)

    for _ in range(losses):
        victim, moment = drawn.randrange(COUNT), drawn.uniform(0.05, LONGEST_SECONDS)
        limits = {"timeout_seconds": TIMEOUT_SECONDS, "join_seconds": JOIN_SECONDS}
        with forked(COUNT, work, **limits) as running:
            running.pipes[victim].poll(moment)
            os.kill(running.pid(victim), sent)
            for number in set(range(COUNT)) - {victim}:
                said = running.said(number, JOIN_SECONDS + BUSY_SECONDS)
                assert f"process {victim} (" in said or any(each in said for each in NOT_YET_JOINED), said
        if CheckpointFolder(folder).paths():
            CheckpointFolder(folder).load()
    with forked(COUNT, work) as running:
        before: list[Path] = []
        while not running.pipes[0].poll(STILL_SECONDS):
            newest = CheckpointFolder(folder).paths()[-1:]
            assert newest != before, "the run makes no progress"
            before = newest
        assert running.said(0) is None


@pytest.mark.parametrize(
    ("sent", "losses", "epochs"),
    [
        (signal.SIGKILL, 3, 40),
        pytest.param(signal.SIGKILL, 100, 1500, marks=pytest.mark.slow),
        pytest.param(signal.SIGSTOP, 20, 300, marks=pytest.mark.slow),
    ],
)
def test_the_result_is_undisturbed(tmp_path: Path, sent: signal.Signals, losses: int, epochs: int) -> None:
    alone(COUNT, tmp_path / "alone", num_epoch=epochs)
    disturb(tmp_path / "disturbed", losses, sent, epochs, seed=losses)
    assert kept(tmp_path / "disturbed") == kept(tmp_path / "alone")
