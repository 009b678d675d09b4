"""Run lists of steps in parallel threads, iteration after iteration.

A step may have to wait for steps of other threads. A step that raises stops all threads, whether they run or
wait for each other, so no thread waits for ever. A thread in a step that does not end, such as one that waits
for another process, is left behind. Steps between two waits run as one group, and a thread announces its
progress once per group, so the overhead of small steps is low.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Thread

import numpy as np

from ..errors import ExecutionError
from .started_threads import start_all

Step = Callable[[], None]

STOP_SECONDS = 1.0
"""The time that other threads have to end their steps once a step has failed."""

JOIN_SECONDS = 5.0
"""The time that `close` waits for steps that are still running."""


@dataclass(frozen=True, slots=True)
class ThreadStep:
    """One step of a thread."""

    step: Step
    """The function to call."""

    waits: tuple[tuple[int, int], ...] = ()
    """Pairs of another thread and the number of its steps that must be done before."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The steps of a thread between two waits."""

    waits: tuple[tuple[int, int], ...]
    """Pairs of another thread and the number of its steps that must be done before."""

    steps: tuple[Step, ...]
    """The functions to call."""

    first: int
    """The number of the first step in the thread."""

    last: int
    """The number after that of the last step."""


Numbered = tuple[int, Step]
"""A step, and the number of its first step if it is several in one."""

Join = Callable[[Sequence[Numbered], int, int], Sequence[Numbered]]
"""Makes one step of several. Such a step writes the number that it is at to memory at the first address, and
ends early if there is a number other than 0 at the second one."""


class StepFailed(Exception):
    """Step `step` of thread `thread` raised; the error is the cause."""

    def __init__(self, thread: int, step: int) -> None:
        super().__init__(f"thread {thread}: step {step} failed")
        self.thread = thread
        self.step = step


class StepsHang(Exception):
    """No thread made progress for too long. `current` are the (thread, step) pairs that have not finished."""

    def __init__(self, current: tuple[tuple[int, int], ...]) -> None:
        super().__init__(f"{len(current)} threads hang")
        self.current = current


class StepsClosed(Exception):
    """The team was closed while it ran: by another thread, a signal handler or a step."""


class _Stopped(Exception):
    """Another thread failed, or the run was interrupted."""


def group(tasks: Sequence[Sequence[ThreadStep]]) -> tuple[tuple[_Group, ...], ...]:
    """Cut every thread's tasks before a wait and after a step that others wait for."""
    awaited: list[set[int]] = [set() for _ in tasks]
    for own in tasks:
        for task in own:
            for other, needed in task.waits:
                awaited[other].add(needed)
    groups: list[tuple[_Group, ...]] = []
    for thread, own in enumerate(tasks):
        cuts = [
            index for index, task in enumerate(own) if index == 0 or task.waits or index in awaited[thread]
        ]
        groups.append(
            tuple(
                _Group(own[start].waits, tuple(task.step for task in own[start:stop]), start, stop)
                for start, stop in pairwise([*cuts, len(own)])
            )
        )
    return tuple(groups)


class Team:
    """Persistent threads, one for each list of tasks. Raises ExecutionError if one cannot be started.

    `run` runs one iteration; `close` ends the threads. After a failed or interrupted iteration the team is
    broken and must not run again.
    """

    def __init__(
        self, tasks: Sequence[Sequence[ThreadStep]], watchdog_seconds: float, join: Join | None = None
    ) -> None:
        """`join` makes one step of several steps of a group."""
        self._watchdog_seconds = watchdog_seconds
        count = len(tasks)
        self._done = [0] * count
        self._current = array("q", [0] * count)
        self._stopping = array("q", [False])
        self._groups = group(tasks)
        self._steps = [
            [self._numbered(each, thread, join) for each in own] for thread, own in enumerate(self._groups)
        ]
        self._sleepers = [0] * count
        self._progress = [threading.Condition() for _ in range(count)]
        self._failures: list[tuple[int, int, BaseException]] = []
        self._closed = False
        self._iteration = 0
        self._working = 0
        self._gate = threading.Condition()
        self._threads = [
            Thread(target=self._serve, args=(index,), name=f"tofu-worker-{index}", daemon=True)
            for index in range(count)
        ]
        try:
            start_all(self._threads)
        except ExecutionError:
            self.close()
            raise

    def run(self) -> None:
        """Run every task once.

        Raises StepFailed (its cause is the step's own error), StepsHang or StepsClosed; an interrupt from the
        keyboard stops the threads at their next step and passes through.
        """
        assert self._closed or not self._stopping[0], "a broken team cannot run"
        try:
            with self._gate:
                self._done[:] = [0] * len(self._threads)
                for thread in range(len(self._threads)):
                    self._current[thread] = 0
                self._working = len(self._threads)
                self._iteration += 1
                self._gate.notify_all()
            self._await_threads()
        except BaseException:
            self._stop()
            raise
        if self._failures:
            thread, step, error = min(self._failures, key=lambda failure: failure[:2])
            raise StepFailed(thread, step) from error
        if self._closed:
            raise StepsClosed

    def close(self) -> None:
        """End the threads. One that hangs in a step is abandoned; it does not keep the process alive."""
        self._closed = True
        self._stop()
        deadline = time.monotonic() + JOIN_SECONDS
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0))

    def _numbered(self, block: _Group, thread: int, join: Join | None) -> Sequence[Numbered]:
        """Return the steps of a group with their numbers, some of them joined."""
        steps = list(enumerate(block.steps, block.first))
        if join is None:
            return steps
        current, stopping = (each.buffer_info()[0] for each in (self._current, self._stopping))
        return join(steps, current + thread * self._current.itemsize, stopping)

    def _await_threads(self) -> None:
        seen = list(self._current)
        patience_ends = time.monotonic() + self._watchdog_seconds
        with self._gate:
            while self._working:
                self._gate.wait(min(1.0, self._watchdog_seconds))
                if self._failures or self._closed:
                    self._gate.wait_for(lambda: not self._working, STOP_SECONDS)
                    return
                current = list(self._current)
                if current != seen:
                    seen, patience_ends = current, time.monotonic() + self._watchdog_seconds
                elif self._working and time.monotonic() > patience_ends:
                    raise StepsHang(self._unfinished())

    def _unfinished(self) -> tuple[tuple[int, int], ...]:
        totals = [groups[-1].last if groups else 0 for groups in self._groups]
        return tuple(
            (thread, self._current[thread])
            for thread, total in enumerate(totals)
            if self._done[thread] < total
        )

    def _stop(self) -> None:
        self._stopping[0] = True
        for condition in [*self._progress, self._gate]:
            with condition:
                condition.notify_all()

    def _serve(self, me: int) -> None:
        """Run a thread's part of every iteration. NumPy warns of nothing, as kernels in C do not."""
        with np.errstate(all="ignore"):
            iteration = 0
            while True:
                with self._gate:
                    while self._iteration == iteration and not self._closed:
                        self._gate.wait()
                    if self._closed:
                        return
                    iteration = self._iteration
                try:
                    self._iterate(me)
                except _Stopped:
                    pass
                except BaseException as error:
                    self._failures.append((me, self._current[me], error))
                    self._stop()
                with self._gate:
                    self._working -= 1
                    if not self._working:
                        self._gate.notify_all()

    def _iterate(self, me: int) -> None:
        done, current, sleepers, stopping = self._done, self._current, self._sleepers, self._stopping
        for block, steps in zip(self._groups[me], self._steps[me], strict=True):
            for other, needed in block.waits:
                if done[other] < needed:
                    self._sleep_until(other, needed)
            for number, step in steps:
                if stopping[0]:
                    raise _Stopped
                current[me] = number
                step()
            if stopping[0]:
                raise _Stopped
            # The order matters: a sleeper counts itself before it looks at `done` for the last time.
            done[me] = block.last
            if sleepers[me]:
                with self._progress[me]:
                    self._progress[me].notify_all()

    def _sleep_until(self, other: int, needed: int) -> None:
        condition = self._progress[other]
        with condition:
            self._sleepers[other] += 1
            try:
                while self._done[other] < needed and not self._stopping[0]:
                    condition.wait()
            finally:
                self._sleepers[other] -= 1
        if self._stopping[0]:
            raise _Stopped
