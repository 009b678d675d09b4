"""NaN is found in the first result that holds one, and named by its place in the whole tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tofu
from tofu.runtime.executor import Executor
from tofu.runtime.nan_watch import first_nan


@pytest.mark.parametrize(
    ("array", "region", "says"),
    [
        (np.array([1.0, 2.0]), ((0, 2),), None),
        (np.array([np.inf, -np.inf]), ((0, 2),), None),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), ((4, 6), (10, 12)), "w[5, 11]"),
        (np.array([np.nan, 0.0, np.nan]), ((7, 10),), "w[7]"),
        (np.array(np.nan), (), "w[()]"),
        (np.zeros(0), ((3, 3),), None),
    ],
)
def test_the_first_nan_is_named(array: np.ndarray, region: Any, says: str | None) -> None:
    assert first_nan("w", array, region) == says


@pytest.mark.filterwarnings("error")
def test_numpy_does_not_warn_besides() -> None:
    graph = tofu.models.get("mlp", batch=4).training_graph()
    with Executor(tofu.lower(graph, tofu.partition(graph, 2))) as executor:
        for tensor in graph.tensors:
            if tensor.role.persistent and tensor.alias is None:
                executor.write(tensor.name, np.full(tensor.shape, np.inf, np.float32))
        executor.run()
        assert np.isnan(executor.read("softmax_output")).all()
