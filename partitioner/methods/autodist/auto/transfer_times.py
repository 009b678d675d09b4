"""How long the reader of a transfer is busy with it: by the links and the device, or by a profile.

    start      before the messages
    message    of each pair: its latency, and the time of each byte
    own        a piece of the reader's own
    touched    each byte that the reader copies or combines besides messages

A profile has measured whole transfers, so the times of their pieces and bytes are fitted to these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .....simulator.fitted import UnitTimes
from .....simulator.times import NANOSECONDS, ProfiledTimes
from .traffic import PairTimes, Reals

FETCH, SUM = "fetch float32", "reduce by Sum float32"
"""The kinds of transfers that synchronise variables, as profiles name them."""


@dataclass(frozen=True, slots=True)
class TransferTimes:
    """The times of one kind of transfers, in nanoseconds."""

    start: Reals
    """`[reader]`: before the messages."""

    latency: Reals
    """`[sender, reader]`: a message without bytes."""

    per_byte: Reals
    """`[sender, reader]`: each byte of a message."""

    own: Reals
    """`[reader]`: a piece that the reader itself has."""

    touched: Reals
    """`[reader]`: each byte that the reader copies or combines besides messages."""

    def messages(self, nbytes: Reals) -> Reals:
        """Return the times of messages between each pair, `[sender, reader]`; 0 without bytes."""
        found: Reals = np.where(nbytes > 0, self.latency + nbytes * self.per_byte, 0.0)
        return found

    def finish(self, own: Reals, touched: Reals) -> Reals:
        """Return how long readers are busy after messages, by the bytes of own pieces and all they touch."""
        found: Reals = np.where(own > 0, self.own, 0.0) + touched * self.touched
        return found


@dataclass(frozen=True, slots=True)
class SyncTimes:
    """The times of the transfers that synchronise variables."""

    fetch: TransferTimes
    """Those that fetch a variable, or a sum."""

    reduce: TransferTimes
    """Those that sum gradients."""


def sync_times(pairs: PairTimes, profiled: ProfiledTimes | None) -> SyncTimes:
    """Return the times by a profile, if there is one, and by links and devices for what it lacks."""
    none = np.zeros(pairs.workers)
    kinds = pairs.ways.kinds
    start = np.array([kind.start_seconds for kind in kinds]) * NANOSECONDS
    per_byte = np.array([1 / kind.bytes_per_second for kind in kinds]) * NANOSECONDS
    fetch = TransferTimes(start, pairs.latency, pairs.per_byte, none, none)
    reduce = TransferTimes(start, pairs.latency, pairs.per_byte, none, per_byte)
    if profiled is None:
        return SyncTimes(fetch, reduce)
    return SyncTimes(
        _fitted(profiled.transfer_units(FETCH), pairs.workers) or fetch,
        _fitted(profiled.transfer_units(SUM), pairs.workers) or reduce,
    )


def _fitted(units: UnitTimes | None, workers: int) -> TransferTimes | None:
    if units is None:
        return None
    piece, touched, remote = (unit * NANOSECONDS for unit in units.units)
    pairs, each = (workers, workers), np.zeros(workers)
    return TransferTimes(each, np.full(pairs, piece), np.full(pairs, remote), each + piece, each + touched)
