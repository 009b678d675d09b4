"""Builders on five models: assignments worked out by hand, and the bytes that they move.

Loads are worked out next to each example: the worker that is taken, and its bytes after that.
"""

from __future__ import annotations

from functools import cache
from math import prod

import pytest

import tofu
from tofu.dataflow.graph import Graph, Role
from tofu.errors import PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist import builders
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.shares import shares
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.partitioner.methods.autodist.variables import TrainedVariable, find_variables
from tofu.programs.program import MultiFetch, Reduce

from ....runtime.test_partitioned_training import training
from .embedded import embedded
from .test_builders import groups, servers

MODELS = ("perceptron", "lenet", "embedding", "wresnet", "transformer")


@cache
def graph_of(model: str) -> Graph:
    match model:
        case "perceptron":
            return training("perceptron")
        case "lenet":
            return tofu.models.get("lenet", batch=10).training_graph()
        case "embedding":
            return embedded()
        case "wresnet":
            return tofu.models.get("wresnet-10-2", batch=8).training_graph()
        case _:
            small = tofu.models.get("transformer-encoder-1-8", batch=4, heads=2, steps=3, vocabulary=15)
            return small.training_graph()


@cache
def variables_of(model: str) -> tuple[TrainedVariable, ...]:
    return find_variables(graph_of(model))


LOADS = {
    # 1584 on 0; 144 on 1; 1152 on 2; 64 on 1: 208.
    ("perceptron", 3): [0, 1, 2, 1],
    # 2000 on 0; 80 on 1; 100,000 on 2; 200 on 1: 280; 1,600,000 on 1; 2000, 20,000 and 40 on 0.
    ("lenet", 3): [0, 1, 2, 1, 1, 0, 0, 0],
    # 480 on 0; 320 on 1; 64 on 1: 384.
    ("embedding", 2): [0, 1, 1],
    # 12 on 0; 1728 on 1; 64, 64 and 18,432 on 0: 18,572; 128, 128 and 36,864 on 1: 38,848;
    # 2048, 128, 128 and 73,728 on 0: 94,604; 256, 256 and 147,456 on 1: 186,816;
    # 8192, 256, 256 and 294,912 on 0: 398,220; 512, 512 and 589,824 on 1: 777,664; all others on 0: 437,172.
    ("wresnet", 2): [
        *(0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0),
        *(0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0),
    ],
    # 480 on 0; 96, 32, 32, 256, 32 and 256 on 1: 704; 32 and 256 on 0: 768; 32 and 256 on 1: 992;
    # 32, 32, 32 and 1024 on 0: 1888; 128 and 1024 on 1: 2144; 32, 32 and 32 on 0: 1984.
    ("transformer", 2): [0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0],
}


@pytest.mark.parametrize(("model", "workers"), LOADS)
def test_ps_load_balancing(model: str, workers: int) -> None:
    found = servers(builders.ps_load_balancing(graph_of(model), workers))
    assert [worker for (worker,) in found.values()] == LOADS[model, workers]


@pytest.mark.parametrize("model", MODELS)
def test_ps(model: str) -> None:
    assert set(servers(builders.ps(graph_of(model), 2)).values()) == {(0,)}


PARTITIONED = {
    # Halves of 1584 on 0 and 1: 792; of 144 on 2 and 0: 72, 864; of 1152 on 2 and 1: 648, 1368;
    # of 64 on 2 and 0.
    ("perceptron", 3): [(0, 1), (2, 0), (2, 1), (2, 0)],
    # 1000 on 0 and 1; 40 on 2 and 0: 40, 1040; 50,000 on 2 and 1: 50,040, 51,000;
    # 100 on 0 and 2: 1140, 50,140; 800,000 on 0 and 2: 801,140, 850,140;
    # 1000 on 1 and 0: 52,000, 802,140; 10,000 and 20 on 1 and 0.
    ("lenet", 3): [(0, 1), (2, 0), (2, 1), (0, 2), (0, 2), (1, 0), (1, 0), (1, 0)],
    # 240 on 0 and 1; 160 on 2 and 0: 160, 400; 32 on 2 and 1.
    ("embedding", 3): [(0, 1), (2, 0), (2, 1)],
}

UNEVEN = {
    # 18 rows in 4, 4, 8 in 3 and 3: 396 each, 792 on both; 36 each, 828 on both; 384: 1596 on 0, 1212 on 1;
    # 21: 1254 on 1.
    ("perceptron", 2): [(0, 1, 0, 1), (0, 1, 0, 1), (0, 1, 0), (1, 0, 1)],
    # 667 each: 1333 on 0, 667 on 1; 27: 1360, 720; 33,333: 34,693, 67,387; 67: 34,827, 67,453;
    # 533,333: 1,101,493, 600,787; 667, 6667 and 13 more on 1 than on 0, which stays ahead.
    ("lenet", 2): [(0, 1, 0), (1, 0, 1), (1, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 1), (1, 0, 1), (1, 0, 1)],
    # 12 rows in 5: 96 each, 288 on 0, 192 on 1; 8 in 3: 107 each, 395 on 0, 405 on 1; 21 each.
    ("embedding", 2): [(0, 1, 0, 1, 0), (1, 0, 1), (0, 1, 0)],
}


@pytest.mark.parametrize(("model", "workers"), PARTITIONED)
def test_partitioned_ps(model: str, workers: int) -> None:
    found = servers(builders.partitioned_ps(graph_of(model), workers))
    assert list(found.values()) == PARTITIONED[model, workers]


@pytest.mark.parametrize(("model", "workers"), UNEVEN)
def test_uneven_partitioned_ps(model: str, workers: int) -> None:
    found = servers(builders.uneven_partitioned_ps(graph_of(model), workers))
    assert list(found.values()) == UNEVEN[model, workers]


ROWS = {
    "perceptron": {18: (2, 4), 8: (2, 3)},
    "lenet": {20: (2, 3), 50: (2, 3), 500: (2, 3), 10: (2, 3)},
    "embedding": {12: (2, 5), 8: (2, 3)},
    "wresnet": {3: (3, 2), 16: (2, 3), 32: (2, 3), 64: (2, 3), 128: (2, 3), 10: (2, 3)},
    "transformer": {15: (3, 2), 3: (3, 2), 8: (2, 3), 32: (2, 3)},
}
"""For each number of rows the parts of `partitioned-ps`, and those of `uneven-partitioned-ps`."""


@pytest.mark.parametrize("model", MODELS)
def test_numbers_of_parts(model: str) -> None:
    graph, rows = graph_of(model), ROWS[model]
    for place, build in enumerate((builders.partitioned_ps, builders.uneven_partitioned_ps)):
        strategy = build(graph, 3)
        for variable in variables_of(model):
            parts = strategy.variables[variable.tensor.name].parts
            assert len(parts) == rows[variable.tensor.shape[0]][place], variable.tensor.name


GROUPS = {
    "perceptron": [2, 2],
    "lenet": [3, 3, 2],
    "embedding": [3],
    "wresnet": [10, 10, 7],
    "transformer": [9, 9, 2],
}
"""For each model the variables of every group; the first is the size of a chunk."""


@pytest.mark.parametrize("model", MODELS)
def test_all_reduce(model: str) -> None:
    sizes = GROUPS[model]
    found = groups(builders.all_reduce(graph_of(model), 2, chunk_size=sizes[0]))
    assert found == [(number,) for number, size in enumerate(sizes) for _ in range(size)]


PART_GROUPS = {
    "perceptron": [(0, 0), (0, 0), (0, 1), (1, 1)],
    "embedding": [(0, 0), (0, 0), (0, 1)],
    # 3 rows make 3 parts, 15 rows, too: parts 0 to 2 and 3 to 5 are in group 0 and 1.
    "transformer": [(0, 0, 0), (0, 0, 1), (1, 1), (1, 1)],
    "wresnet": [(0, 0, 0), (0, 0), (1, 1), (1, 1)],
    "lenet": [(0, 0), (0, 0), (0, 1), (1, 1)],
}
"""The groups of the parts of the first variables, with 5 in a chunk."""


@pytest.mark.parametrize("model", MODELS)
def test_partitioned_all_reduce(model: str) -> None:
    strategy = builders.partitioned_all_reduce(graph_of(model), 2, chunk_size=5)
    assert groups(strategy)[: len(PART_GROUPS[model])] == PART_GROUPS[model]
    axes = {cut.axis for how in strategy.variables.values() for cut in how.cuts}
    assert axes == {0}


@pytest.mark.parametrize("model", MODELS)
def test_random_axis_partitioned_all_reduce(model: str) -> None:
    strategy = builders.random_axis_partitioned_all_reduce(graph_of(model), 2, seed=3)
    for variable in variables_of(model):
        (cut,) = strategy.variables[variable.tensor.name].cuts
        extent = variable.tensor.shape[cut.axis]
        assert extent > 1
        assert cut.axis == 0 or not variable.sparse
        assert len(strategy.variables[variable.tensor.name].parts) == builders.least_divisor(extent)


@pytest.mark.parametrize("model", MODELS)
def test_parallax(model: str) -> None:
    """The tables of the embedding and the transformer are on worker 0, and count in the numbers of others."""
    found = builders.parallax(graph_of(model), 2, chunk_size=2).variables
    sparse = {"embedding": "table_weight", "transformer": "embed_weight"}.get(model)
    for number, (name, how) in enumerate(found.items()):
        expected = Server(0) if name == sparse else AllReduce(number // 2)
        assert how == Synchronisation((expected,))


def test_byteps_has_servers_of_their_own() -> None:
    """1584 on 2; 144 on 3; 1152 on 3: 1296; 64 on 3."""
    strategy = builders.byteps(graph_of("perceptron"), 4, servers=2)
    assert servers(strategy) == {"fc1_weight": (2,), "fc1_bias": (3,), "fc2_weight": (3,), "fc2_bias": (3,)}
    assert strategy.replicas == ((0, 1),)
    plan = compile_strategy(graph_of("perceptron"), 4, strategy).of(graph_of("perceptron"))
    assert {task.worker for task in plan.tasks["fc1.product"]} == {0, 1}


@pytest.mark.parametrize("count", [0, 4])
def test_byteps_needs_a_worker_and_a_server(count: int) -> None:
    with pytest.raises(PlanError, match=f"{count} of 4 workers are servers only"):
        builders.byteps(graph_of("perceptron"), 4, servers=count)


@pytest.mark.parametrize(
    ("batch", "count", "factors"),
    [
        # B = 16, P = S = 4: 2 B (P - 1) = 96 times 912, 192 and 74, against 3 times 100,352, 8192 and 640.
        (64, 4, {"fc1_weight", "fc2_weight"}),
        # B = 8: 48 times 74 = 3552, against 1920.
        (32, 4, {"fc1_weight", "fc2_weight"}),
        # With one server, against 2 times 3 times 640 = 3840.
        (32, 1, {"fc1_weight", "fc2_weight", "fc3_weight"}),
        # B = 64: 384 times 912 = 350,208, against 301,056.
        (256, 4, set()),
    ],
)
def test_poseidon_compares_factors_with_a_server(batch: int, count: int, factors: set[str]) -> None:
    graph = tofu.models.get("mlp", batch=batch).training_graph()
    strategy = builders.poseidon(graph, 4, servers=count)
    assert {name for name, how in strategy.variables.items() if how.factors} == factors
    others = [how.parts[0] for how in strategy.variables.values() if not how.factors]
    assert all(isinstance(part, Server) and part.worker < count for part in others)


def test_poseidon_has_servers_for_what_is_read_many_times() -> None:
    """A kernel of a convolution meets a window for each pixel; rows of a table are sparse."""
    for model in ("lenet", "embedding"):
        strategy = builders.poseidon(graph_of(model), 2)
        found = {name for name, how in strategy.variables.items() if how.factors}
        assert found <= {"fc1_weight", "fc2_weight"}


@pytest.mark.parametrize("count", [0, 5])
def test_poseidon_needs_a_server(count: int) -> None:
    with pytest.raises(PlanError, match=f"{count} of 4 workers are servers; choose 1 to 4"):
        builders.poseidon(graph_of("perceptron"), 4, servers=count)


def moved(graph: Graph, plan: Plan) -> dict[str, list[list[int]]]:
    """Return for each tensor the bytes that every worker receives, and those that it sends."""
    found: dict[str, list[list[int]]] = {
        t.name: [[0] * plan.workers, [0] * plan.workers] for t in graph.tensors
    }
    for program in lower(graph, plan).programs:
        for instruction in program.instructions:
            match instruction:
                case MultiFetch(target=target, pieces=pieces):
                    read = pieces
                case Reduce(target=target, parts=parts):
                    read = tuple(piece for part in parts for piece in part)
                case _:
                    continue
            tensor = graph.tensors[program.buffers[target].tensor]
            for piece in read:
                if piece.worker != program.worker:
                    size = prod(upper - lower for lower, upper in piece.region) * tensor.itemsize
                    found[tensor.name][0][program.worker] += size
                    found[tensor.name][1][piece.worker] += size
    return found


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("model", MODELS)
def test_all_reduce_moves_its_share_in_and_out_of_every_worker(model: str, workers: int) -> None:
    """`2 (W - 1) P` in all, and `2 (W - 1) / W` of it in and out of each, but for shares that are uneven.

    A variable with fewer elements than workers is reduced by each of them.
    """
    graph = graph_of(model)
    found = moved(graph, compile_strategy(graph, workers, builders.all_reduce(graph, workers)))
    for variable in variables_of(model):
        size, longest = variable.tensor.nbytes, max(variable.tensor.shape)
        for name in variable.together:
            if next(t.role for t in graph.tensors if t.name == name) is not Role.GRADIENT:
                assert not any(map(any, found[name]))
                continue
            if longest < workers:
                assert sum(found[name][0]) == workers * (workers - 1) * size
                continue
            assert sum(found[name][0]) == sum(found[name][1]) == 2 * (workers - 1) * size
            uneven = 0 if longest % workers == 0 else 2 * workers * size / longest
            for each in (*found[name][0], *found[name][1]):
                assert abs(each - 2 * (workers - 1) * size / workers) <= uneven


@pytest.mark.parametrize("build", [builders.ps_load_balancing, builders.partitioned_ps])
@pytest.mark.parametrize("model", MODELS)
def test_proxies_leave_no_repeated_fetch(model: str, build: object) -> None:
    """Every worker receives what it does not hold of a variable once, however many operations read it."""
    graph = graph_of(model)
    assert callable(build)
    plan = compile_strategy(graph, 2, build(graph, 2, proxy=True)).of(graph)
    found = moved(graph, plan)
    for variable in variables_of(model):
        name, size = variable.tensor.name, variable.tensor.nbytes
        own = [0, 0]
        for holding in plan.versions[name][0].holdings:
            elements = prod(upper - lower for lower, upper in holding.region)
            own[holding.worker] += elements * variable.tensor.itemsize
        assert found[name][0] == [size - held for held in own]


@pytest.mark.parametrize("model", MODELS)
def test_half_by_a_server_and_half_by_all_reduce(model: str) -> None:
    graph, workers = graph_of(model), 2
    how, served, reduced = {}, 0, 0
    for variable in variables_of(model):
        rows, size = variable.tensor.shape[0], variable.tensor.nbytes
        how[variable.tensor.name] = Synchronisation(
            (Server(1, True), AllReduce()), Partition(0, (rows // 2,))
        )
        served += size // rows * (rows // 2)
        reduced += size - size // rows * (rows // 2)
    strategy = SyncStrategy(how)
    plan = compile_strategy(graph, workers, strategy)
    tofu.verify(graph, plan)
    (share,) = shares(graph, plan, strategy)
    assert share.kind == "both"
    assert share.gradient_bytes == served + 2 * reduced + read_by_others(graph, plan)
    assert share.fetched_bytes == served


def read_by_others(graph: Graph, plan: Plan) -> int:
    """Count the bytes of gradients that other operations than updates read: batch normalisation does."""
    others = {each.name: {graph.tensors[t].name for t in each.inputs} for each in graph.operations}
    gradients = {t.name for t in graph.tensors if t.role is Role.GRADIENT}
    return sum(
        each.bytes
        for each in plan.contributions(graph)
        if each.tensor in gradients & others[each.operation] and not each.operation.startswith("update(")
    )
