"""Rows of sparse variables: the same bits, as many bytes as formulas say, and only if they are fewer."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tofu
from tofu.dataflow import sym
from tofu.dataflow.graph import Graph
from tofu.dataflow.naming import NameScope
from tofu.dataflow.rewrites.encoders import Cast, Rewrite
from tofu.dataflow.training import training_graph
from tofu.errors import PlanError
from tofu.partitioner import Plan
from tofu.partitioner.methods.autodist.builders import BUILDERS, all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)
from tofu.partitioner.methods.autodist.strategy_document import strategy_document
from tofu.partitioner.methods.autodist.strategy_file import parse_strategy

from .embedded import embedded
from .test_compiling import of_one_worker, require_bits, trained

ROWS, WIDTH, BATCH, WORKERS = 2000, 16, 32, 4


def table() -> Graph:
    """Return the training graph of a table of which a batch chooses few rows."""
    with NameScope():
        net = sym.Embedding(sym.Variable("data"), input_dim=ROWS, output_dim=WIDTH, name="table")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"), name="out")
    return training_graph(net, {"data": (BATCH,), "label": (BATCH, WIDTH)}, "sgd")


def moved(how: Synchronisation) -> int:
    return compile_strategy(table(), WORKERS, SyncStrategy({"table_weight": how})).cost_bytes


INDICES, CHOSEN = 4 * BATCH, 4 * BATCH * WIDTH
"""The bytes of a batch's indices, and of the rows that they choose."""

OTHERS = WORKERS - 1
SERVER = Synchronisation((Server(1),), rows=True)
COLUMNS = Synchronisation(tuple(map(Server, range(4))), evenly(1, WIDTH, 4), rows=True)


def test_a_server_gathers_rows_and_sends_them() -> None:
    """Its worker has a quarter of the samples; indices are fetched by the lookup and by the gradient."""
    assert moved(SERVER) == OTHERS * (2 * INDICES + 2 * CHOSEN) // WORKERS
    assert moved(replace(SERVER, rows=False)) == 2 * OTHERS * 4 * ROWS * WIDTH


def test_columns_move_as_many_rows() -> None:
    assert moved(COLUMNS) == OTHERS * (2 * INDICES + 2 * CHOSEN // WORKERS)


def test_an_all_reduce_becomes_a_gather_of_rows() -> None:
    assert moved(Synchronisation((AllReduce(),), rows=True)) == OTHERS * (INDICES + CHOSEN)
    assert moved(Synchronisation((AllReduce(),))) == 2 * OTHERS * 4 * ROWS * WIDTH


def test_rows_are_left_if_they_are_more() -> None:
    """The table of `embedded` has few rows, so its gradient moves as a whole."""
    graph = embedded()
    plain = all_reduce(graph, 4)
    asked = SyncStrategy({name: replace(how, rows=True) for name, how in plain.variables.items()})
    found, expected = (compile_strategy(graph, 4, each).cost_bytes for each in (asked, plain))
    assert found <= expected


@pytest.mark.parametrize("how", [SERVER, Synchronisation((AllReduce(),), rows=True), COLUMNS])
def test_rows_train_the_bits_of_one_worker(how: Synchronisation) -> None:
    graph = embedded()
    if how.partition is not None:
        how = replace(how, partition=evenly(1, 5, 4))
    strategy = SyncStrategy({**all_reduce(graph, 4).variables, "table_weight": how})
    require_bits(trained(graph, compile_strategy(graph, 4, strategy), 1), of_one_worker())


@pytest.mark.parametrize("builder", BUILDERS)
def test_every_builder_takes_rows(builder: str) -> None:
    graph = embedded()
    plain = BUILDERS[builder](graph, 4)
    asked = SyncStrategy({name: replace(how, rows=True) for name, how in plain.variables.items()})
    plan = compile_strategy(graph, 4, asked)
    require_bits(trained(graph, plan, 1), of_one_worker())
    assert plan.cost_bytes <= compile_strategy(graph, 4, plain).cost_bytes


def test_a_delay_keeps_rows() -> None:
    how = replace(SERVER, rewrite=Rewrite(delay=1))
    assert moved(how) == moved(SERVER)


def test_tables_of_recurrent_networks_are_sparse_as_well() -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=1).training_graph()
    plain = all_reduce(graph, 4)
    asked = SyncStrategy({name: replace(how, rows=True) for name, how in plain.variables.items()})
    plans: list[Plan] = [compile_strategy(graph, 4, each) for each in (asked, plain)]
    tofu.verify(graph, plans[0])
    assert plans[0].cost_bytes < plans[1].cost_bytes


def test_rows_are_neither_encoded_nor_summed_in_two_levels() -> None:
    for how in (
        Synchronisation((AllReduce(),), None, Rewrite(Cast("float16")), rows=True),
        Synchronisation((AllReduce(two_level=True),), rows=True),
    ):
        with pytest.raises(PlanError, match="'table_weight' exchanges rows, which are not encoded"):
            moved(how)


def test_files_ask_for_rows() -> None:
    document = {"strategy": 1, "variables": {"*": {"sync": "ps", "worker": 1, "rows": True}}}
    found = parse_strategy(document, table(), WORKERS)
    assert found.variables == {"table_weight": SERVER}
    assert parse_strategy(strategy_document(found), table(), WORKERS) == found
    wrong = {"strategy": 1, "variables": {"*": {"sync": "ps", "worker": 1, "rows": 1}}}
    with pytest.raises(PlanError, match="rows is 1; it must be true or false"):
        parse_strategy(wrong, table(), WORKERS)
