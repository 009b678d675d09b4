"""Two processes in network namespaces of their own: their cable is cut, or narrow.

This needs the rights to make namespaces. Machines whose kernel has no `netem` can neither delay nor lose
packets, so neither is tested.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

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


def ip(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False)


@pytest.fixture
def spaces() -> Iterator[list[str]]:
    """Two namespaces whose only way to each other is a cable between interfaces called `cable`."""
    names = [f"tofu-{secrets.token_hex(3)}-{end}" for end in range(2)]
    try:
        for name in names:
            try:
                made = ip("netns", "add", name)
            except FileNotFoundError:
                pytest.skip("there is no command ip")
            if made.returncode:
                pytest.skip(f"namespaces cannot be made: {made.stderr.decode().strip()}")
        first, second = names
        peer = ("type", "veth", "peer", "name", "cable", "netns", second)
        if ip("link", "add", "cable", "netns", first, *peer).returncode:
            pytest.skip("cables between namespaces cannot be made")
        for end, name in enumerate(names, 1):
            assert not ip("-n", name, "addr", "add", f"10.71.0.{end}/24", "dev", "cable").returncode
            assert not ip("-n", name, "link", "set", "cable", "up").returncode
            assert not ip("-n", name, "link", "set", "lo", "up").returncode
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def started(spaces: list[str], steps: int) -> list[subprocess.Popen[str]]:
    """Start a process in each namespace."""
    environment = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "10.71.0.1",
        "MASTER_PORT": PORT,
        "TOFU_TOKEN": secrets.token_hex(),
        "OMP_NUM_THREADS": "1",
    }
    return [
        subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", SCRIPT.replace("STEPS", str(steps))],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, name in enumerate(spaces)
    ]


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Return what the processes say; kill them in the end."""
    try:
        return [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_a_cut_cable_ends_both_with_the_name_of_the_other(spaces: list[str]) -> None:
    processes = started(spaces, steps=1_000_000)
    assert processes[0].stdout is not None
    assert processes[0].stdout.readline() == "learns\n"
    ip("-n", spaces[0], "link", "set", "cable", "down")
    cut = time.monotonic()
    first, second = ended(processes)
    assert time.monotonic() - cut < 10 * TIMEOUT_SECONDS
    for said, other in ((first, 1), (second, 0)):
        assert re.search(rf"ExecutionError: process {other} \(.*\) was lost: it has sent nothing for", said)


def test_a_cable_that_is_cut_for_a_moment_changes_nothing(spaces: list[str]) -> None:
    processes = started(spaces, steps=400)
    assert processes[0].stdout is not None
    assert processes[0].stdout.readline() == "learns\n"
    ip("-n", spaces[0], "link", "set", "cable", "down")
    time.sleep(TIMEOUT_SECONDS / 6)
    ip("-n", spaces[0], "link", "set", "cable", "up")
    assert ended(processes) == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]


def test_a_narrow_cable_changes_nothing(spaces: list[str]) -> None:
    limit = ("tbf", "rate", "20mbit", "burst", "32kb", "latency", "400ms")
    for name in spaces:
        set_limit = ip("netns", "exec", name, "tc", "qdisc", "add", "dev", "cable", "root", *limit)
        if set_limit.returncode:
            pytest.skip(f"cables cannot be narrowed: {set_limit.stderr.decode().strip()}")
    processes = started(spaces, steps=5)
    assert ended(processes) == ["", ""]
