"""Which samples are held out of training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import DataError
from ..split import DataSplit, Samples
from .dataset import HELD_OUT, refusal

DRAW = 1998
"""The seed of the draw: the same samples are held out for every seed of a run."""


def split(path: Path, samples: Samples, given: Samples | None, fraction: float | None) -> DataSplit:
    """Hold out what the files themselves set apart, or else a fraction drawn by a fixed permutation.

    Both parts keep at least one sample, except that a fraction of 0 holds nothing out. Raises DataError if
    a fraction is asked for although samples are set apart, or there are too few samples.
    """
    if given is not None:
        if fraction is not None:
            raise DataError(f"{path} already holds out {len(given)} samples; remove --hold-out")
        return DataSplit.of(samples, given)
    count = held_out_count(path, len(samples), HELD_OUT if fraction is None else fraction)
    order = np.random.Generator(np.random.Philox(DRAW)).permutation(len(samples))
    cut = len(samples) - count
    return DataSplit.of(samples[np.sort(order[:cut])], samples[np.sort(order[cut:])])


def held_out_count(path: Path, total: int, fraction: float) -> int:
    """Return how many of `total` samples are held out."""
    if not 0 <= fraction < 1:
        raise DataError(f"--hold-out must be a fraction of the samples from 0 to below 1, not {fraction}")
    count = max(1, round(total * fraction)) if fraction else 0
    if total <= count:
        raise refusal(
            path,
            f"at least one sample to train on besides {count} held out",
            f"{total} samples" if total != 1 else "one sample",
            "give more data" if total < 2 else "hold out fewer with --hold-out",
        )
    return count
