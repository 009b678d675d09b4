"""The factors of gradients, counted by hand."""

from __future__ import annotations

import tofu
from tofu.partitioner.methods.autodist.factors import find_factors

from .embedded import BATCH, HIDDEN, WIDTH, embedded


def test_a_product_has_two_factors_and_a_bias_one() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    assert find_factors(graph, 4) == {
        "fc1_weight": 16 * (784 + 128),
        "fc1_bias": 16 * 128,
        "fc2_weight": 16 * (128 + 64),
        "fc2_bias": 16 * 64,
        "fc3_weight": 16 * (64 + 10),
        "fc3_bias": 16 * 10,
    }


def test_a_table_has_indices_and_rows() -> None:
    found = find_factors(embedded(), 2)
    assert found["table_weight"] == BATCH * (1 + WIDTH)
    assert found["fc_weight"] == BATCH * (WIDTH + HIDDEN)


def test_time_steps_have_factors_each() -> None:
    few, many = (
        find_factors(tofu.models.get("lstm", batch=8, steps=steps, hidden=16, layers=1).training_graph(), 2)
        for steps in (1, 3)
    )
    hidden = next(name for name in many if "h2h_weight" in name)
    assert many[hidden] == 3 * few[hidden] == 3 * 8 * (16 + 4 * 16)
