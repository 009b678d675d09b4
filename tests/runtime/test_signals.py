"""Signals to a separate training process: Ctrl-C and SIGTERM once and twice, and `kill -9`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tofu.runtime.checkpoint import CheckpointFolder

TRAINING = """
import sys, time
import numpy as np
import tofu
from tofu.runtime.run_checkpoints import Keeper

if sys.argv[2] == "slow to save":  # a disk that takes its time gives the second Ctrl-C a moment to come
    saving = Keeper.save

    def slowly(keeper, standing):
        print("saving", flush=True)
        time.sleep(60)
        saving(keeper, standing)

    Keeper.save = slowly

def on_step(step):
    print("step", step.step, flush=True)
    time.sleep(0.02)

data = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
train = tofu.ArrayIterator(data, data.argmax(axis=1), batch_size=1)
net = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=8, name="fc")
net = tofu.sym.SoftmaxOutput(net, name="softmax")
with tofu.Module(net, [tofu.cpu(0), tofu.cpu(1)]) as module:
    module.fit(train, num_epoch=1000, checkpoint=sys.argv[1], on_step=on_step)
"""


@contextmanager
def training(folder: Path, disk: str = "quick") -> Iterator[subprocess.Popen[str]]:
    """A process that has trained for three steps."""
    command = [sys.executable, "-c", TRAINING, str(folder), disk]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            await_line(process, "step 3")
            yield process
        finally:
            process.kill()


def await_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    while (read := process.stdout.readline()) != "":
        if read.strip() == line:
            return
    raise AssertionError(f"the process ended before it wrote {line!r}")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_asked_to_stop_once_it_saves(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with training(tmp_path) as process:
        process.send_signal(number)
        assert process.wait(60) == status
    state = CheckpointFolder(tmp_path).load().state["standing"]
    assert state["batch"] >= 3
    assert state["rate_step"] == state["batch"]


def test_interrupted_twice_it_stops_now(tmp_path: Path) -> None:
    """While the checkpoint is being written, which would take a minute: nothing is saved, nothing is torn."""
    with training(tmp_path, "slow to save") as process:
        process.send_signal(signal.SIGINT)
        await_line(process, "saving")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
        assert process.stderr is not None
        assert "KeyboardInterrupt" in process.stderr.read()
    assert CheckpointFolder(tmp_path).paths() == []


def test_terminated_twice_it_stops_now(tmp_path: Path) -> None:
    with training(tmp_path, "slow to save") as process:
        process.terminate()
        await_line(process, "saving")
        process.terminate()
        assert process.wait(20) == 143
    assert CheckpointFolder(tmp_path).paths() == []


def test_killed_it_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """`kill -9` in the second epoch, after the checkpoint of the first."""
    with training(tmp_path) as process:
        await_line(process, "step 66")
        process.kill()
        assert process.wait(20) == -signal.SIGKILL
    state = CheckpointFolder(tmp_path).load().state["standing"]
    assert (len(state["history"]), state["batch"], state["rate_step"]) == (1, 0, 64)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """It trains into the folder while the first one does."""
    with training(tmp_path):
        command = [sys.executable, "-c", TRAINING, str(tmp_path), "quick"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode != 0
        assert "DataError" in second.stderr
