"""Trees of live bytes hold the same as rows of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.lifetimes import LiveIntervals
from tofu.partitioner.methods.placement.live_tree import add, built, bytes_at, peak, peak_tick


@given(seed=st.integers(0, 2**32), ticks=st.integers(1, 20), workers=st.integers(1, 3))
def test_trees_hold_what_rows_do(seed: int, ticks: int, workers: int) -> None:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, ticks, 6)
    last = np.minimum(first + generator.integers(0, ticks, 6), ticks - 1)
    live = LiveIntervals(
        workers,
        ticks,
        generator.integers(0, workers, 6),
        first,
        last,
        generator.integers(1, 9, 6),
        np.arange(6),
        np.arange(6),
    )
    rows = np.array([live.live_bytes(worker) for worker in range(workers)])
    highest, added, leaves = built(live, live.workers)
    for _ in range(10):
        tree = int(generator.integers(workers))
        begin, end = int(generator.integers(ticks)), int(generator.integers(ticks))
        nbytes = int(generator.integers(0, 9))
        add(highest, added, leaves, tree, begin, end, nbytes)
        rows[tree, begin : end + 1] += nbytes
        for each in range(workers):
            assert peak(highest, leaves, each) == rows[each].max()
            assert peak_tick(highest, leaves, each) == rows[each].argmax()
        tick = int(generator.integers(ticks))
        assert bytes_at(highest, added, leaves, tree, tick) == rows[tree, tick]
