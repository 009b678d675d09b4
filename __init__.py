"""Tofu trains models that do not fit one device, by partitioning every operator and tensor.

One description of an operator gives its shapes, its strategies, a kernel, gradients and a reference:

    @tofu.op
    def conv1d(data, filters):
        return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])

Everything here is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        errors,
        machines,
        models,
        mx,
        operators,
        optimizer,
        plans,
        programs,
        search,
        simulator,
        sync,
        testing,
    )
    from .api import Context, Module, cpu, distributed, frontier, gpu, partition, place, score
    from .dataflow import rnn, sym
    from .dataflow.training import inference_graph, training_graph
    from .errors import (
        DataError,
        DescriptionError,
        ExecutionError,
        GraphError,
        MachineError,
        OperatorError,
        PlanError,
        ProgramError,
        ShapeError,
        TofuError,
    )
    from .importers.onnx import export_onnx, from_onnx
    from .importers.torch import from_torch, to_torch
    from .operators.audit import audit
    from .operators.declare import Max, Min, Opaque, Prod, Reducer, Sum, load, op, parse
    from .operators.stages.differentiable import Differentiable
    from .partitioner import Plan, explain, lower
    from .partitioner.checking.check_plan import verify
    from .runtime.data import ArrayIterator, Batch, Batches
    from .runtime.executor import Executor
    from .simulator.simulate import simulate
    from .simulator.timeline import Timeline

_HOMES = {
    **dict.fromkeys(
        ("op", "parse", "load", "Sum", "Max", "Min", "Prod", "Reducer", "Opaque"), "operators.declare"
    ),
    "Differentiable": "operators.stages.differentiable",
    **dict.fromkeys(("lower", "Plan", "explain"), "partitioner"),
    **dict.fromkeys(
        ("Module", "Context", "cpu", "distributed", "frontier", "gpu", "partition", "place", "score"), "api"
    ),
    **dict.fromkeys(("ArrayIterator", "Batch", "Batches"), "runtime.data"),
    **dict.fromkeys(("from_torch", "to_torch"), "importers.torch"),
    "audit": "operators.audit",
    **dict.fromkeys(("export_onnx", "from_onnx"), "importers.onnx"),
    "Executor": "runtime.executor",
    "Timeline": "simulator.timeline",
    "simulate": "simulator.simulate",
    "verify": "partitioner.checking.check_plan",
    **dict.fromkeys(("training_graph", "inference_graph"), "dataflow.training"),
    **dict.fromkeys(
        (
            "TofuError",
            "DescriptionError",
            "ShapeError",
            "OperatorError",
            "GraphError",
            "PlanError",
            "ProgramError",
            "MachineError",
            "ExecutionError",
            "DataError",
        ),
        "errors",
    ),
}
_MODULES = {
    "errors": "errors",
    "machines": "machines",
    "models": "models",
    "mx": "mx",
    "operators": "operators",
    "optimizer": "optimizer",
    "plans": "plans",
    "programs": "programs",
    "rnn": "dataflow.rnn",
    "search": "search",
    "simulator": "simulator",
    "sym": "dataflow.sym",
    "sync": "sync",
    "testing": "testing",
}

__all__ = [
    "ArrayIterator",
    "Batch",
    "Batches",
    "Context",
    "DataError",
    "DescriptionError",
    "Differentiable",
    "ExecutionError",
    "Executor",
    "GraphError",
    "MachineError",
    "Max",
    "Min",
    "Module",
    "Opaque",
    "OperatorError",
    "Plan",
    "PlanError",
    "Prod",
    "ProgramError",
    "Reducer",
    "ShapeError",
    "Sum",
    "Timeline",
    "TofuError",
    "audit",
    "cpu",
    "distributed",
    "errors",
    "explain",
    "export_onnx",
    "from_onnx",
    "from_torch",
    "frontier",
    "gpu",
    "inference_graph",
    "load",
    "lower",
    "machines",
    "models",
    "mx",
    "op",
    "operators",
    "optimizer",
    "parse",
    "partition",
    "place",
    "plans",
    "programs",
    "rnn",
    "score",
    "search",
    "simulate",
    "simulator",
    "sym",
    "sync",
    "testing",
    "to_torch",
    "training_graph",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _let_values_show() -> None:
    """Let notebooks show plans, operators and memory plans; the code for it is imported when one is shown."""
    from .support.notebook_display import NotebookDisplay

    def page(value: object) -> str:
        """Render the value as HTML."""
        from .reports.notebook import html

        return html(value)

    NotebookDisplay.page = page


if __package__:  # pytest imports this file alone if the name of the project's folder is not a module name
    _let_values_show()
