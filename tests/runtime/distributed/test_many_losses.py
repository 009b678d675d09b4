"""Processes that are killed or stopped at random moments, again and again: the result is undisturbed."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from tofu.runtime.checkpoint import CheckpointFolder
from tofu.runtime.checkpoint_reading import read
from tofu.runtime.distributed.processes import Processes

from .forked import Work, forked
from .test_training import alone, fitted, kept

COUNT = 4
LONGEST_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0
STILL_SECONDS = 60.0
"""The time within which the rest of a run writes another checkpoint, or ends."""

JOIN_SECONDS = 5.0
NOT_YET_JOINED = ("while the run was joined", "these did not come", "found no first process")
"""How processes fail if another one is lost before all know each other."""

BUSY_SECONDS = 15.0
"""The time that a busy machine may take to end processes."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A process that was lost."""

    named: bool
    """Whether all knew each other, so that it was named."""

    seconds: float
    """The time from the signal until the last one of the others had ended."""


def lose_one(folder: Path, sent: signal.Signals, epochs: int, drawn: random.Random) -> Loss:
    """Train, send a signal to one process at a random moment, and see that all others end and name it.

    Every second time, on average, the moment is after another checkpoint was saved.
    """
    victim, moment, trained = (
        drawn.randrange(COUNT),
        drawn.uniform(0.05, LONGEST_SECONDS),
        drawn.random() < 0.5,
    )
    limits = {"timeout_seconds": TIMEOUT_SECONDS, "join_seconds": JOIN_SECONDS}
    before = CheckpointFolder(folder).paths()[-1:]
    with forked(COUNT, work(folder, epochs), **limits) as running:
        if trained:
            deadline = time.monotonic() + STILL_SECONDS
            while CheckpointFolder(folder).paths()[-1:] == before:
                assert time.monotonic() < deadline, "the run makes no progress"
                time.sleep(0.01)
        running.pipes[victim].poll(moment / 2 if trained else moment)
        os.kill(running.pid(victim), sent)
        begun = time.monotonic()
        others = set(range(COUNT)) - {victim}
        said = [running.said(number, JOIN_SECONDS + BUSY_SECONDS) for number in others]
        for number in others:
            running.processes[number].join(BUSY_SECONDS)
            assert running.processes[number].exitcode is not None, f"process {number} hangs"
        seconds = time.monotonic() - begun
    assert None not in said, "the run ended before the signal; give it more epochs"
    named = [f"process {victim} (" in each for each in said]
    for each, found in zip(said, named, strict=True):
        assert found or any(reason in each for reason in NOT_YET_JOINED), each
    assert all(named) or not trained, said
    return Loss(all(named), seconds)


def work(folder: Path, epochs: int) -> Work:
    """Return a run that goes on from the newest checkpoint, if there is one."""

    def run(processes: Processes) -> None:
        processes.attempt = 1
        fitted(processes, folder, num_epoch=epochs)

    return run


def disturb(folder: Path, losses: int, sent: signal.Signals, epochs: int, seed: int) -> list[Loss]:
    """Lose one process of every attempt, then train to the end. No checkpoint is ever damaged."""
    drawn, found = random.Random(seed), []
    for _ in range(losses):
        found.append(lose_one(folder, sent, epochs, drawn))
        for path in CheckpointFolder(folder).paths():
            read(path)
    with forked(COUNT, work(folder, epochs)) as running:
        before: list[Path] = []
        while not running.pipes[0].poll(STILL_SECONDS):
            last = CheckpointFolder(folder).paths()[-1:]
            assert last != before, "the run makes no progress"
            before = last
        assert running.said(0) is None
    return found


@pytest.mark.parametrize(
    ("sent", "losses", "epochs"),
    [
        (signal.SIGKILL, 3, 120),
        pytest.param(signal.SIGKILL, 100, 1500, marks=pytest.mark.slow),
        pytest.param(signal.SIGSTOP, 20, 300, marks=pytest.mark.slow),
    ],
)
def test_the_result_is_undisturbed(tmp_path: Path, sent: signal.Signals, losses: int, epochs: int) -> None:
    alone(COUNT, tmp_path / "alone", num_epoch=epochs)
    found = disturb(tmp_path / "disturbed", losses, sent, epochs, seed=losses)
    named = [loss.seconds for loss in found if loss.named]
    print(f"{len(named)} of {losses} named, within {min(named):.2f}, {median(named):.2f}, {max(named):.2f} s")
    assert kept(tmp_path / "disturbed") == kept(tmp_path / "alone")
