"""A symbol bound to memory with forward and backward as separate calls, in the manner of MXNet's executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analyzer.region import Shape
from ..dataflow.graph import Graph, Role
from ..dataflow.partitioned import PartitionedGraph
from ..dataflow.symbol import Symbol
from ..dataflow.training import gradient_graph, inference_graph
from ..errors import DataError, ExecutionError
from ..operators.kernel import Array
from .context import Context, worker_count
from .executor import Executor

Lower = Callable[[Graph, int], PartitionedGraph]
Floats = npt.NDArray[np.float32]


def simple_bind(
    symbol: Symbol,
    context: Context | Sequence[Context] | None = None,
    *,
    lower: Lower,
    grad_req: str = "write",
    **shapes: Shape,
) -> BoundSymbol:
    """Bind a symbol whose shapes follow from those given by argument name.

    `grad_req` is "write" for gradients of all arguments, "null" for none. Raises ShapeError where shapes
    cannot be inferred.
    """
    if grad_req not in ("write", "null"):
        raise DataError(f"grad_req is '{grad_req}'; it must be 'write' or 'null'")
    return BoundSymbol(symbol, worker_count(context), lower, grad_req == "write", shapes)


class BoundSymbol:
    """Arrays for all arguments, auxiliary states and gradients, and calls that compute with them.

    `arg_dict`, `aux_dict` and `grad_dict` hold whole arrays by name; assign to their elements,
    `arg_dict["fc1_weight"][:] = ...`. A gradient that is zero everywhere stays zero.
    """

    def __init__(
        self, symbol: Symbol, workers: int, lower: Lower, gradients: bool, shapes: Mapping[str, Shape]
    ) -> None:
        arguments, _, auxiliary = symbol.infer_shape(**shapes)
        named = dict(zip(symbol.list_arguments(), arguments, strict=True))
        states = dict(zip(symbol.list_auxiliary_states(), auxiliary, strict=True))
        self.symbol = symbol
        self.arg_dict: dict[str, Floats] = {name: np.zeros(shape, "f4") for name, shape in named.items()}
        self.aux_dict: dict[str, Floats] = {name: np.zeros(shape, "f4") for name, shape in states.items()}
        self.grad_dict: dict[str, Floats] = {
            name: np.zeros(shape, "f4") for name, shape in named.items() if gradients
        }
        self.outputs: list[Array] = []
        self._shapes = named
        self._workers = workers
        self._lower = lower
        self._executors: dict[bool, Executor] = {}
        self._ran_training = False

    @property
    def output_dict(self) -> dict[str, Array]:
        """The outputs of the last forward pass by name."""
        return dict(zip(self.symbol.list_outputs(), self.outputs, strict=True))

    def forward(self, is_train: bool = False, **data: npt.ArrayLike) -> list[Array]:
        """Compute the outputs; `data` is assigned to arguments first.

        With `is_train` auxiliary states such as moving means are updated too.
        """
        for name, value in data.items():
            if name not in self.arg_dict:
                raise DataError(f"the symbol has no argument '{name}'; it has {', '.join(self.arg_dict)}")
            array = np.asarray(value)
            if array.shape != self.arg_dict[name].shape:
                raise DataError(f"argument '{name}' has shape {self.arg_dict[name].shape}, not {array.shape}")
            self.arg_dict[name][...] = array
        executor = self._run(is_train, {})
        self._ran_training = is_train
        self.outputs = self._read_outputs(executor)
        return self.outputs

    def backward(self, out_grads: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None) -> None:
        """Compute the gradients of the last `forward(is_train=True)` into `grad_dict`.

        `out_grads` are the gradients of the outputs that are no losses, in order; each of them is needed.
        Raises ExecutionError where there was no such forward pass.
        """
        if not self._ran_training or not self.grad_dict:
            raise ExecutionError("backward needs forward(is_train=True) before it, and grad_req='write'")
        executor = self._executors[True]
        heads = self._heads(executor)
        if heads:
            self._run(True, dict(zip(heads, _listed(out_grads, heads), strict=True)))
        for name, gradient in self.grad_dict.items():
            if executor.has(f"grad({name})"):
                gradient[...] = executor.read(f"grad({name})")

    def close(self) -> None:
        """End all threads and give the workers' memory back."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()

    def __enter__(self) -> BoundSymbol:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, is_train: bool, heads: Mapping[str, npt.ArrayLike]) -> Executor:
        executor = self._executors.get(is_train)
        if executor is None:
            executor = self._executors[is_train] = self._make(is_train)
        for name, array in {**self.arg_dict, **self.aux_dict, **heads}.items():
            if executor.has(name):
                executor.write(name, array)
        executor.run()
        return executor

    def _make(self, is_train: bool) -> Executor:
        graph = (
            gradient_graph(self.symbol, self._shapes, list(self.grad_dict))
            if is_train
            else inference_graph(self.symbol, self._shapes)
        )
        return Executor(self._lower(graph, self._workers))

    def _read_outputs(self, executor: Executor) -> list[Array]:
        for name, state in self.aux_dict.items():
            if executor.has(name):
                state[...] = executor.read(name)
        graph = executor.partitioned.graph
        return [executor.read(graph.tensors[index].name) for index in graph.outputs[: len(self.symbol)]]

    def _heads(self, executor: Executor) -> list[str]:
        """What is fed beside the arguments: the gradients of the outputs that are no losses."""
        fed = [t.name for t in executor.partitioned.graph.tensors if t.role is Role.DATA]
        return [name for name in fed if name not in self.arg_dict]


def _listed(out_grads: Any, heads: Sequence[str]) -> list[npt.ArrayLike]:
    listed = list(out_grads) if isinstance(out_grads, list | tuple) else [out_grads]
    if out_grads is None or len(listed) != len(heads):
        given = 0 if out_grads is None else len(listed)
        raise DataError(f"backward needs out_grads for {', '.join(heads)}, but {given} were given")
    return listed
