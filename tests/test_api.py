"""`tofu.Module` with a plan that was made before."""

import numpy as np
import pytest

import tofu
from tofu.dataflow.training import training_graph
from tofu.machines.machine import uniform
from tofu.programs.memory import plan_memory


def _net() -> tofu.sym.Symbol:
    hidden = tofu.sym.FullyConnected(tofu.sym.Variable("data"), num_hidden=8, name="fc1")
    return tofu.sym.SoftmaxOutput(tofu.sym.FullyConnected(hidden, num_hidden=4, name="fc2"), name="softmax")


def _batches(batch: int = 16) -> tofu.ArrayIterator:
    data = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    return tofu.ArrayIterator(data, data[:, :4].argmax(axis=1), batch_size=batch)


def _plan(workers: int) -> tofu.Plan:
    graph = training_graph(_net(), _batches().shapes, "sgd")
    return tofu.partition(graph, workers, constraints=["pin fc1_weight=1"])


def test_a_plan_is_trained_as_it_says():
    plan = _plan(4)
    assert plan != tofu.partition(training_graph(_net(), _batches().shapes, "sgd"), 4)
    with tofu.Module(_net(), [tofu.cpu(i) for i in range(4)], plan=plan) as module:
        module.fit(_batches(), _batches())
        assert module.plans[plan.fingerprint] is plan
        assert len(module.plans) == 2, "the graph of evaluation has a separate plan"


def test_a_plan_for_another_batch_is_refused():
    with (
        tofu.Module(_net(), [tofu.cpu(i) for i in range(4)], plan=_plan(4)) as module,
        pytest.raises(tofu.PlanError, match="partition it again"),
    ):
        module.fit(_batches(batch=8))


def test_a_plan_for_other_workers_is_refused():
    with pytest.raises(tofu.PlanError, match="the plan is for 4 workers, but the context lists 2"):
        tofu.Module(_net(), [tofu.cpu(i) for i in range(2)], plan=_plan(4))


def test_the_name_of_a_plan_file_is_no_plan():
    with pytest.raises(tofu.PlanError, match=r"a Plan is needed, not a str; .* tofu\.Plan\.load"):
        tofu.Module(_net(), tofu.cpu(0), plan="plan.json")


def test_arrays_are_no_batches():
    with tofu.Module(_net(), tofu.cpu(0)) as module:
        for use in (module.fit, module.score, module.predict):
            with pytest.raises(tofu.DataError, match=r"such as tofu\.ArrayIterator\(.*\), not a ndarray"):
                use(np.zeros((8, 4)))


def test_values_print_shortly():
    plan = _plan(2)
    graph = training_graph(_net(), _batches().shapes, "sgd", name="net")
    assert repr(plan) == f"<recursive plan over 2 workers (2): {plan.cost_bytes:,} bytes moved>"
    assert repr(graph).startswith("<graph 'net': ")
    arenas = plan_memory(tofu.lower(graph, plan))
    assert (
        repr(arenas) == f"<memory plan of 2 workers: {max(arenas.arena_bytes):,} bytes in the largest arena>"
    )
    assert repr(tofu.lower(graph, plan)) == f"<{graph!r} on 2 workers: {plan.cost_bytes:,} bytes planned>"


@pytest.mark.parametrize("context", [4, "cpu", ["cpu"] * 4, {}])
def test_a_context_is_a_list_of_devices(context):
    with pytest.raises(tofu.ExecutionError, match="lists a device for each worker"):
        tofu.Module(_net(), context)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"constraints": "pin fc1_weight=1"}, r"write \['pin fc1_weight=1'\]"),
        ({"objective": "time"}, "the objective 'time' needs a machine"),
        ({"objective": "step-time"}, "the objective 'step-time' needs a machine"),
    ],
)
def test_mistakes_in_the_search_are_named(arguments, message):
    graph = training_graph(_net(), _batches().shapes, "sgd")
    with pytest.raises(tofu.PlanError, match=message):
        tofu.partition(graph, 8, **arguments)


@pytest.mark.parametrize("method", ["recursive", "refine", "exact"])
def test_the_faster_of_two_plans_is_found(method):
    graph = tofu.models.get("lenet").training_graph()
    few, fast = (
        tofu.partition(graph, 4, method, machine="dgx-1-v100", objective=objective)
        for objective in ("bytes", "step-time")
    )
    fast.verify(graph)
    assert fast.step_seconds <= few.step_seconds
    assert fast.step_seconds == tofu.simulate(tofu.lower(graph, fast), "dgx-1-v100").seconds
    assert fast.transfer_time is None


def test_a_machine_without_rates_has_no_step_time():
    graph = training_graph(_net(), _batches().shapes, "sgd")
    with pytest.raises(tofu.MachineError, match="does not say how fast its devices are"):
        tofu.partition(graph, 4, machine=uniform("box", [("gpu", 4, 1e9)]), objective="step-time")


def test_a_symbol_is_no_graph():
    with pytest.raises(tofu.GraphError, match=r"not a Symbol; call model.training_graph\(\)"):
        tofu.partition(_net(), 2)
    with pytest.raises(tofu.GraphError, match="not a Symbol"):
        tofu.frontier(_net(), 2, "dgx-1-v100")


def test_an_operator_is_no_function():
    double = tofu.parse("def double(a):\n    return lambda i: a[i] * 2")
    with pytest.raises(tofu.OperatorError, match=r"it is tofu.sym.apply\(double, ...\)"):
        double(tofu.sym.Variable("data"))
