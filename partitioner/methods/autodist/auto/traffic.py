"""Between which workers a synchroniser moves how much, and how long links take for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .....machines.machine import Machine
from .....simulator.ways import Ways
from ..strategy import AllReduce, Server, Synchronisation
from ..variables import TrainedVariable

Reals = npt.NDArray[np.float64]


class PairTimes:
    """How long messages take between all pairs of workers, and which lanes they occupy."""

    def __init__(self, machine: Machine, workers: int, wake_nanoseconds: int | None = None) -> None:
        """`wake_nanoseconds` is the measured time that threads take to wake; None for that of the devices."""
        self.workers = workers
        """The number of workers."""
        self.ways = Ways(machine, workers, wake_nanoseconds)
        """The ways of messages."""
        self.latency = np.zeros((workers, workers))
        """`[sender, reader]`: the nanoseconds of a message without bytes."""
        self.per_byte = np.zeros((workers, workers))
        """`[sender, reader]`: the nanoseconds of each byte."""
        lanes: list[tuple[int, ...]] = []
        for sender in range(workers):
            for reader in range(workers):
                if sender == reader:
                    lanes.append(())
                    continue
                way = self.ways.number(sender, reader)
                self.latency[sender, reader], self.per_byte[sender, reader] = self.ways.speed(way)
                lanes.append(self.ways.lanes[way])
        names = self.ways.lane_names
        self.occupies = np.zeros((max(len(names), 1), workers * workers))
        """`[lane, pair]`: 1 if messages of a pair occupy a lane. One worker has an idle lane."""
        for pair, own in enumerate(lanes):
            self.occupies[list(own), pair] = 1
        self._lanes = lanes

    def lanes_of(self, sender: int, reader: int) -> tuple[int, ...]:
        """Return the lanes that messages from one worker to another occupy."""
        return self._lanes[sender * self.workers + reader]

    def of(self, nbytes: Reals) -> Reals:
        """Return the nanoseconds of a message between each pair with these bytes; 0 for none."""
        found: Reals = np.where(nbytes > 0, self.latency + nbytes * self.per_byte, 0.0)
        return found

    def loads(self, nanoseconds: Reals) -> Reals:
        """Return for how long each lane is occupied by messages between pairs."""
        found: Reals = self.occupies @ nanoseconds.ravel()
        return found


@dataclass(frozen=True, slots=True)
class SyncTraffic:
    """The bytes between all pairs of workers, `[sender, reader]`, that synchronise a variable once."""

    gradient: Reals
    """Terms of the gradient, on their way to where they are reduced."""

    spread: Reals
    """The reduced gradient, on its way to all workers."""

    fetched: Reals
    """The variable, on its way to operations that read it, each time."""


def sync_traffic(
    variable: TrainedVariable, how: Synchronisation, workers: int, shares: Sequence[float] | None = None
) -> SyncTraffic:
    """Return what moves if a variable is synchronised in a way. Reduced ones are reduced in `shares`."""
    own = np.full((workers, 1), 1 / workers) if shares is None else np.array(shares)[:, None] / sum(shares)
    gradient, spread, fetched = (np.zeros((workers, workers)) for _ in range(3))
    apart = ~np.eye(workers, dtype=bool)
    whole = max(variable.tensor.shape, default=1) >= workers
    for nbytes, part in zip(part_bytes(variable, how), how.parts, strict=True):
        match part:
            case AllReduce():
                gradient += apart * (nbytes * own.T if whole else nbytes)
                spread += apart * (nbytes * own if whole else 0.0)
            case Server(worker=worker):
                gradient[:, worker] += nbytes
                fetched[worker] += nbytes
    for each in (gradient, spread, fetched):
        np.fill_diagonal(each, 0)
    return SyncTraffic(gradient, spread, fetched)


def part_bytes(variable: TrainedVariable, how: Synchronisation) -> Sequence[float]:
    """Return the bytes of every part of a variable, those of a grid in row-major order."""
    parts = [float(variable.tensor.nbytes)]
    for cut in how.cuts:
        extent = variable.tensor.shape[cut.axis]
        lengths = [upper - lower for lower, upper in pairwise((0, *cut.bounds, extent))]
        parts = [nbytes * length / extent for nbytes in parts for length in lengths]
    return parts
