"""Bytes by pairs of machines: they add up to the plan's, and each piece is counted for its link."""

from __future__ import annotations

import numpy as np

import tofu
from tofu.partitioner.costs.traffic import traffic, worker_bytes
from tofu.reports.links import link_facts


def test_links_add_up_to_what_a_machine_file_says() -> None:
    graph = tofu.models.get("lenet", batch=8).training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, 8))
    places = tuple(worker // 2 for worker in range(8))
    between = worker_bytes(partitioned)
    sent = between.reshape(4, 2, 4, 2).sum(axis=(1, 3))
    found = link_facts(partitioned, places, ["a", "a", "b", "b"], sent.tolist())
    assert [(link["from"], link["to"]) for link in found] == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert all(link["planned_bytes"] == link["sent_bytes"] for link in found)
    machine = tofu.machines.load("2x-p100-node")
    crossing = traffic(partitioned, machine).crossing_bytes
    assert sum(link["planned_bytes"] for link in found if link["from"] != link["to"]) == crossing[0] > 0
    assert sum(link["planned_bytes"] for link in found) == sum(crossing) == partitioned.planned_bytes


def test_what_was_sent_may_differ_from_the_plan() -> None:
    graph = tofu.models.get("mlp", batch=8).training_graph()
    partitioned = tofu.lower(graph, tofu.partition(graph, 2))
    [first, there, back, last] = link_facts(partitioned, (0, 1), ["a", "b"], [[1, 2], [3, 4]])
    assert [each["sent_bytes"] for each in (first, there, back, last)] == [1, 2, 3, 4]
    assert there["planned_bytes"] == np.asarray(worker_bytes(partitioned))[0, 1]
