"""The arena of one worker, given when its buffers are live and which of them take over others' memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..support.integers import Integers
from .offsets import ALIGNMENT_BYTES, live_sizes, place


@dataclass(frozen=True, slots=True)
class Arena:
    """The plan of one worker's arena."""

    offsets: tuple[int, ...]
    """The offset of each buffer."""

    nbytes: int
    """The size of the arena."""

    live_bytes: Integers
    """The bytes that are live at every tick."""


def plan_arena(
    sizes: Integers, births: Integers, deaths: Integers, hosts: Integers, enough: int = 0
) -> Arena:
    """Plan the arena of buffers that are live from `births` to `deaths`, both included.

    `hosts` are the buffers whose memory they take over, or their own numbers. A buffer that dies before it is
    born needs no memory. An arena of `enough` is not made smaller.
    """
    merged_births, merged_deaths = births.copy(), deaths.copy()
    np.minimum.at(merged_births, hosts, births)
    np.maximum.at(merged_deaths, hosts, deaths)
    births, deaths = merged_births, merged_deaths
    owners = np.flatnonzero((hosts == np.arange(len(sizes))) & (births <= deaths) & (sizes > 0))
    offsets = np.zeros(len(sizes), np.int64)
    if not len(owners):
        return Arena(tuple(offsets.tolist()), 0, np.zeros(1, np.int64))
    aligned = -(-sizes[owners] // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    offsets[owners], nbytes = place(aligned, births[owners], deaths[owners], enough)
    live = live_sizes(sizes[owners], births[owners], deaths[owners])
    return Arena(tuple(offsets[hosts].tolist()), nbytes, live)
