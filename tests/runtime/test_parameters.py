"""Values that are learned go to executors and come back, whole, whatever the number of workers."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.analyzer.indices.region import Shape
from tofu.dataflow import sym
from tofu.errors import DataError
from tofu.runtime.executor import Executor
from tofu.runtime.initializer import Uniform, initial_value
from tofu.runtime.parameters import Parameters, optimizer_state

RULE = Uniform(0.5)


def network() -> sym.Symbol:
    with sym.NameScope():
        return sym.SoftmaxOutput(
            sym.FullyConnected(sym.Variable("data"), num_hidden=5, name="fc"), name="softmax"
        )


def executor(workers: int, method: str = "data-parallel") -> Executor:
    shapes = {"data": (8, 3), "softmax_label": (8,)}
    graph = tofu.training_graph(network(), shapes, "adam")
    return Executor(tofu.lower(graph, tofu.partition(graph, workers, method)))


@pytest.mark.parametrize("workers", [1, 3])
def test_given_values_are_stored_and_others_are_made_by_the_rule(workers: int) -> None:
    bias = np.arange(5, dtype=np.float32)
    held = Parameters(network(), RULE, 7, {"fc_bias": bias})
    bias[:] = 9
    with executor(workers) as run:
        held.store(run)
        np.testing.assert_array_equal(run.read("fc_bias"), np.arange(5))
        np.testing.assert_array_equal(run.read("fc_weight"), initial_value("fc_weight", (5, 3), RULE, 7))
        state = optimizer_state(run)
    assert len(state) == 4
    assert {array.shape for array in state.values()} == {(5, 3), (5,)}


def test_learned_values_come_back_for_any_number_of_workers() -> None:
    held = Parameters(network(), RULE, 7, {})
    with executor(2) as run:
        held.store(run)
        run.write("fc_weight", np.arange(15).reshape(5, 3))
        held.load(run)
    with executor(3) as run:
        held.store(run)
        np.testing.assert_array_equal(run.read("fc_weight"), np.arange(15).reshape(5, 3))


def test_start_values_are_not_kept_and_drawn_again() -> None:
    drawn: list[weakref.ref[Any]] = []

    def rule(shape: Shape, generator: np.random.Generator) -> Any:
        value = RULE(shape, generator)
        drawn.append(weakref.ref(value))
        return value

    held = Parameters(network(), rule, 7, {})
    assert held.all() == {}
    with executor(2) as run:
        held.store(run)
        assert [each() for each in drawn] == [None]
        np.testing.assert_array_equal(held.all()["fc_weight"], run.read("fc_weight"))


@pytest.mark.parametrize("method", ["data-parallel", "all-row"])
def test_values_go_from_one_executor_to_another_and_are_not_kept(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that hold the same regions copy them; otherwise whole tensors are read."""
    held, read = Parameters(network(), RULE, 7, {}), list[str]()
    with executor(3) as newest, executor(3, method) as run:
        monkeypatch.setattr(newest, "read", lambda name: read.append(name) or Executor.read(newest, name))
        held.store(newest)
        newest.write("fc_weight", np.arange(15).reshape(5, 3))
        held.store(run, newest)
        assert ("fc_weight" in read) is (method == "all-row")
        np.testing.assert_array_equal(run.read("fc_weight"), np.arange(15).reshape(5, 3))
    np.testing.assert_array_equal(held.all()["fc_weight"], initial_value("fc_weight", (5, 3), RULE, 7))


@pytest.mark.parametrize("keep", [True, False])
def test_a_module_that_is_closed_keeps_what_it_learned_if_asked(keep: bool) -> None:
    data = tofu.ArrayIterator(np.ones((8, 3), np.float32), np.zeros(8), batch_size=8)
    module = tofu.Module(network(), [tofu.cpu(0), tofu.cpu(1)], initializer=RULE, seed=7)
    executor = module.bind(data.shapes)
    module.fit(data)
    learned, started = executor.read("fc_weight"), initial_value("fc_weight", (5, 3), RULE, 7)
    assert not np.array_equal(learned, started)
    module.close(keep=keep)
    np.testing.assert_array_equal(module.parameters()["fc_weight"], learned if keep else started)


@pytest.mark.parametrize("close", [False, True])
def test_values_that_are_returned_are_copies(close: bool) -> None:
    given = {"fc_weight": np.ones((5, 3), np.float32)}
    data = tofu.ArrayIterator(np.ones((8, 3), np.float32), np.zeros(8), batch_size=8)
    with tofu.Module(network(), [tofu.cpu(0), tofu.cpu(1)], parameters=given) as module:
        module.parameters()["fc_weight"][...] = 7
        module.fit(data)
        if close:
            module.close()
        expected, edited = module.predict(data), module.parameters()
        for value in edited.values():
            value[...] = 7
        np.testing.assert_array_equal(module.predict(data), expected)
        module.close(keep=False)
        np.testing.assert_array_equal(module.predict(data), expected)


def test_names_that_are_no_variables_are_refused() -> None:
    with pytest.raises(DataError, match=r"'fc_wieght', which is not a variable of the symbol.*fc_weight"):
        Parameters(network(), RULE, 0, {"fc_wieght": np.zeros((5, 3))})


@pytest.mark.parametrize(
    ("stated", "expected"),
    [('["Constant", {"value": 3}]', 3), ('["zeros", {}]', 0), ('["one", {}]', 1), ("nonsense", 1)],
)
def test_a_variable_may_state_the_number_from_which_it_starts(stated: str, expected: float) -> None:
    scale = tofu.sym.Variable("some_gamma", shape=(1, 2), init=stated)
    symbol = tofu.sym.MakeLoss(tofu.sym.broadcast_mul(tofu.sym.Variable("data"), scale))
    with tofu.Module(symbol) as module:
        module.bind({"data": (4, 2)})
        np.testing.assert_array_equal(module.parameters()["some_gamma"], np.full((1, 2), expected))


def test_slopes_of_rectifiers_start_at_a_quarter() -> None:
    symbol = tofu.sym.MakeLoss(tofu.sym.LeakyReLU(tofu.sym.Variable("data"), act_type="prelu", name="pr"))
    with tofu.Module(symbol) as module:
        module.bind({"data": (4, 2)})
        np.testing.assert_array_equal(module.parameters()["pr_gamma"], [0.25, 0.25])


def regression(**settings: Any) -> sym.Symbol:
    with sym.NameScope():
        found = sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc")
        return sym.LinearRegressionOutput(found, sym.Variable("target", **settings), name="lro")


@pytest.mark.parametrize(
    "net", [regression(), network()], ids=["a matrix, which could be a weight", "classes of samples"]
)
@pytest.mark.parametrize("workers", [1, 2])
def test_training_without_labels_is_refused(net: sym.Symbol, workers: int) -> None:
    data = tofu.ArrayIterator(np.ones((16, 3), np.float32), batch_size=8)
    said = (
        "'(target|softmax_label)' of shape .* is read by the backward pass alone.*; give labels, or its value"
    )
    with (
        tofu.Module(net, [tofu.cpu()] * workers) as module,
        pytest.raises(DataError, match=said),
    ):
        module.fit(data, metric=[])


def test_a_label_may_have_a_value_of_its_own() -> None:
    data = tofu.ArrayIterator(np.ones((16, 3), np.float32), batch_size=8)
    label = np.arange(32, dtype=np.float32).reshape(8, 4)
    for net, given in ((regression(), {"target": label}), (regression(init=tofu.mx.init.One()), {})):
        with tofu.Module(net, [tofu.cpu()] * 2, parameters=given) as module:
            before = module.bind(data.shapes).read("target")
            module.fit(data, metric=[])
            np.testing.assert_array_equal(module.parameters()["target"], before)


def test_fixed_weights_are_made_by_the_rule() -> None:
    """They get no gradient either, but the forward pass reads them."""
    shapes = {"data": (8, 3), "softmax_label": (8,)}
    with tofu.Module(network(), [tofu.cpu()] * 2, initializer=RULE, seed=7) as module:
        run = module.bind(shapes, fixed=["fc_weight"])
        np.testing.assert_array_equal(run.read("fc_weight"), initial_value("fc_weight", (5, 3), RULE, 7))
