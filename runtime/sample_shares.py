"""Which worker's process evaluates which samples of an output, so that no process needs all of it.

Every worker that holds whole rows of an output may evaluate them. Workers that hold the same rows share them
evenly. All processes derive the same shares from the programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..analyzer.indices.region import Region
from ..programs.program import Held, PartitionedGraph


@dataclass(frozen=True, slots=True)
class SampleShare:
    """Consecutive samples of an output that one worker's process evaluates."""

    held: Held
    """The worker and its buffer, which has all rows of the samples."""

    samples: tuple[int, int]
    """The first sample, and the one after the last."""

    rows: tuple[int, int]
    """The rows of the buffer that belong to them."""


def sample_shares(partitioned: PartitionedGraph, tensor: int, samples: int) -> list[SampleShare] | None:
    """Return the shares of a tensor's rows, in the order of samples, which have equally many rows each.

    Return None if some worker does not hold whole samples, or if samples have different numbers of rows.
    """
    shape = partitioned.graph.tensors[tensor].shape
    if not shape or shape[0] % samples:
        return None
    each = shape[0] // samples
    holders: dict[tuple[int, int], list[Held]] = {}
    for worker, buffer in partitioned.homes[tensor]:
        region = partitioned.programs[worker].buffers[buffer].region
        if not _has_samples(region, shape, each):
            return None
        holders.setdefault(region[0], []).append((worker, buffer))
    found = []
    for (lower, upper), sharing in sorted(holders.items()):
        first, count = lower // each, (upper - lower) // each
        for number, held in enumerate(sharing):
            begin, end = count * number // len(sharing), count * (number + 1) // len(sharing)
            if begin < end:
                found.append(SampleShare(held, (first + begin, first + end), (each * begin, each * end)))
    return found


def _has_samples(region: Region, shape: tuple[int, ...], each: int) -> bool:
    """Tell whether a region has whole rows, and all rows of its samples."""
    lower, upper = region[0]
    whole = all(bounds == (0, extent) for bounds, extent in zip(region[1:], shape[1:], strict=True))
    return whole and not lower % each and not upper % each
