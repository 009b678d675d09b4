"""SyncStrategy files mean what they say, and hostile ones are refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.builders import BUILDERS
from tofu.partitioner.methods.autodist.strategy import AllReduce, Partition, Server, Synchronisation
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import (
    parse_strategy,
    read_strategy,
)

from .embedded import embedded

GRAPH = embedded()
WORKERS = 4


def in_file(folder: Path, text: str) -> Path:
    path = folder / "strategy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_names_count_more_than_patterns(tmp_path: Path) -> None:
    text = """
    strategy: 1
    workers: 4
    variables:
      "fc_*": {sync: all-reduce, group: 2}
      fc_weight: {cut: {axis: 1, parts: 2}, sync: ps, workers: [3, 1], proxy: true}
      "*":
        cut: {axis: 0, bounds: [5]}
        parts:
          - {sync: ps, worker: 2}
          - {sync: all-reduce}
    """
    assert read_strategy(in_file(tmp_path, text), GRAPH, WORKERS).variables == {
        "table_weight": Synchronisation((Server(2), AllReduce()), Partition(0, (5,))),
        "fc_weight": Synchronisation((Server(3, True), Server(1, True)), Partition(1, (3,))),
        "fc_bias": Synchronisation((AllReduce(2),)),
    }


def test_grids_are_in_row_major_order(tmp_path: Path) -> None:
    text = """
    strategy: 1
    variables:
      fc_bias: {sync: all-reduce, factors: true}
      "*":
        cut: [{axis: 0, parts: 2}, {axis: 1, bounds: [1, 4]}]
        sync: ps
        workers: [0, 1, 2, 3, 0, 1]
    """
    found = read_strategy(in_file(tmp_path, text), GRAPH, WORKERS).variables
    grid = (Partition(0, (6,)), Partition(1, (1, 4)))
    servers = tuple(Server(worker) for worker in (0, 1, 2, 3, 0, 1))
    assert found["table_weight"] == Synchronisation(servers, grid)
    assert found["fc_bias"] == Synchronisation((AllReduce(),), factors=True)


def test_a_file_names_devices_replicas_and_a_base(tmp_path: Path) -> None:
    (tmp_path / "boxes.yaml").write_text(
        "machine: boxes\nlevels: [{name: box, bandwidth: 1 GB/s}, {name: gpu, bandwidth: 9 GB/s}]\n"
        "devices: [[a0, a1], [b0, b1]]\n",
        encoding="utf-8",
    )
    tofu.partition(GRAPH, WORKERS, "refine").save(tmp_path / "plan.json")
    text = """
    strategy: 1
    machine: boxes.yaml
    base: plan.json
    replicas: [[a1, a0], [b0, b1]]
    variables:
      fc_bias: {sync: all-reduce, order: [b1, a0, a1, b0], tree: two-level}
      "*": {sync: ps, worker: b0, via: [a0, b0]}
    """
    found = read_strategy(in_file(tmp_path, text), GRAPH, WORKERS)
    assert found.replicas == ((1, 0), (2, 3))
    assert found.base == str(tmp_path / "plan.json")
    assert found.variables["fc_bias"].parts == (AllReduce(order=(3, 0, 1, 2), two_level=True),)
    assert found.variables["fc_weight"].parts == (Server(2, via=(0, 2)),)
    assert parse_strategy(strategy_document(found), GRAPH, WORKERS) == found


@pytest.mark.parametrize(("base", "found"), [("data-parallel", None), ("megatron:tp2", "megatron:tp2")])
def test_a_base_may_be_a_method(base: str, found: str | None) -> None:
    document = {"strategy": 1, "base": base, "replicas": [2, 0], "variables": {"*": {"sync": "all-reduce"}}}
    read = parse_strategy(document, GRAPH, WORKERS)
    assert (read.base, read.replicas) == (found, ((2, 0),))


def test_devices_that_several_workers_share_are_not_names() -> None:
    machine = tofu.machines.load("dgx-1-v100")
    shared = dataclasses.replace(machine, worker_devices=(0, 0, 1, 2))
    entry = {"sync": "ps", "worker": "gpu1"}
    found = parse_strategy({"strategy": 1, "variables": {"*": entry}}, GRAPH, WORKERS, shared)
    assert found.variables["fc_bias"].parts == (Server(2),)
    again = {"strategy": 1, "variables": {"*": {"sync": "ps", "worker": "gpu0"}}}
    with pytest.raises(PlanError, match="'gpu0', on which 2 of 4 workers run; give the worker's number"):
        parse_strategy(again, GRAPH, WORKERS, shared)


def test_parts_without_entries_of_their_own_are_equal() -> None:
    entry = {"cut": {"axis": 0, "parts": 3}, "sync": "ps", "worker": 1}
    document = {"strategy": 1, "variables": {"*": entry}, "graph": GRAPH.fingerprint}
    found = parse_strategy(document, GRAPH, WORKERS).variables["fc_bias"]
    assert found == Synchronisation((Server(1),) * 3, Partition(0, (3, 6)))


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_is_written_is_read_again(builder: str) -> None:
    strategy = BUILDERS[builder](GRAPH, WORKERS)
    assert parse_strategy(strategy_document(strategy), GRAPH, WORKERS) == strategy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"cannot read the strategy file .*none.yaml"):
        read_strategy(tmp_path / "none.yaml", GRAPH, WORKERS)
