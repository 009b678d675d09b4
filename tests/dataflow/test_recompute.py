"""Activations computed again: the same numbers, less that is kept, and a graph like any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tofu
from tofu.dataflow.graph import Graph, Phase, Role
from tofu.dataflow.naming import NameScope
from tofu.dataflow.optimizer import sgd
from tofu.dataflow.recompute import _cuts_within, recomputed
from tofu.dataflow.training import training_graph
from tofu.dataflow.validate import validate
from tofu.errors import GraphError
from tofu.partitioner import Plan, lower, partition, peak_bytes
from tofu.partitioner.layouts.forms import Spread
from tofu.partitioner.plans.compose import compose
from tofu.runtime.executor import Executor

MODELS = ("mlp", "lenet", "lstm", "gpt-3-16", "wresnet-10-1")


def graph_of(name: str, recompute: int = 1, dtype: str = "float32") -> Graph:
    return tofu.models.get(name, batch=4).training_graph("adam", recompute=recompute, dtype=dtype)


def kept_bytes(graph: Graph) -> int:
    """Return the bytes of the forward pass's activations that the backward pass reads."""
    forward = {i for o in graph.operations if o.phase is Phase.FORWARD for i in o.outputs}
    later = {i for o in graph.operations if o.phase is not Phase.FORWARD for i in o.inputs}
    return sum(int(np.prod(t.shape)) * t.itemsize for t in graph.tensors if t.index in forward & later)


@pytest.mark.parametrize("name", ["mlp", "lenet", "lstm", "wresnet-10-1"])
def test_one_step_learns_the_same_to_the_bit(name):
    """With one worker every operation runs as before, so all parameters and states have the same bits."""
    values = []
    for segments in (1, 2, 5):
        graph = graph_of(name, segments)
        validate(graph)
        values.append(learned(graph))
    assert values[0].keys() == values[1].keys() == values[2].keys()
    for tensor, value in values[0].items():
        for other in values[1:]:
            np.testing.assert_array_equal(other[tensor], value, err_msg=tensor)


def learned(graph: Graph, plan: Plan | None = None) -> dict[str, np.ndarray]:
    """Run one iteration on numbers that depend on the tensors' names alone; return all that lasts."""
    with Executor(lower(graph, plan or partition(graph, 1))) as executor:
        lasting = [t for t in graph.tensors if t.role.persistent and t.alias is None]
        for number, tensor in enumerate(lasting):
            whole = np.random.default_rng(number).random(tensor.shape) * 0.1 + 0.01
            positions = tensor.role in (Role.DATA, Role.SCALAR) and tensor.name != "data"
            executor.write(tensor.name, (whole > 0.06 if positions else whole).astype(tensor.dtype))
        executor.run()
        return {t.name: executor.read(t.name) for t in lasting}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("segments", [2, 3, 8])
def test_less_is_kept_and_each_operation_runs_at_most_twice(name, segments):
    graph, again = graph_of(name), graph_of(name, segments)
    known = {operation.name: operation for operation in graph.operations}
    added = [operation for operation in again.operations if operation.name not in known]
    assert (kept_bytes(again) < kept_bytes(graph)) == bool(added)
    assert added or segments < 8
    assert len({operation.name for operation in added}) == len(added)
    for operation in added:
        original = known[operation.name.removeprefix("recomputed(").removesuffix(")")]
        assert operation.bound == original.bound
        assert operation.phase is Phase.BACKWARD
        assert original.phase is Phase.FORWARD
    assert {operation.name for operation in again.operations} >= known.keys()


def test_arenas_shrink():
    model = tofu.models.get("wresnet-10-1", batch=64)
    arenas = []
    for segments in (1, 8):
        graph = model.training_graph(recompute=segments)
        arenas.append(peak_bytes(graph, partition(graph, 2)))
    assert arenas[1] < 0.7 * arenas[0]


def pooled(recompute: int) -> Graph:
    """A network whose forward pass is cut behind a maximum if there are three segments."""
    with NameScope():
        net = tofu.sym.Variable("data")
        for number in range(2):
            net = tofu.sym.Convolution(
                net, num_filter=6, kernel=(3, 3), pad=(1, 1), no_bias=True, name=f"conv{number}"
            )
            net = tofu.sym.Activation(net, act_type="relu", name=f"relu{number}")
        net = tofu.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
        net = tofu.sym.FullyConnected(tofu.sym.Flatten(net, name="flat"), num_hidden=3, name="fc")
        net = tofu.sym.SoftmaxOutput(net, name="softmax")
    shapes = {"data": (4, 6, 16, 16), "softmax_label": (4,)}
    return training_graph(net, shapes, sgd(), dtype="float64", recompute=recompute)


def test_what_is_compared_is_computed_together():
    """A second run may round sums otherwise, so a maximum would not be found in what it was taken of."""
    graph = pooled(recompute=3)
    (first,) = [operation for operation in graph.operations if operation.name == "pool.grad.first"]
    read = [graph.tensors[index].name for index in first.inputs]
    assert read == ["recomputed(pool_output)", "recomputed(relu1_output)"]
    flat = next(operation for operation in graph.operations if operation.name == "flat")
    assert graph.tensors[flat.inputs[0]].name == "pool_output"


def test_a_second_run_may_add_in_another_order():
    graph, expected = pooled(recompute=3), learned(pooled(recompute=1))
    whole = partition(graph, 2, "data-parallel")
    again = {"recomputed(conv1)": Spread((("c", 2),), (0, 1))}
    homes = {t.name: whole.layouts[t.name].form for t in graph.tensors if t.alias is None}
    plan = compose(graph, 2, {**whole.strategies, **again}, homes)
    for tensor, value in learned(graph, plan).items():
        np.testing.assert_allclose(value, expected[tensor], rtol=1e-9, atol=1e-12, err_msg=tensor)


def test_what_overwrites_and_what_it_reads_is_not_computed_again():
    """Moving statistics of batch normalisation are updated once."""
    again = graph_of("wresnet-10-1", 4)
    overwriting = [o for o in again.operations if any(again.tensors[i].alias is not None for i in o.outputs)]
    assert not [o.name for o in overwriting if o.name.startswith("recomputed(")]
    states = [t for t in again.tensors if t.role is Role.AUXILIARY]
    assert states


def test_tied_operations_stay_tied():
    ties = {o.tie for o in graph_of("lstm", 4).operations if o.name.startswith("recomputed(")}
    assert any(tie is not None and tie.startswith("recomputed(") for tie in ties)


def test_sixteen_bits():
    graph = graph_of("lenet", 3, "bfloat16")
    validate(graph)
    assert any(t.dtype == "bfloat16" and t.name.startswith("recomputed(") for t in graph.tensors)


def test_graphs_that_stay():
    assert graph_of("mlp", 1).fingerprint == graph_of("mlp").fingerprint
    forward = tofu.models.get("mlp").inference_graph()
    assert recomputed(forward, 4) is forward
    with pytest.raises(GraphError, match=r"recompute is 0 .*an integer from 1 on"):
        graph_of("mlp", 0)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9), st.integers(9, 30))
def test_cuts_are_the_cheapest_within_the_room(operations, room):
    """Compare with all sets of cuts."""
    passing, read = [each[0] for each in operations], [each[1] for each in operations]
    passing[0] = 0
    upto = [0, *np.cumsum(read).tolist()]
    found = _cuts_within(passing, upto, room)

    def cost(cuts):
        return sum(passing[place] for place in cuts)

    def fits(cuts):
        ends = [*cuts[1:], len(read)]
        return all(upto[end] - upto[first] <= room for first, end in zip(cuts, ends, strict=True))

    places = range(1, len(read))
    every = [
        [0, *(p for bit, p in enumerate(places) if mask >> bit & 1)] for mask in range(1 << (len(read) - 1))
    ]
    assert fits(found)
    assert cost(found) == min(cost(cuts) for cuts in every if fits(cuts))


def test_long_chains_do_not_recurse():
    net = tofu.sym.Variable("data")
    for number in range(3000):
        net = tofu.sym.Activation(net, act_type="tanh", name=f"act{number}")
    net = tofu.sym.LinearRegressionOutput(
        tofu.sym.FullyConnected(net, num_hidden=2, name="fc"), tofu.sym.Variable("label"), name="out"
    )
    graph = tofu.training_graph(net, {"data": (4, 8), "label": (4, 2)}, recompute=2)
    validate(graph)
