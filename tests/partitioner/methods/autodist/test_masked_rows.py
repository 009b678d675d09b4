"""Tables cut by rows whose lookups are sums of masked rows: bits, bytes, files, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tofu
from tofu.dataflow.rewrites.encoders import Rewrite
from tofu.errors import PlanError
from tofu.partitioner import Plan
from tofu.partitioner.methods.autodist.builders import BUILDERS, all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy
from tofu.sync import rewrite

from . import embedded as small
from .embedded import embedded
from .test_compiling import of_one_worker, require_bits, trained
from .test_rows import BATCH, ROWS, WIDTH, table


def by_rows(workers: int, rows: int) -> Synchronisation:
    servers = tuple(map(Server, range(workers)))
    return Synchronisation(servers, evenly(0, rows, workers), masked=True)


def embedded_plan(how: Synchronisation, workers: int = 4, base: str | None = None) -> Plan:
    graph = embedded()
    strategy = SyncStrategy({**all_reduce(graph, workers).variables, "table_weight": how})
    return compile_strategy(
        graph, workers, strategy, None if base is None else tofu.partition(graph, workers, base)
    )


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_only_indices_and_rows_of_the_batch_travel(workers: int) -> None:
    """The lookup and the gradient each take all indices, and a row of each sample from every other worker."""
    strategy = SyncStrategy({"table_weight": by_rows(workers, ROWS)})
    plan = compile_strategy(table(), workers, strategy)
    assert plan.cost_bytes == 2 * (workers - 1) * 4 * (BATCH * WIDTH + BATCH)
    held = plan.layouts["table_weight"].form
    assert plan.layouts["mom(table_weight)"].form == held


@pytest.mark.parametrize(
    "how",
    [
        by_rows(4, small.ROWS),
        replace(by_rows(4, small.ROWS), partition=Partition(0, (1, 3, 8))),
        replace(by_rows(4, small.WIDTH), partition=evenly(1, small.WIDTH, 4)),
        Synchronisation((Server(2),), masked=True),
        Synchronisation((Server(1), Server(1), Server(0)), Partition(0, (4, 9)), masked=True),
        Synchronisation((AllReduce(),), masked=True),
    ],
    ids=["even", "uneven", "columns", "one server", "two servers", "all-reduce"],
)
def test_masked_sums_train_the_bits_of_one_worker(how: Synchronisation) -> None:
    plan = embedded_plan(how)
    assert plan.graph is not None
    require_bits(trained(plan.graph, plan, 1), of_one_worker())


@pytest.mark.parametrize("base", ["data-parallel", "recursive", "spartan"])
def test_masked_sums_stand_on_a_base(base: str) -> None:
    plan = embedded_plan(by_rows(4, small.ROWS), base=base)
    assert plan.graph is not None
    require_bits(trained(plan.graph, plan, 1), of_one_worker())


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("builder", ["partitioned-ps", "uneven-partitioned-ps", "parallax"])
def test_tables_of_builders_can_be_masked(builder: str, workers: int) -> None:
    graph = embedded()
    built = BUILDERS[builder](graph, workers)
    how = replace(built.variables["table_weight"], masked=True)
    strategy = replace(built, variables={**built.variables, "table_weight": how})
    plan = compile_strategy(graph, workers, strategy)
    require_bits(trained(rewrite(graph, workers, strategy), plan, 1), of_one_worker())


def test_plans_keep_masked_lookups(tmp_path: Path) -> None:
    plan = embedded_plan(by_rows(4, small.ROWS))
    plan.save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    assert loaded.rewrites == {"table_weight": Rewrite(masked=True)}
    graph = rewrite(embedded(), 4, loaded)
    tofu.verify(graph, loaded)
    with pytest.raises(PlanError, match="lookups of 'table_weight'"):
        tofu.lower(embedded(), loaded)


def test_files_ask_for_masked_sums() -> None:
    entry = {"cut": {"axis": 0, "parts": 4}, "workers": [0, 1, 2, 3], "sync": "ps", "masked": True}
    found = parse_strategy({"strategy": 1, "variables": {"*": entry}}, table(), 4)
    assert found.variables == {"table_weight": by_rows(4, ROWS)}
    assert parse_strategy(strategy_document(found), table(), 4) == found
    wrong = {"strategy": 1, "variables": {"*": {**entry, "masked": "yes"}}}
    with pytest.raises(PlanError, match=r'masked is "yes"; it must be true or false'):
        parse_strategy(wrong, table(), 4)


def test_only_sparse_variables_are_masked() -> None:
    graph = embedded()
    built = all_reduce(graph, 4).variables
    strategy = SyncStrategy({**built, "fc_weight": replace(built["fc_weight"], masked=True)})
    with pytest.raises(PlanError, match="'fc_weight' is not read at rows that data choose"):
        compile_strategy(graph, 4, strategy)


@pytest.mark.parametrize(
    "change",
    [
        {"rewrite": Rewrite(delay=2)},
        {"part_rewrites": (Rewrite(delay=1), *[Rewrite()] * 3)},
        {"parts": tuple(Server(each, by_arrival=True) for each in range(4))},
        {"factors": True},
    ],
)
def test_masked_sums_stand_alone(change: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=r"'table_weight'.*(leave out|masked)"):
        embedded_plan(replace(by_rows(4, small.ROWS), **change))  # type: ignore[arg-type]
