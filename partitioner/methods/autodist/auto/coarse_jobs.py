"""Jobs of computations and transfers for the fast model; computations that follow each other are one job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .....simulator.jobs import Jobs, run
from .traffic import PairTimes, Reals

Ends = dict[int, int]
"""The job after which each worker has something."""


class CoarseJobs:
    """Collects what workers do, in the order of the clock, and runs it on the lanes of a machine."""

    def __init__(self, pairs: PairTimes, in_turn: bool, rounds: bool) -> None:
        """Messages of a transfer are numbered in `rounds`, or else all of one reader before others'."""
        self._pairs = pairs
        self._rounds = rounds
        self._nanoseconds: list[int] = []
        self._lanes: list[tuple[int, ...]] = []
        self._edges: list[tuple[int, int]] = []
        self._computed: Ends = {}
        self._moved: Ends = self._computed if in_turn else {}
        self._pending = [0.0] * pairs.workers
        self._waited: list[list[int]] = [[] for _ in range(pairs.workers)]

    def compute(self, nanoseconds: Sequence[float], after: Iterable[Ends] = ()) -> None:
        """Let workers compute for a while; those that do wait for jobs."""
        for ends in after:
            self.wait({w: job for w, job in ends.items() if nanoseconds[w] > 0})
        for worker, time in enumerate(nanoseconds):
            self._pending[worker] += time

    def wait(self, ends: Ends) -> None:
        """Let workers wait for jobs before they compute on."""
        for worker, job in ends.items():
            if self._pending[worker]:
                self._flush(worker)
            self._waited[worker].append(job)

    def computed(self) -> Ends:
        """Return the jobs after which the workers have computed what they were given."""
        for worker, time in enumerate(self._pending):
            if time or self._waited[worker]:
                self._flush(worker)
        return dict(self._computed)

    def transfer(self, after: Ends, messages: Reals, start: Reals, finish: Reals) -> Ends:
        """Let every reader of messages run a transfer; return the jobs that end them."""
        workers = self._pairs.workers
        times = np.rint(messages).astype(np.int64).tolist()
        readers = [w for w in range(workers) if any(times[sender][w] for sender in range(workers))]
        if self._moved is self._computed:
            self.computed()
        begins: Ends = {}
        ends: Ends = {}
        if self._rounds:
            begins = {reader: self._begin(reader, after, start) for reader in readers}
            sent: dict[int, list[int]] = {reader: [] for reader in readers}
            for turn in range(1, workers):
                for reader in readers:
                    sent[reader] += self._message(begins[reader], (reader + turn) % workers, reader, times)
            for reader in readers:
                ends[reader] = self._add(round(finish[reader]), (), sent[reader])
        for reader in [] if self._rounds else readers:
            begin = self._begin(reader, after, start)
            got = [job for sender in range(workers) for job in self._message(begin, sender, reader, times)]
            ends[reader] = self._add(round(finish[reader]), (), got)
        self._moved.update(ends)
        return ends

    def run(self) -> int:
        """Return the nanoseconds after which all jobs have ended."""
        self.computed()
        edges = np.array(self._edges, np.int64).reshape(-1, 2)
        names = [str(lane) for lane in range(self._pairs.occupies.shape[0])]
        moments = run(Jobs(self._nanoseconds, self._lanes, names, edges, edges[:0]))
        both = zip(moments.start, self._nanoseconds, strict=True)
        return max((start + time for start, time in both), default=0)

    def _flush(self, worker: int) -> None:
        before = [*self._waited[worker], *([self._computed[worker]] if worker in self._computed else [])]
        self._computed[worker] = self._add(round(self._pending[worker]), (), before)
        self._pending[worker] = 0.0
        self._waited[worker] = []

    def _begin(self, reader: int, after: Ends, start: Reals) -> int:
        """Add the start of a transfer. If its reader takes time to wake, it does so after jobs of others."""
        own = [self._moved[reader]] if reader in self._moved else []
        wake = int(self._pairs.ways.wakes[reader])
        others = [job for worker, job in after.items() if worker != reader]
        if wake and others:
            own += [after[reader]] if reader in after else []
            return self._add(round(start[reader]), (), [*own, self._add(wake, (), others)])
        return self._add(round(start[reader]), (), [*own, *after.values()])

    def _message(self, begin: int, sender: int, reader: int, times: list[list[int]]) -> list[int]:
        time = times[sender][reader]
        return [self._add(time, self._pairs.lanes_of(sender, reader), [begin])] if time else []

    def _add(self, nanoseconds: int, lanes: tuple[int, ...], after: Iterable[int]) -> int:
        number = len(self._nanoseconds)
        self._nanoseconds.append(nanoseconds)
        self._lanes.append(lanes)
        self._edges += [(job, number) for job in set(after)]
        return number
