"""Every placer gives every node a worker, and each node that of its leader."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tofu.partitioner.methods.placement.placers import placers

from .random_graphs import joined_devices, training_like


@pytest.mark.parametrize("name", placers())
@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5))
def test_leaders_are_followed(name: str, seed: int, workers: int) -> None:
    graph, devices = training_like(seed, 25, kinds=2), joined_devices(workers, kinds=2)
    worker = placers()[name](graph, devices)
    assert worker.dtype == np.int64
    assert worker.shape == (graph.count,)
    assert ((worker >= 0) & (worker < workers)).all()
    assert np.array_equal(worker, worker[graph.leader])
    assert np.array_equal(worker, placers()[name](graph, devices))
