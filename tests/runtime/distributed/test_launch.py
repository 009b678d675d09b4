"""The exit status of a run is that of its first process, also if a signal ended that."""

from __future__ import annotations

import signal
import sys

import pytest

from tofu.runtime.distributed.launch import FAILED, launch


@pytest.mark.parametrize(
    ("number", "status", "says"),
    [
        (signal.SIGINT, 130, ""),
        (signal.SIGTERM, 143, ""),
        (signal.SIGKILL, FAILED, "before the processes had met"),
    ],
)
def test_the_first_process_is_ended_by_a_signal(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, status: int, says: str
) -> None:
    """As by a second Ctrl-C, which comes while it ends and Python has left its handlers."""
    program = f"""
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
if os.environ["RANK"] == "0":
    os.kill(os.getpid(), {number:d})
"""
    assert launch([sys.executable, "-c", program], 2) == status
    assert says in capsys.readouterr().err
