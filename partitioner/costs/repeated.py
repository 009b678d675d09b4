"""The price of repeated computation where only bytes are asked for.

Several workers may compute the same part of an operation, so that nobody fetches it. Without a price, every
worker would compute everything and no byte would move. The price is the bytes that could move in the time
that the additional points of the iteration space take. The rate is about that of a V100 on PCIe 3.0 with 16
lanes: 7.8e12 multiplications with additions a second, 900 GB/s of memory, and 15.75 GB/s over the link.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ...analyzer.indices.region import volume
from ..layouts.choices import Counts, OperatorChoices

POINTS_PER_BYTE = 512
"""The points of an iteration space that a worker visits while one byte moves."""

TOUCHED_PER_BYTE = 64
"""The bytes of its own memory that a worker reads or writes while one byte moves."""


def repeated_bytes(operator: OperatorChoices) -> Counts:
    """Return the price in bytes of what each choice computes more than once: `[choices]`.

    Workers that read different terms of a sum do not repeat each other's work.
    """
    bound = operator.bound
    points = prod(bound.extents.values())
    computed = volume(operator.boxes).sum(axis=-1) // operator.reads
    touched = bound.bytes_touched / max(points, 1)
    price = (computed - points) * (1 / POINTS_PER_BYTE + touched / TOUCHED_PER_BYTE)
    whole: Counts = np.floor(price).astype(np.int64)
    return whole
