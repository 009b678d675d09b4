"""Processes of a run as forks of the test, which start at once, with a limit on their time."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from tofu.runtime.distributed.processes import Processes, distributed
from tofu.runtime.distributed.rendezvous import LISTENER, listening

PATIENCE_SECONDS = 60.0
Work = Callable[[Processes], Any]


@dataclass
class Forked:
    """Running processes."""

    processes: list[BaseProcess]
    pipes: list[Connection]

    def said(self, number: int, seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the result of a process, or the text of its error, as it ends or sends something."""
        assert self.pipes[number].poll(seconds), f"process {number} said nothing within {seconds} s"
        return self.pipes[number].recv()

    def pid(self, number: int) -> int:
        found = self.processes[number].pid
        assert found is not None
        return found

    def ended(self, seconds: float = PATIENCE_SECONDS) -> float:
        """Wait until all processes have ended, and return the seconds that took."""
        started = time.monotonic()
        for process in self.processes:
            process.join(max(started + seconds - time.monotonic(), 0.01))
            assert process.exitcode is not None, f"{process.name} hangs"
        return time.monotonic() - started


@contextmanager
def forked(count: int, work: Work, **settings: Any) -> Iterator[Forked]:
    """Run a function in several processes that have joined; kill them in the end."""
    context = multiprocessing.get_context("fork")
    listener, token = listening("127.0.0.1", 0), secrets.token_hex()
    port = listener.getsockname()[1]
    pipes = [context.Pipe(duplex=False) for _ in range(count)]

    def run(number: int) -> None:
        os.environ |= {"RANK": str(number), "WORLD_SIZE": str(count), "TOFU_TOKEN": token}
        os.environ |= {"LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        if not number:
            os.environ[LISTENER] = str(os.dup(listener.fileno()))
        listener.close()
        for other, (_, end) in enumerate(pipes):
            if other != number:
                end.close()
        own = pipes[number][1]
        try:
            with distributed(**{"join_seconds": PATIENCE_SECONDS, **settings}) as processes:
                processes.say = own.send  # type: ignore[attr-defined]
                own.send(work(processes))
        except BaseException as error:
            own.send(f"{type(error).__name__}: {error}")
        os._exit(0)

    processes = [context.Process(target=run, args=(n,), name=f"process {n}") for n in range(count)]
    for process in processes:
        process.start()
    listener.close()
    for _, end in pipes:
        end.close()
    try:
        yield Forked(list(processes), [pipe for pipe, _ in pipes])
    finally:
        for process in processes:
            process.kill()
            process.join()


def results(count: int, work: Work, patience_seconds: float = PATIENCE_SECONDS, **settings: Any) -> list[Any]:
    """Return the results of a function in several processes."""
    with forked(count, work, **settings) as running:
        return [running.said(number, patience_seconds) for number in range(count)]
