"""Two processes in network namespaces of their own: their cable is cut, narrow, long, or loses packets.

This needs the rights to make namespaces. The cable that is long and loses packets is a stand-in, see
`benchmarks.cables`, because kernels may lack `netem`.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.cables import Cable, NoCables, cable, shaped

TIMEOUT_SECONDS = 3.0
PATIENCE_SECONDS = 120.0
PORT = "29471"
SCRIPT = f"""
import numpy as np
import tofu

data = np.zeros((64, 784), np.float32)
with tofu.distributed(timeout_seconds={TIMEOUT_SECONDS}) as processes:
    with tofu.Module(tofu.models.get("mlp", batch=64).symbol, processes) as module:
        module.fit(
            tofu.ArrayIterator(data, np.zeros(64), 64),
            num_epoch=STEPS,
            on_step=lambda step: step.step == 1 and print("learns", flush=True),
        )
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces exist on Linux alone"),
]


@pytest.fixture
def joined() -> Iterator[Cable]:
    """Two namespaces whose only way to each other is a cable."""
    with skipping(), cable() as found:
        yield found


@contextmanager
def skipping() -> Iterator[None]:
    """Skip the test if this machine cannot make cables."""
    try:
        yield
    except NoCables as error:
        pytest.skip(str(error))


def started(joined: Cable, steps: int) -> list[subprocess.Popen[str]]:
    """Start a process at each end."""
    environment = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": joined.address(0),
        "MASTER_PORT": PORT,
        "TOFU_TOKEN": secrets.token_hex(),
        "OMP_NUM_THREADS": "1",
    }
    return [
        subprocess.Popen(
            joined.command(rank, [sys.executable, "-c", SCRIPT.replace("STEPS", str(steps))]),
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Return what the processes say; kill them in the end."""
    try:
        return [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_a_cut_cable_ends_both_with_the_name_of_the_other(joined: Cable) -> None:
    processes = started(joined, steps=1_000_000)
    assert processes[0].stdout is not None
    assert processes[0].stdout.readline() == "learns\n"
    joined.cut()
    cut = time.monotonic()
    first, second = ended(processes)
    assert time.monotonic() - cut < 10 * TIMEOUT_SECONDS
    for said, other in ((first, 1), (second, 0)):
        assert re.search(rf"ExecutionError: process {other} \(.*\) was lost: it has sent nothing for", said)


def test_a_cable_that_is_cut_for_a_moment_changes_nothing(joined: Cable) -> None:
    processes = started(joined, steps=400)
    assert processes[0].stdout is not None
    assert processes[0].stdout.readline() == "learns\n"
    joined.cut()
    time.sleep(TIMEOUT_SECONDS / 6)
    joined.mend()
    assert ended(processes) == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]


def test_a_narrow_cable_changes_nothing(joined: Cable) -> None:
    with skipping():
        joined.narrow(20)
    processes = started(joined, steps=5)
    assert ended(processes) == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]


@pytest.mark.parametrize(("delay_seconds", "loss"), [(0.02, 0.0), (0.001, 0.02)])
def test_late_and_lost_packets_change_nothing(delay_seconds: float, loss: float) -> None:
    """The stand-in for a network carries packets later, and loses two of a hundred."""
    with skipping(), shaped(delay_seconds, loss, seed=1) as joined:
        processes = started(joined, steps=40)
        assert ended(processes) == ["", ""]
        assert [process.returncode for process in processes] == [0, 0]
        assert joined.shaper is not None
        assert joined.shaper.carried > 200
        assert (joined.shaper.lost > 0) == (loss > 0)
        assert joined.delay_seconds >= delay_seconds
