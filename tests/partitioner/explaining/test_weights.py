"""A plan weight by weight."""

from __future__ import annotations

import pytest

import tofu
from tofu.partitioner import partition
from tofu.partitioner.explaining.weights import Layer, folded, layers
from tofu.partitioner.plans.plan import contributors


def test_low_layers_move_weights_and_high_layers_activations() -> None:
    """Figure 11 of the paper: WResNet-152-10, batch 8, over 8 workers."""
    graph = tofu.models.get("wresnet-152-10", batch=8).training_graph()
    rows = layers(graph, partition(graph, workers=8, keep=False))
    assert len(rows) == 156, "155 convolutions and the classifier"
    of_stage = {
        stage: [row for row in rows if row.weight.startswith(f"stage{stage}")] for stage in (1, 2, 3, 4)
    }
    for row in of_stage[1]:
        assert row.weight_bytes > row.activation_bytes
    for row in of_stage[4]:
        assert row.activation_bytes > row.weight_bytes == 0
    split = {name for row in rows for name, _ in row.variables}
    assert {"n", "c", "f"} <= split, "batch and channels are both split"
    blocks = folded(rows)
    assert max(block.times for block in blocks) == 35, "of 36 equal units the first differs"
    assert sum(len(block.layers) * block.times for block in blocks) == len(rows)


@pytest.mark.parametrize("name", ["mlp", "lenet", "lstm"])
def test_bytes_are_those_of_the_plan(name: str) -> None:
    graph = tofu.models.get(name).training_graph()
    plan = partition(graph, workers=8)
    rows = layers(graph, plan)
    moved = contributors(graph, plan)
    for row in rows:
        own = (row.weight, f"grad({row.weight})")
        assert row.weight_bytes >= sum(entry.bytes for entry in moved if entry.tensor in own)
    assert sum(row.weight_bytes for row in rows) <= plan.cost_bytes
    shared = next(row for row in rows if row.uses > 1) if name == "lstm" else rows[0]
    assert shared.uses == (32 if name == "lstm" else 1)


@pytest.mark.parametrize("name", ["mlp", "lenet", "lstm"])
def test_a_copy_in_another_type_belongs_to_its_weight(name: str) -> None:
    told = []
    for dtype in ("float32", "bfloat16"):
        graph = tofu.models.get(name).training_graph(dtype=dtype)
        rows = layers(graph, partition(graph, workers=2))
        told.append([(row.weight, row.operator, row.uses, row.operation) for row in rows])
    assert told[0] == told[1]


def row(name: str, moved: int) -> Layer:
    return Layer(name, (4, 4), (2, 1), "f", 1, (("i", 2),), (2, 1), moved, 0, name, name, (0, 1), (0, 1))


def test_repeated_blocks_are_told_once() -> None:
    rows = [row(f"w{number}", moved) for number, moved in enumerate([9, 1, 2, 1, 2, 1, 2, 7, 7])]
    assert [(len(block.layers), block.times) for block in folded(rows)] == [(1, 1), (2, 3), (1, 2)]
    assert folded([]) == ()
