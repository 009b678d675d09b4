"""Operations stand with the weights that they read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tofu.partitioner.methods.placement.by_tensor import by_tensor
from tofu.partitioner.methods.placement.one_device import one_device
from tofu.support.integer_lists import IntegerLists

from .random_graphs import joined_devices, random_graph


def test_steps_stand_with_the_weights_of_their_layer() -> None:
    """Two layers of two steps, step by step: weights 0 and 1, cells 2 to 5, activations 6 to 9."""
    cells = {2: 0, 4: 1, 6: 0, 8: 1}
    readers: list[list[int]] = [[cell for cell, layer in cells.items() if layer == each] for each in (0, 1)]
    readers += [[3], [4, 6], [5], [8], [7], [8], [9], []]
    graph = replace(
        random_graph(0, 10),
        nanoseconds=np.array([[0, 0, *[5] * 8]]),
        readers=IntegerLists.of(readers),
        lasting=np.arange(10) < 2,
    )
    assert by_tensor(graph, joined_devices(2)).tolist() == [0, 1, 0, 0, 1, 1, 0, 0, 1, 1]


def test_the_largest_weight_decides_and_updates_follow() -> None:
    graph = replace(
        random_graph(0, 6),
        nanoseconds=np.array([[0, 0, 5, 5, 5, 5]]),
        sent_bytes=np.array([10, 20, 1, 1, 1, 1]),
        readers=IntegerLists.of([[2, 3], [3, 4], [], [], [5], []]),
        leader=np.array([0, 1, 2, 3, 4, 0]),
        lasting=np.array([True, True, False, False, False, False]),
    )
    assert by_tensor(graph, joined_devices(2)).tolist() == [0, 1, 0, 1, 1, 0]


def test_what_comes_before_all_weights_stands_with_its_reader() -> None:
    graph = replace(
        random_graph(0, 5),
        nanoseconds=np.array([[0, 9, 9, 9, 9]]),
        readers=IntegerLists.of([[2], [2], [3], [], []]),
        lasting=np.arange(5) < 1,
    )
    assert by_tensor(graph, joined_devices(2)).tolist() == [0, 0, 0, 0, 1]
    assert len(set(one_device(graph, joined_devices(2)).tolist())) == 1
