"""Builders against examples worked out by hand from AutoDist's code."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import tofu
from tofu.errors import PlanError
from tofu.partitioner.methods.autodist import builders
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
    evenly,
)

from .embedded import embedded

MLP = tofu.models.get("mlp", batch=8).training_graph()
"""Variables in order, with bytes: fc1_weight (128, 784) 401,408; fc1_bias (128) 512; fc2_weight (64, 128)
32,768; fc2_bias (64) 256; fc3_weight (10, 64) 2,560; fc3_bias (10) 40.
"""


def servers(strategy: SyncStrategy) -> dict[str, tuple[int, ...]]:
    """Return the workers of the parts of every variable, all of which have servers."""
    return {
        name: tuple(part.worker for part in how.parts if isinstance(part, Server))
        for name, how in strategy.variables.items()
    }


def groups(strategy: SyncStrategy) -> list[tuple[int, ...]]:
    """Return the groups of the parts of every variable, all of which are reduced."""
    return [
        tuple(part.group for part in how.parts if isinstance(part, AllReduce))
        for how in strategy.variables.values()
    ]


def test_ps_has_one_server() -> None:
    assert set(servers(builders.ps(MLP, 3)).values()) == {(0,)}
    assert builders.ps(MLP, 3, proxy=True).variables["fc1_bias"] == Synchronisation((Server(0, True),))


def test_ps_load_balancing_takes_the_least_loaded() -> None:
    """Loads with 3 workers: 401,408 on 0; 512 on 1; 32,768 on 2; 1 has 768, then 3,328, then 3,368."""
    assert servers(builders.ps_load_balancing(MLP, 3)) == {
        "fc1_weight": (0,),
        "fc1_bias": (1,),
        "fc2_weight": (2,),
        "fc2_bias": (1,),
        "fc3_weight": (1,),
        "fc3_bias": (1,),
    }


def test_partitioned_ps_takes_the_least_divisor() -> None:
    """All numbers of rows are even: 2 parts. Loads with 3 workers, in bytes:

    fc1_weight 200,704 on 0 and 1; fc1_bias 256 on 2 and 0; fc2_weight 16,384 on 2 and 1; fc2_bias 128 on 2
    and 0 (16,640 and 200,960 before; 1 has 217,088); fc3_weight and fc3_bias likewise.
    """
    strategy = builders.partitioned_ps(MLP, 3)
    assert servers(strategy) == {
        "fc1_weight": (0, 1),
        "fc1_bias": (2, 0),
        "fc2_weight": (2, 1),
        "fc2_bias": (2, 0),
        "fc3_weight": (2, 0),
        "fc3_bias": (2, 0),
    }
    assert strategy.variables["fc3_weight"].partition == Partition(0, (5,))


def test_uneven_partitioned_ps_takes_the_least_number_that_does_not_divide() -> None:
    """128, 64 and 10 rows: 3 parts; with 2 workers the least loaded one has the first and the last.

    fc1_weight: 0, 1, 0, so 1 has less from there on, until 0 does: 267,605 against 133,803 bytes before
    fc1_bias. Worker 1 stays below: 341, 21,845, 171, 1,707 and 27 bytes are added to it.
    """
    strategy = builders.uneven_partitioned_ps(MLP, 2)
    assert servers(strategy) == {
        "fc1_weight": (0, 1, 0),
        **dict.fromkeys(list(strategy.variables)[1:], (1, 0, 1)),
    }
    assert strategy.variables["fc1_weight"].partition == Partition(0, (43, 86))
    assert strategy.variables["fc3_weight"].partition == Partition(0, (4, 7))


@pytest.mark.parametrize(
    ("extent", "divisor", "uneven"),
    [(1, 1, 1), (2, 2, 2), (3, 3, 2), (4, 2, 3), (6, 2, 4), (9, 3, 2), (12, 2, 5), (13, 13, 2), (60, 2, 7)],
)
def test_numbers_of_parts(extent: int, divisor: int, uneven: int) -> None:
    assert (builders.least_divisor(extent), builders.least_uneven(extent)) == (divisor, uneven)


def test_tensorflow_cuts_the_first_parts_larger() -> None:
    edges = (0, *evenly(0, 11, 4).bounds, 11)
    assert [upper - lower for lower, upper in pairwise(edges)] == [3, 3, 3, 2]


def test_all_reduce_groups_neighbours() -> None:
    assert groups(builders.all_reduce(MLP, 4)) == [(0,)] * 6
    assert groups(builders.all_reduce(MLP, 4, chunk_size=4)) == [(0,), (0,), (0,), (0,), (1,), (1,)]


def test_partitioned_all_reduce_groups_parts() -> None:
    strategy = builders.partitioned_all_reduce(MLP, 4, chunk_size=3)
    assert groups(strategy) == [(0, 0), (0, 1), (1, 1), (2, 2), (2, 3), (3, 3)]
    assert strategy.variables["fc1_weight"].partition == Partition(0, (64,))


def test_a_random_axis_is_any_but_that_of_a_sparse_variable() -> None:
    def axes(seed: int) -> dict[str, int]:
        strategy = builders.random_axis_partitioned_all_reduce(embedded(), 2, seed=seed)
        return {name: how.partition.axis for name, how in strategy.variables.items() if how.partition}

    found = [axes(seed) for seed in range(20)]
    assert found == [axes(seed) for seed in range(20)]
    assert {each["table_weight"] for each in found} == {0}
    assert {each["fc_weight"] for each in found} == {0, 1}


def test_parallax_puts_sparse_variables_on_servers() -> None:
    assert builders.parallax(embedded(), 2, chunk_size=2) == SyncStrategy(
        {
            "table_weight": Synchronisation((Server(0),)),
            "fc_weight": Synchronisation((AllReduce(0),)),
            "fc_bias": Synchronisation((AllReduce(1),)),
        }
    )


@pytest.mark.parametrize("build", [builders.all_reduce, builders.partitioned_all_reduce, builders.parallax])
def test_empty_groups_are_refused(build: Any) -> None:
    with pytest.raises(PlanError, match="a group has 0 variables"):
        build(MLP, 2, chunk_size=0)
