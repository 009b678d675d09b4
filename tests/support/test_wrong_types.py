"""Arguments of wrong types: errors of the package that name the argument, not those of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tofu
from tofu.errors import TofuError

MODEL = tofu.models.get("mlp", batch=8)
SYMBOL = MODEL.symbol
SHAPES = {"data": (8, 1, 28, 28)}
GRAPH = MODEL.training_graph("sgd")
PLAN = tofu.partition(GRAPH, 2)
PROGRAM = tofu.lower(GRAPH, PLAN)
ROWS = np.zeros((8, 2))

TEXT = "def f(x): return lambda i: x[i]"


def _training(**others: Any) -> object:
    return tofu.training_graph(SYMBOL, SHAPES, **others)


def _frontier(**others: Any) -> object:
    return tofu.frontier(GRAPH, **{"workers": 2, "machine": "dgx-1-v100", **others})


def _read(name: Any) -> object:
    with tofu.Executor(PROGRAM) as executor:
        return executor.read(name)


def _flexflow(watch: Any) -> object:
    return tofu.partition(GRAPH, 2, "flexflow", machine="dgx-1-v100", proposals=1, watch=watch)


SURFACES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "the graph to lower": ("a Graph is needed", lambda value: tofu.lower(value, PLAN)),
    "the plan to lower": ("a Plan is needed", lambda value: tofu.lower(GRAPH, value)),
    "the graph to verify": ("a Graph is needed", lambda value: tofu.verify(value, PLAN)),
    "the plan to verify": ("a Plan is needed", lambda value: tofu.verify(GRAPH, value)),
    "the graph to explain": ("a Graph is needed", lambda value: tofu.explain(value, PLAN, "fc1_weight")),
    "the plan to explain": ("a Plan is needed", lambda value: tofu.explain(GRAPH, value, "fc1_weight")),
    "what to explain": ("name", lambda value: tofu.explain(GRAPH, PLAN, value)),
    "the program to run": ("a PartitionedGraph is needed", tofu.Executor),
    "the program to simulate": (
        "a PartitionedGraph is needed",
        lambda value: tofu.simulate(value, "dgx-1-v100"),
    ),
    "the symbol to train": ("a Symbol is needed", lambda value: tofu.training_graph(value, SHAPES)),
    "the symbol to run": ("a Symbol is needed", lambda value: tofu.inference_graph(value, SHAPES)),
    "the symbol to export": (
        "a Symbol is needed",
        lambda value: tofu.export_onnx(value, {}, "m.onnx", SHAPES),
    ),
    "the symbol of a module": ("a Symbol is needed", tofu.Module),
    "micro-batches": ("micro_batches", lambda value: _training(micro_batches=value)),
    "segments": ("recompute", lambda value: _training(recompute=value)),
    "fixed parameters": ("fixed", lambda value: _training(fixed=value)),
    "the loss scale": ("loss_scale", lambda value: _training(loss_scale=value)),
    "workers of a frontier": ("the number of workers", lambda value: _frontier(workers=value)),
    "segments of a frontier": ("recompute", lambda value: _frontier(recompute=value)),
    "constraints": ("constraints", lambda value: tofu.partition(GRAPH, 2, constraints=value)),
    "the watch of a search": ("watch", _flexflow),
    "the name of a model": ("name", tofu.models.get),
    "the name of a tensor": ("name", _read),
    "the name of a node": ("name", lambda value: tofu.sym.relu(SYMBOL, name=value)),
    "the shape of a variable": ("the shape of 'x'", lambda value: tofu.sym.Variable("x", shape=value)),
    "settings of a variable": ("attr", lambda value: tofu.sym.Variable("x", attr=value)),
    "symbols of a group": ("symbols", tofu.sym.Group),
    "threads": ("threads", lambda value: tofu.Executor(PROGRAM, threads=value)),
    "parameters of a module": ("parameters", lambda value: tofu.Module(SYMBOL, parameters=value)),
    "parameters to export": (
        "parameters",
        lambda value: tofu.export_onnx(SYMBOL, value, "m.onnx", SHAPES),
    ),
    "the size of batches": ("batch_size", lambda value: tofu.ArrayIterator(ROWS, None, value)),
    "the number of a processor": ("device_id", tofu.cpu),
    "the number of a card": ("device_id", tofu.gpu),
    "the name of a description": ("name", lambda value: tofu.parse(TEXT, name=value)),
    "opaque functions": ("opaque", lambda value: tofu.parse(TEXT, opaque=value)),
    "operators of a description": ("operators", lambda value: tofu.parse(TEXT, operators=value)),
    "the name of an operator": ("name", tofu.operators.get),
    "the worker of a text": ("there is no worker", PROGRAM.text),
    "the operation of a text": ("there is no operation", lambda value: PROGRAM.text(operation=value)),
    "steps of a cell": ("length", lambda value: tofu.rnn.LSTMCell(4).unroll(value, SYMBOL)),
    "inputs of a cell": ("inputs", lambda value: tofu.rnn.LSTMCell(4).unroll(2, value)),
    "states of a cell": (
        "begin_state",
        lambda value: tofu.rnn.LSTMCell(4).unroll(2, SYMBOL, begin_state=value),
    ),
    "parameters that a module fixes": ("fixed", lambda value: tofu.Module(SYMBOL).bind(SHAPES, fixed=value)),
    "the graph of a strategy": ("a Graph is needed", lambda value: tofu.sync.parse({}, value, 2)),
    "the graph of a file": ("a Graph is needed", lambda value: tofu.sync.read("s.json", value, 2)),
    "a strategy to write": ("strategy", tofu.sync.document),
    "what rewrites a graph": ("of", lambda value: tofu.sync.rewrite(GRAPH, 2, value)),
    "the text of a strategy": ("text", lambda value: tofu.sync.parse_autodist(value, GRAPH, 2)),
    "an extent to cut": ("extent", lambda value: tofu.sync.evenly(0, value, 2)),
    "parts of an extent": ("parts", lambda value: tofu.sync.evenly(0, 8, value)),
    "the rank of an encoder": ("rank", tofu.sync.PowerSgd),
    "elements of an encoder": ("elements", tofu.sync.TopK),
    "converters": ("converters", lambda value: tofu.from_torch(None, None, converters=value)),
}
"""The beginning of the message, and a call that takes the argument, by what is given."""


@pytest.mark.parametrize("value", [1j, object()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_wrong_type_is_an_error_that_names_the_argument(surface: str, value: object) -> None:
    begin, call = SURFACES[surface]
    with pytest.raises(TofuError, match=f"^{re.escape(begin)}"):
        call(value)


LONG = -(10**5000)
"""An integer of more digits than Python writes."""


@pytest.mark.parametrize(
    "call",
    [
        lambda: tofu.partition(GRAPH, LONG),
        lambda: tofu.partition(GRAPH, 2, memory=LONG),
        lambda: tofu.partition(GRAPH, 2, "anneal", machine="dgx-1-v100", seed=-LONG),
        lambda: tofu.partition(GRAPH, 2, "anneal", machine="dgx-1-v100", proposals=LONG),
        lambda: tofu.training_graph(tofu.sym.relu(tofu.sym.Variable("x")), {"x": (-LONG,)}),
        lambda: tofu.training_graph(tofu.sym.relu(tofu.sym.Variable("x")), {"x": (LONG,)}),
        lambda: tofu.sym.FullyConnected(tofu.sym.Variable("x"), num_hidden=-LONG),
        lambda: MODEL.training_graph(accumulate=-LONG),
        lambda: tofu.cpu(LONG),
    ],
)
def test_an_integer_that_python_does_not_write_is_refused_by_a_message(call: Callable[[], object]) -> None:
    with pytest.raises(TofuError, match=r"-?0x31e20801036510f3c591fd|long integers"):
        call()


def test_the_message_says_what_to_give() -> None:
    with pytest.raises(TofuError, match=r"not a Graph; call tofu.lower\(graph, plan\)$"):
        tofu.Executor(GRAPH)  # type: ignore[arg-type]
    with pytest.raises(TofuError, match=r"not a Model; .* has one in model.symbol"):
        tofu.Module(MODEL)  # type: ignore[arg-type]
    with pytest.raises(TofuError, match=r"^name is 3 \(int\); give the name of a tensor$"):
        _read(3)
