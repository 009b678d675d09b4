"""SyncStrategy files mean what they say, and hostile ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tofu.errors import PlanError
from tofu.partitioner.methods.autodist.builders import BUILDERS
from tofu.partitioner.methods.autodist.strategy import AllReduce, Partition, Server, Synchronisation
from tofu.partitioner.methods.autodist.strategy_file import (
    parse_strategy,
    read_strategy,
    strategy_document,
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


def test_parts_without_entries_of_their_own_are_equal() -> None:
    entry = {"cut": {"axis": 0, "parts": 3}, "sync": "ps", "worker": 1}
    document = {"strategy": 1, "variables": {"*": entry}, "graph": GRAPH.fingerprint}
    found = parse_strategy(document, GRAPH, WORKERS).variables["fc_bias"]
    assert found == Synchronisation((Server(1),) * 3, Partition(0, (3, 6)))


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_is_written_is_read_again(builder: str) -> None:
    strategy = BUILDERS[builder](GRAPH, WORKERS)
    assert parse_strategy(strategy_document(strategy), GRAPH, WORKERS) == strategy


def entry(text: str) -> str:
    return f'strategy: 1\nvariables:\n  "*_bias": {{sync: all-reduce}}\n  "*_weight": {text}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is null; it must be an object"),
        ("strategy: 2\nvariables: {}", "strategy is 2; it must lie between 1 and 1"),
        ("strategy: 1", "the file lacks 'variables'"),
        ("strategy: 1\nvariables: {}", "variables has nothing for 'table_weight' .3 in all"),
        ("strategy: 1\nworkers: 2\nvariables: {}", "workers is 2, but the plan is for 4"),
        ("strategy: 1\ngraph: 5f3c\nvariables: {}", "graph is '5f3c', but that of .* is '"),
        ("strategy: 1\nvariables: {fc_wieght: {sync: ps}}", "'fc_wieght' matches no variable; did you mean"),
        ("strategy: 1\nstrategy: 1\nvariables: {}", "'strategy' occurs twice"),
        ("strategy: 1\nvariables: &all {a: *all}", "line 2 has an alias"),
        ("strategy: !!python/object/apply:os.getcwd []\nvariables: {}", "it is not valid YAML"),
        (entry("all-reduce"), r"variables\['\*_weight'\] is \"all-reduce\"; it must be an object"),
        (entry("{worker: 1}"), r"\['\*_weight'\] lacks 'sync'"),
        (entry("{sync: gossip}"), "sync is 'gossip'; there are: all-reduce, ps"),
        (entry("{sync: ps}"), "lacks 'worker'; its keys are sync, worker, proxy"),
        (entry("{sync: ps, worker: 4}"), r"\['\*_weight'\].worker is 4; it must lie between 0 and 3"),
        (entry("{sync: ps, worker: 1.5}"), "worker is 1.5; it must be an integer"),
        (entry("{sync: ps, worker: 1, group: 1}"), "unknown key 'group'"),
        (entry("{sync: ps, worker: 1, proxy: 1}"), "proxy is 1; it must be true or false"),
        (entry("{sync: all-reduce, group: -1}"), "group is -1; it must lie between"),
        (entry("{sync: all-reduce, cut: {axis: 0}}"), "cut needs 'parts' or 'bounds'"),
        (entry("{sync: all-reduce, cut: {axis: 2, parts: 2}}"), "axis is 2; it must lie between 0 and 1"),
        (entry("{sync: all-reduce, cut: {axis: 0, parts: 13}}"), "parts is 13; it must lie between 1 and 12"),
        (entry("{sync: all-reduce, cut: {axis: 0, bounds: [4, 4]}}"), r"the bounds \[4, 4\] do not cut"),
        (entry("{cut: {axis: 0, parts: 2}, parts: [{sync: all-reduce}]}"), "has 1 entries for 2 parts"),
        (entry("{sync: ps, parts: [{sync: all-reduce}]}"), "has 'parts' and 'sync'"),
        (entry("{sync: ps, workers: [0, 1]}"), "workers has 2 entries for 1 parts"),
        (entry("{sync: ps, worker: 0, workers: [0]}"), "workers stands next to 'worker'"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = in_file(tmp_path, text)
    with pytest.raises(PlanError, match=message) as caught:
        read_strategy(path, GRAPH, WORKERS)
    assert str(caught.value).startswith(f"the strategy file {str(path)!r} cannot be used: ")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"cannot read the strategy file .*none.yaml"):
        read_strategy(tmp_path / "none.yaml", GRAPH, WORKERS)
