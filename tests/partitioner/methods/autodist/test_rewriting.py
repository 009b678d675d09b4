"""Gradients that are encoded or delayed: equal to NumPy's recurrences, and moved in as many bytes as said."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tofu
from tofu.dataflow.graph import Phase
from tofu.dataflow.rewrites.encoders import NO_REWRITE, Cast, PowerSgd, Rewrite
from tofu.dataflow.rewrites.power_sgd import SMALL, start_text
from tofu.errors import GraphError, PlanError
from tofu.partitioner import Plan, lower
from tofu.partitioner.methods.autodist.builders import BUILDERS, all_reduce
from tofu.partitioner.methods.autodist.compiling import compile_strategy
from tofu.partitioner.methods.autodist.rewriting import rewrite
from tofu.partitioner.methods.autodist.shares import shares
from tofu.partitioner.methods.autodist.strategy import (
    AllReduce,
    Partition,
    Server,
    Synchronisation,
    SyncStrategy,
)
from tofu.runtime.executor import Executor

from .recurrences import INPUTS, OUTPUTS, WEIGHT, Values, learned, linear, planned, recurrence, rounded

MIXED = Synchronisation((Server(1), AllReduce()), Partition(0, (1,)))


class Casting:
    """Exchange in 16 bits, and the errors that workers keep."""

    def __init__(self, workers: int, dtype: str, feedback: bool) -> None:
        self.dtype = dtype
        self.feedback = feedback
        self.errors = [np.zeros_like(WEIGHT)] * workers

    def __call__(self, local: list[Values]) -> Values:
        corrected = [error + each for error, each in zip(self.errors, local, strict=True)]
        stored = [rounded(each, self.dtype) for each in corrected]
        if self.feedback:
            self.errors = [a - b for a, b in zip(corrected, stored, strict=True)]
        return rounded(np.sum(stored, axis=0), self.dtype)


def total(local: list[Values]) -> Values:
    return np.sum(local, axis=0)


class Factors:
    """PowerSGD: the factors that workers exchange, the errors that they keep, and where they start."""

    def __init__(self, workers: int, rank: int) -> None:
        self.errors = [np.zeros_like(WEIGHT)] * workers
        start = tofu.parse(start_text(1)).bind({"state": (INPUTS, rank)})
        (self.right,) = start.interpret({"state": np.zeros((INPUTS, rank))})

    def __call__(self, local: list[Values]) -> Values:
        matrices = [error + each for error, each in zip(self.errors, local, strict=True)]
        basis = np.sum([m @ self.right for m in matrices], axis=0)
        whole = np.linalg.norm(basis)
        for column in range(basis.shape[1]):
            length = np.linalg.norm(basis[:, column])
            basis[:, column] *= 1 / length if length > SMALL * whole else 0
            for later in range(column + 1, basis.shape[1]):
                basis[:, later] -= (basis[:, column] @ basis[:, later]) * basis[:, column]
        rights = [m.T @ basis for m in matrices]
        self.right = np.sum(rights, axis=0)
        self.errors = [m - basis @ right.T for m, right in zip(matrices, rights, strict=True)]
        return basis @ self.right.T


def require_equal(found: list[Values], expected: list[Values]) -> None:
    for number, (mine, its) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(mine, its, err_msg=f"iteration {number}")


KEPT = Synchronisation((Server(0, proxy=True),))


@pytest.mark.parametrize(("workers", "how"), [(1, None), (1, KEPT), *product((2, 4), (None, KEPT, MIXED))])
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_casts_equal_a_recurrence(
    workers: int, dtype: str, feedback: bool, how: Synchronisation | None
) -> None:
    found = learned(planned(Rewrite(Cast(dtype, feedback)), workers, how))
    require_equal(found, recurrence(workers, Casting(workers, dtype, feedback)))
    assert (found[-1] != recurrence(workers, total)[-1]).any(), "nothing was rounded"
    if feedback:
        assert (found[-1] != recurrence(workers, Casting(workers, dtype, False))[-1]).any()


def test_casts_on_top_of_a_plan_equal_a_recurrence() -> None:
    graph = linear()
    how = Synchronisation((Server(2),), None, Rewrite(Cast("bfloat16", True), 1))
    base = tofu.partition(graph, 4, "zero-3")
    found = learned(compile_strategy(graph, 4, SyncStrategy({"fc_weight": how}), base))
    require_equal(found, recurrence(4, Casting(4, "bfloat16", True), 1))


@pytest.mark.parametrize("how", [None, MIXED])
@pytest.mark.parametrize("delay", [1, 2, 3])
def test_delays_equal_a_recurrence(delay: int, how: Synchronisation | None) -> None:
    require_equal(learned(planned(Rewrite(delay=delay), 4, how)), recurrence(4, total, delay))


@pytest.mark.parametrize("how", [None, MIXED])
def test_delays_compose_with_casts(how: Synchronisation | None) -> None:
    found = learned(planned(Rewrite(Cast("bfloat16", True), 2), 4, how))
    require_equal(found, recurrence(4, Casting(4, "bfloat16", True), 2))


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize(
    ("workers", "rank", "how"),
    [(1, 1, None), *((w, r, how) for w, r in ((2, 1), (4, 2), (4, 4)) for how in (None, MIXED))],
)
def test_power_sgd_equals_a_recurrence(
    workers: int, rank: int, how: Synchronisation | None, delay: int
) -> None:
    found = learned(planned(Rewrite(PowerSgd(rank), delay), workers, how))
    for mine, its in zip(found, recurrence(workers, Factors(workers, rank), delay), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-10, atol=1e-10)
    exact = recurrence(workers, total, delay)
    assert np.allclose(found[-1], exact[-1]) == (rank == OUTPUTS), "only full rank loses nothing"


def test_power_sgd_moves_two_factors() -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    plain, rank, workers = all_reduce(graph, 4), 3, 4
    rows, columns = 128, 784
    variables = {
        **plain.variables,
        "fc1_weight": Synchronisation((AllReduce(),), None, Rewrite(PowerSgd(rank))),
    }
    before = compile_strategy(graph, workers, plain).cost_bytes
    after = compile_strategy(graph, workers, SyncStrategy(variables)).cost_bytes
    spared = rows * columns - rank * (rows + columns)
    assert before - after == 2 * (workers - 1) * 4 * spared


def test_a_gradient_of_zero_stays_one() -> None:
    """No column divides by zero, and the start is drawn again."""
    plan = planned(Rewrite(PowerSgd(2)), 4)
    assert plan.graph is not None
    with Executor(lower(plan.graph, plan), detect_nan=True) as executor:
        executor.write("fc_weight", np.zeros_like(WEIGHT))
        executor.write("learning_rate", [1.0])
        executor.run()
        assert not executor.read("fc_weight").any()
        executor.write("label", np.ones((8, OUTPUTS)))
        executor.write("data", np.ones((8, INPUTS)))
        executor.run()
        np.testing.assert_allclose(executor.read("fc_weight"), np.full_like(WEIGHT, 8 / OUTPUTS), rtol=1e-6)


@pytest.mark.parametrize("model", ["mlp", "lenet"])
@pytest.mark.parametrize("feedback", [False, True])
def test_16_bits_halve_the_gradients(model: str, feedback: bool) -> None:
    graph = tofu.models.get(model, batch=16).training_graph()
    plain = all_reduce(graph, 4)
    encoded = everywhere(plain, Rewrite(Cast("bfloat16", feedback)))
    plan = compile_strategy(graph, 4, encoded)
    assert plan.graph is not None
    [before] = shares(graph, compile_strategy(graph, 4, plain), plain)
    [after] = shares(plan.graph, plan, encoded)
    assert before.gradient_bytes == 2 * after.gradient_bytes
    assert after.gradient_bytes == plan.cost_bytes, "nothing else moves"


@pytest.mark.parametrize("builder", [name for name in BUILDERS if name != "poseidon"])
def test_every_builder_takes_encoders(builder: str) -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph("adam")
    plan = compile_strategy(
        graph, 4, everywhere(BUILDERS[builder](graph, 4), Rewrite(Cast("float16", True), 1))
    )
    assert plan.graph is not None
    tofu.verify(plan.graph, plan)
    assert plan.cost_bytes < tofu.partition(graph, 4, builder).cost_bytes


def test_gradients_from_factors_are_not_encoded() -> None:
    how = Synchronisation((AllReduce(),), None, Rewrite(Cast("float16")), factors=True)
    with pytest.raises(PlanError, match="'fc_weight' gets its gradient from factors, so no sum of it"):
        compile_strategy(linear(), 4, SyncStrategy({"fc_weight": how}))


def test_gradients_of_time_steps_are_added_by_each_worker() -> None:
    graph = tofu.models.get("lstm", batch=8, steps=3, hidden=16, layers=2).training_graph()
    plain = all_reduce(graph, 4)
    plan = compile_strategy(graph, 4, everywhere(plain, Rewrite(Cast("bfloat16", True))))
    assert 2 * plan.cost_bytes == compile_strategy(graph, 4, plain).cost_bytes


def test_errors_stay_with_their_workers() -> None:
    plan = planned(Rewrite(Cast("float16", True)), 4)
    holdings = plan.versions["error(fc_weight)"][0].holdings
    assert [(each.worker, each.region[0]) for each in holdings] == [(w, (w, w + 1)) for w in range(4)]


def test_a_graph_without_rewrites_stays_as_it_is() -> None:
    graph = linear()
    assert rewrite(graph, 4, all_reduce(graph, 4)) is graph


def test_plans_keep_their_rewrites(tmp_path: Path) -> None:
    plan = planned(Rewrite(Cast("bfloat16", True), 2), 4)
    plan.save(tmp_path / "plan.json")
    read = Plan.load(tmp_path / "plan.json")
    assert read == plan
    read.verify(rewrite(linear(), 4, read))
    with pytest.raises(
        PlanError, match=r"other gradients or lookups of 'fc_weight' \(1 in all\); use tofu.sync.rewrite"
    ):
        read.verify(linear())


def test_a_module_trains_the_rewritten_graph() -> None:
    """Over one epoch, what a module learns is what the recurrence of a program learns."""
    data = np.random.default_rng(2).standard_normal((32, 5)).astype(np.float32)
    network = tofu.sym.SoftmaxOutput(
        tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=5, name="fc"), name="softmax"
    )
    shapes = {"data": (8, 5), "softmax_label": (8,)}
    graph = tofu.training_graph(network, shapes)
    weights = {}
    for kind, change in {"plain": NO_REWRITE, "cast": Rewrite(Cast("bfloat16", True))}.items():
        plan = compile_strategy(graph, 2, everywhere(all_reduce(graph, 2), change))
        with tofu.Module(network, [tofu.cpu(0), tofu.cpu(1)], plan=plan) as module:
            module.fit(tofu.ArrayIterator(data, data.argmax(axis=1), batch_size=8), num_epoch=2)
            weights[kind] = module.parameters()["fc_weight"]
            (plans,) = [each for each in module.plans.values() if each.rewrites or kind == "plain"]
            assert plans == plan
    difference = abs(weights["cast"] - weights["plain"]).max()
    assert 0 < difference < 2**-8 * abs(weights["plain"]).max()


def everywhere(strategy: SyncStrategy, change: Rewrite) -> SyncStrategy:
    """Return a strategy that rewrites the gradients of all variables."""
    return SyncStrategy({name: replace(how, rewrite=change) for name, how in strategy.variables.items()})


def test_what_cannot_be_rewritten_is_refused() -> None:
    cast = Rewrite(Cast("bfloat16"))
    odd = tofu.models.get("mlp", batch=10).training_graph()
    with pytest.raises(GraphError, match=r"sums 10 samples, which is not a multiple of 4 workers"):
        compile_strategy(odd, 4, everywhere(all_reduce(odd, 4), cast))
    narrow = tofu.models.get("mlp", batch=8).training_graph(dtype="float16")
    with pytest.raises(GraphError, match="gradient of 'fc1_weight' is in float16 already"):
        compile_strategy(narrow, 4, everywhere(all_reduce(narrow, 4), cast))
    parts = tofu.models.get("mlp", batch=8).training_graph(accumulate=2)
    with pytest.raises(GraphError, match=r"'fc1_weight' are summed over several iterations.* unroll"):
        compile_strategy(parts, 2, everywhere(all_reduce(parts, 2), cast))
    graph = tofu.models.get("mlp", batch=8).training_graph()
    with pytest.raises(GraphError, match=r"'fc1_bias' has shape \(128,\), which is not a matrix"):
        compile_strategy(graph, 2, everywhere(all_reduce(graph, 2), Rewrite(PowerSgd(1))))
    with pytest.raises(GraphError, match=r"shape \(4, 6\), so its rank is at most 4, not 5"):
        planned(Rewrite(PowerSgd(5)), 2)
    with pytest.raises(GraphError, match="rank is 0"):
        PowerSgd(0)
    with pytest.raises(GraphError, match="cannot be encoded in 'float8'; use float16 or bfloat16"):
        Cast("float8")
    with pytest.raises(GraphError, match="delayed by -1 iterations"):
        Rewrite(delay=-1)


def test_operations_of_the_forward_pass_stay() -> None:
    graph = linear()
    changed = rewrite(
        graph, 4, SyncStrategy({"fc_weight": Synchronisation((AllReduce(),), None, Rewrite(delay=1))})
    )
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        names = [[o.name for o in each.operations if o.phase is phase] for each in (graph, changed)]
        assert names[0] == names[1]
    assert WEIGHT.shape[0] == OUTPUTS


@pytest.mark.parametrize(
    "how",
    [
        Synchronisation((AllReduce(),), None, Rewrite(PowerSgd(2), 1)),
        Synchronisation((AllReduce(two_level=True),), None, Rewrite(Cast("float16", True))),
        Synchronisation((Server(1, via=(1, 2)),)),
    ],
)
def test_all_that_is_exchanged_counts_for_its_variable(how: Synchronisation) -> None:
    graph = tofu.models.get("mlp", batch=16).training_graph()
    weights = {name: how for name in all_reduce(graph, 4).variables if name.endswith("_weight")}
    strategy = SyncStrategy({**all_reduce(graph, 4).variables, **weights}, ((0, 1), (2, 3)))
    plan = compile_strategy(graph, 4, strategy)
    assert plan.graph is not None
    found = shares(plan.graph, plan, strategy, graph)
    assert sum(each.gradient_bytes + each.fetched_bytes for each in found) == plan.cost_bytes
