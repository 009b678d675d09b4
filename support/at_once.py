"""Make calls in processes of their own, next to each other, if there are processors for them.

Processes are forks, so calls see everything of this process, and only results are sent, pickled. The first
call is made here. So is every call whose process ended without a result: its error is raised here.

Calls are made one after the other if there is one processor, in a fork, in a process with several threads of
Python, whose locks a fork would keep, and on systems other than Linux.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import active_count as threads
from typing import TypeVar

from .processors import processors

Result = TypeVar("Result")


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return what calls return, in their order. Raises what the first call raises that fails."""
    if len(calls) < 2 or not _may_fork():
        return [call() for call in calls]
    fork = multiprocessing.get_context("fork")
    forks = []
    try:
        for call in calls[1:]:
            receiving, sending = fork.Pipe(duplex=False)
            process = fork.Process(target=_answer, args=(call, sending), daemon=True)
            process.start()
            sending.close()
            forks.append((process, receiving))
        found = [calls[0]()]
        for call, (_, receiving) in zip(calls[1:], forks, strict=True):
            try:
                found.append(receiving.recv())
            except EOFError:
                found.append(call())
    finally:
        for process, receiving in forks:
            receiving.close()
            process.kill()  # a handler of SIGTERM, which forks inherit, may come to nothing
            process.join()
    return found


def _may_fork() -> bool:
    return (
        sys.platform == "linux"
        and processors() > 1
        and threads() == 1
        and multiprocessing.parent_process() is None
    )


def _answer(call: Callable[[], object], sending: Connection) -> None:
    """Send what a call returns. If it fails, nothing is sent."""
    with suppress(Exception, KeyboardInterrupt), sending:
        sending.send(call())
