"""Start all processes of a run on this machine, and end with them.

The first process inherits a socket that listens, so no port can be taken by others meanwhile. All inherit
one end of a pipe that never says anything: it closes when the process that started them ends, however that
ends, and then they end too.
"""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from tempfile import TemporaryFile
from types import FrameType
from typing import IO

from ...support.processors import processors
from ..interrupts import SIGNALS, handled
from ..started_threads import start_all
from .rendezvous import LISTENER, TOKEN, listening

PARENT = "TOFU_PARENT"
"""The variable with the descriptor of the pipe whose end means that nobody waits for this process."""

HOST = "127.0.0.1"
GRACE_SECONDS = 5.0
"""The time that processes have to end by themselves after the first one has."""

PAUSE_SECONDS = 0.02
FAILED = 2
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def launched(environment: Mapping[str, str]) -> bool:
    """Tell whether `launch` started this process."""
    return PARENT in environment


def launch(command: Sequence[str], count: int) -> int:
    """Run a command in `count` processes, and return the exit status of the first one.

    Only the first process writes to standard output and error. If it was killed, the message of another one
    is written.
    """
    children: list[subprocess.Popen[bytes]] = []
    reader, writer = os.pipe()
    with listening(HOST, 0) as listener, _logs(count) as logs:
        port, token = listener.getsockname()[1], secrets.token_hex(32)
        try:
            for number in range(count):
                environment = _environment(number, count, port, token, reader)
                passed = [reader]
                if not number:
                    environment[LISTENER] = str(listener.fileno())
                    passed.append(listener.fileno())
                children.append(
                    subprocess.Popen(
                        command,
                        env=environment,
                        pass_fds=passed,
                        stdin=subprocess.DEVNULL,
                        stdout=logs[number],
                        stderr=logs[number],
                        start_new_session=True,
                    )
                )
            listener.close()
            os.close(reader)
            with _forwarded(children):
                return _status(*_awaited(children), logs)
        finally:
            for child in children:
                child.kill()
                child.wait()
            os.close(writer)


def end_with_parent(environment: Mapping[str, str]) -> None:
    """End this process as soon as the one that started it ends."""
    parent = int(environment[PARENT])

    def wait() -> None:
        os.read(parent, 1)
        os._exit(FAILED)

    start_all([threading.Thread(target=wait, name="tofu-parent", daemon=True)])


def _environment(number: int, count: int, port: int, token: str, parent: int) -> dict[str, str]:
    threads = str(max(1, processors() // count))
    return {
        **dict.fromkeys(BLAS_THREADS, threads),
        **os.environ,
        "RANK": str(number),
        "LOCAL_RANK": str(number),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": HOST,
        "MASTER_PORT": str(port),
        TOKEN: token,
        PARENT: str(parent),
    }


@contextmanager
def _logs(count: int) -> Iterator[list[IO[bytes] | None]]:
    """Return where the processes write: the first one as this one does, the others into files."""
    with ExitStack() as files:
        yield [None, *(files.enter_context(TemporaryFile()) for _ in range(count - 1))]


def _forwarded(children: Sequence[subprocess.Popen[bytes]]) -> AbstractContextManager[None]:
    """Pass signals to stop on to all processes, which decide together when to stop."""

    def forward(number: int, frame: FrameType | None) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    return handled(SIGNALS, forward)


def _awaited(children: Sequence[subprocess.Popen[bytes]]) -> tuple[list[int], int]:
    """Wait until all have ended, and return their statuses and the number of the first that ended.

    Those that end too late after another one are killed.
    """
    first, deadline = 0, math.inf
    while True:
        statuses = [child.poll() for child in children]
        ended = [number for number, status in enumerate(statuses) if status is not None]
        if ended and deadline == math.inf:
            first, deadline = ended[0], time.monotonic() + GRACE_SECONDS
        if len(ended) < len(children) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            continue
        for child in children:
            child.kill()
        return [child.wait() for child in children], first


def _status(statuses: Sequence[int], first: int, logs: Sequence[IO[bytes] | None]) -> int:
    """Return the exit status. If the first process was killed, write what another one said.

    A signal to stop may end it before it handles signals, and a second one while it ends.
    """
    if statuses[0] >= 0:
        return statuses[0]
    if -statuses[0] in SIGNALS:
        return 128 - statuses[0]
    for log in logs:
        if log is not None:
            log.seek(0)
            if said := log.read():
                sys.stderr.write(said.decode(errors="replace"))
                return FAILED
    how = f"was ended by signal {-statuses[first]}" if statuses[first] < 0 else "ended"
    sys.stderr.write(f"Error: process {first} {how} before the processes had met\n")
    return FAILED
