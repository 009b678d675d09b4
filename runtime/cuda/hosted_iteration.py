"""An iteration in which the host moves messages while cards compute.

One thread issues the commands of all workers, in the order of the clock, as far ahead of the cards as it may.
Runs of computations are one command from the second iteration on, see `compute_runs`.
A second one issues the commands that pack a message, waits until the card has done them, and sends. A third
one waits until the memory of a message is free, and receives. The waits of the schedule become waits between
threads, besides those between streams: an instruction that needs a message is issued when it has arrived.

Guarantees: threads wait for steps at earlier ticks alone, so no run can deadlock.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ...errors import ExecutionError
from ...programs.schedule import Waits
from ..engine import CLOSED
from ..step_threads import Step, StepFailed, StepsClosed, StepsHang, Team
from ..thread_tasks import Place, PlacedStep, thread_tasks


class HostedIteration:
    """Runs iterations on three threads.

    `issued` are the instructions of workers, in groups that are issued at once, `sent` and `received` the
    messages, in the order in which each thread takes them. `issue` issues the commands of instructions that
    are not left out, and the events that others wait for. `finish` waits until the cards have done them.
    `host_steps` has the host's part in each message, and `skips` tells whether an instruction is left out in
    this iteration. `described` describes a message, for errors.
    """

    def __init__(
        self,
        issued: Sequence[Sequence[Place]],
        sent: Sequence[Place],
        received: Sequence[Place],
        waits: Sequence[Sequence[Waits]],
        *,
        issue: Callable[[Sequence[Place]], None],
        finish: Callable[[Place], None],
        host_steps: Mapping[Place, Step],
        skips: Callable[[Place], bool],
        described: Callable[[int, int], str],
        watchdog_seconds: float,
    ) -> None:
        self._issue = issue
        self._finish = finish
        self._host_steps = host_steps
        self._skips = skips
        self._described = described
        self._watchdog_seconds = watchdog_seconds
        self._waits = waits
        issuing = [PlacedStep(group[0], partial(issue, group), tuple(group[1:])) for group in issued]
        sending = [
            PlacedStep(place, partial(step, place)) for place in sent for step in (self._pack, self._send)
        ]
        receiving = [PlacedStep(place, partial(self._receive, place)) for place in received]
        self._threads = [issuing, sending, receiving]
        self._messages = {*sent, *received}
        self._team = Team(thread_tasks(self._threads, waits), watchdog_seconds)
        self._finalizer = weakref.finalize(self, self._team.close)

    def run(self) -> None:
        """Run one iteration; commands may still be under way.

        Raises ExecutionError that names the message that failed, or the instruction.
        """
        try:
            self._team.run()
        except StepFailed as failure:
            error = failure.__cause__
            place = self._threads[failure.thread][failure.step].place
            if place not in self._messages:
                raise ExecutionError(str(error)) from error
            named = f"{self._described(*place)}: {type(error).__name__}: {error}"
            raise ExecutionError(named) from error
        except StepsHang as hang:
            stuck = [self._threads[thread][step].place for thread, step in hang.current]
            places = "; ".join(self._described(*place) for place in stuck)
            raise ExecutionError(f"no progress for {self._watchdog_seconds:g} s: {places}") from None
        except StepsClosed:
            raise ExecutionError(CLOSED) from None

    def close(self) -> None:
        """End the threads."""
        self._finalizer()

    def _pack(self, place: Place) -> None:
        self._issue((place,))
        if not self._skips(place):
            self._finish(place)

    def _send(self, place: Place) -> None:
        if not self._skips(place):
            self._host_steps[place]()

    def _receive(self, place: Place) -> None:
        if not self._skips(place):
            for wait in self._waits[place[0]][place[1]]:
                self._finish(wait)
            self._host_steps[place]()
