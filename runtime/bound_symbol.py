"""Bind a symbol to memory, with forward and backward as separate calls, like MXNet's executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analyzer.indices.region import Shape
from ..dataflow.graph import Role
from ..dataflow.symbol import Symbol
from ..dataflow.training import gradient_graph, inference_graph
from ..errors import DataError, ExecutionError, ShapeError
from ..operators.kernels.kernel import Array
from ..support.wording import alternatives
from .arguments import Arrays, GradientRequest, assign, named, requests_of
from .choose_engine import engine_on
from .closeable import Closeable
from .context import Context, devices_of
from .executor import Executor, Lower
from .initializer import Floats, Uniform, initial_value
from .parameters import tensors_of


def simple_bind(
    symbol: Symbol,
    context: Context | Sequence[Context] | None = None,
    *,
    lower: Lower,
    grad_req: GradientRequest = "write",
    seed: int = 0,
    **shapes: Shape,
) -> BoundSymbol:
    """Bind a symbol to zeros; all shapes are inferred from those given by argument name.

    `grad_req` says, for all arguments, for each in order, or by name, what `backward` does with a gradient:
    "write" it, "add" it to the array, or "null" to skip it. Raises ShapeError if shapes cannot be inferred.
    """
    arguments, _, states = symbol.infer_shape(**shapes)
    names = symbol.list_arguments()
    requests = requests_of(names, grad_req)
    wanted = [name for name in names if requests[name] != "null"]
    arrays = _zeros(names, arguments)
    gradients = _zeros(wanted, [arrays[name].shape for name in wanted])
    auxiliary = _zeros(symbol.list_auxiliary_states(), states)
    return BoundSymbol(symbol, devices_of(context), lower, requests, arrays, gradients, auxiliary, seed)


def _zeros(names: Sequence[str], shapes: Sequence[Shape]) -> dict[str, Floats]:
    return {name: np.zeros(shape, np.float32) for name, shape in zip(names, shapes, strict=True)}


def bind(
    symbol: Symbol,
    context: Context | Sequence[Context] | None,
    args: Arrays,
    args_grad: Arrays | None = None,
    grad_req: GradientRequest = "write",
    aux_states: Arrays | None = None,
    *,
    lower: Lower,
    seed: int = 0,
) -> BoundSymbol:
    """Bind a symbol to the user's arrays, by name or in the order of `list_arguments`.

    Arrays of float32 are shared, so gradients appear in the user's arrays. No gradient is computed for an
    argument without an array for it. Raises DataError for an array that is missing or unknown, ShapeError for
    shapes that do not fit.
    """
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    arguments = named("args", names, args)
    gradients = named("args_grad", names, args_grad or {}, partial=True)
    auxiliary = named("aux_states", states, aux_states or {})
    symbol.infer_shape(**{name: array.shape for name, array in {**arguments, **auxiliary}.items()})
    for name, gradient in gradients.items():
        if gradient.shape != arguments[name].shape:
            raise ShapeError(
                f"argument '{name}' has shape {arguments[name].shape}, but its array in args_grad has shape "
                f"{gradient.shape}"
            )
    requests = requests_of(names, grad_req)
    requests = {name: request if name in gradients else "null" for name, request in requests.items()}
    kept = {name: array for name, array in gradients.items() if requests[name] != "null"}
    return BoundSymbol(symbol, devices_of(context), lower, requests, arguments, kept, auxiliary, seed)


class BoundSymbol(Closeable):
    """Arrays for all arguments, auxiliary states and gradients, and calls that compute with them.

    `arg_dict`, `aux_dict` and `grad_dict` hold whole arrays by name; assign to their elements,
    `arg_dict["fc1_weight"][:] = ...`. A gradient that is zero everywhere stays zero. `seed`
    determines the random numbers of operators such as Dropout.
    """

    def __init__(
        self,
        symbol: Symbol,
        devices: Sequence[Context],
        lower: Lower,
        requests: Mapping[str, str],
        arguments: dict[str, Floats],
        gradients: dict[str, Floats],
        auxiliary: dict[str, Floats],
        seed: int = 0,
    ) -> None:
        self.symbol = symbol
        self.arg_dict = arguments
        self.grad_dict = gradients
        self.aux_dict = auxiliary
        self.outputs: list[Array] = []
        self._requests = requests
        self._devices = devices
        self._lower = lower
        self._seed = seed
        self._seeds: dict[str, Array] = {}
        self._executors: dict[bool, Executor] = {}
        self._ran_training = False

    @property
    def arg_arrays(self) -> list[Floats]:
        """Return the arguments in the order of `list_arguments`."""
        return [self.arg_dict[name] for name in self.symbol.list_arguments()]

    @property
    def grad_arrays(self) -> list[Floats | None]:
        """Return the gradients in the order of `list_arguments`; None if none is computed."""
        return [self.grad_dict.get(name) for name in self.symbol.list_arguments()]

    @property
    def aux_arrays(self) -> list[Floats]:
        """Return the auxiliary states in the order of `list_auxiliary_states`."""
        return [self.aux_dict[name] for name in self.symbol.list_auxiliary_states()]

    def reshape(self, **shapes: Shape) -> BoundSymbol:
        """Bind the symbol to other shapes of some arguments; arrays whose shape stays the same are shared."""
        made = simple_bind(
            self.symbol,
            self._devices,
            lower=self._lower,
            grad_req=dict(self._requests),
            seed=self._seed,
            **shapes,
        )
        for mine, new in (
            (self.arg_dict, made.arg_dict),
            (self.grad_dict, made.grad_dict),
            (self.aux_dict, made.aux_dict),
        ):
            new.update({name: array for name, array in mine.items() if array.shape == new[name].shape})
        return made

    def copy_params_from(
        self,
        arg_params: Mapping[str, npt.ArrayLike],
        aux_params: Mapping[str, npt.ArrayLike] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Assign values to arguments and auxiliary states by name.

        Raises DataError for an unknown name, unless extra names are allowed, and for another shape.
        """
        for mine, given in ((self.arg_dict, arg_params), (self.aux_dict, aux_params or {})):
            for name, value in given.items():
                if name in mine:
                    assign(mine, name, value)
                elif not allow_extra_params:
                    raise DataError(f"the symbol has no '{name}'{alternatives(name, mine)}")

    @property
    def output_dict(self) -> dict[str, Array]:
        """Return the outputs of the last forward pass by name; empty before it."""
        return dict(zip(self.symbol.list_outputs(), self.outputs, strict=False))

    def forward(self, is_train: bool = False, **data: npt.ArrayLike) -> list[Array]:
        """Compute the outputs; `data` is assigned to arguments first.

        If `is_train`, auxiliary states such as moving means are updated too.
        """
        for name, value in data.items():
            if name not in self.arg_dict:
                raise DataError(f"the symbol has no argument '{name}'{alternatives(name, self.arg_dict)}")
            assign(self.arg_dict, name, value)
        executor = self._run(is_train, {})
        self._ran_training = is_train
        self.outputs = self._read_outputs(executor)
        return self.outputs

    def backward(self, out_grads: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None) -> None:
        """Compute the gradients of the last `forward(is_train=True)` into `grad_dict`.

        `out_grads` are the gradients of the outputs that are not losses, in order; each of them is required.
        A list with one for every output is accepted too; the entries of losses are ignored. Raises
        ExecutionError if there was no such forward pass.
        """
        if not self._ran_training or not self.grad_dict:
            raise ExecutionError(
                "backward needs forward(is_train=True) before it, and a grad_req other than 'null'"
            )
        executor = self._executors[True]
        heads = self._heads(executor)
        if heads:
            self._run(True, {**dict(zip(heads, self._listed(out_grads, heads), strict=True)), **self._seeds})
        for name, gradient in self.grad_dict.items():
            if self._requests[name] == "write":
                gradient[...] = 0
            if executor.has(f"grad({name})"):
                gradient[...] = np.add(gradient, executor.read(f"grad({name})"))

    def close(self) -> None:
        """End all threads and release the workers' memory."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()

    def _run(self, is_train: bool, heads: Mapping[str, npt.ArrayLike]) -> Executor:
        executor = self._executors.get(is_train)
        if executor is None:
            executor = self._executors[is_train] = self._make(is_train)
        self._seeds = {name: executor.read(name) for name in self._seed_names(executor)}
        for name, array in {**self.arg_dict, **self.aux_dict, **heads}.items():
            if executor.has(name):
                executor.write(name, array)
        executor.run()
        return executor

    def _make(self, is_train: bool) -> Executor:
        shapes = {name: array.shape for name, array in self.arg_dict.items()}
        graph = (
            gradient_graph(self.symbol, shapes, list(self.grad_dict))
            if is_train
            else inference_graph(self.symbol, shapes)
        )
        executor = Executor(self._lower(graph, len(self._devices)), make_engine=engine_on(self._devices))
        for name in self._seed_names(executor):
            executor.write(name, initial_value(name, (1,), Uniform(), self._seed))
        return executor

    def _seed_names(self, executor: Executor) -> list[str]:
        """Return the states of random operators, which no user sees."""
        states = tensors_of(executor, Role.AUXILIARY)
        return [state.name for state in states if state.name not in self.aux_dict]

    def _read_outputs(self, executor: Executor) -> list[Array]:
        for name, state in self.aux_dict.items():
            if executor.has(name):
                state[...] = executor.read(name)
        graph = executor.partitioned.graph
        return [executor.read(graph.tensors[index].name) for index in graph.outputs[: len(self.symbol)]]

    def _heads(self, executor: Executor) -> list[str]:
        """List the tensors that are fed besides the arguments: gradients of outputs that are not losses."""
        fed = [t.name for t in executor.partitioned.graph.tensors if t.role is Role.DATA]
        return [name for name in fed if name not in self.arg_dict]

    def _listed(self, out_grads: Any, heads: Sequence[str]) -> list[npt.ArrayLike]:
        """Select the gradient for each of `heads` from the user's `out_grads`."""
        listed = list(out_grads) if isinstance(out_grads, list | tuple) else [out_grads]
        names = [f"head({name})" for name in self.symbol.list_outputs()]
        if out_grads is not None and len(listed) == len(names):
            listed = [value for name, value in zip(names, listed, strict=True) if name in heads]
        if out_grads is None or len(listed) != len(heads):
            given = 0 if out_grads is None else len(listed)
            raise DataError(f"backward needs out_grads for {', '.join(heads)}, but {given} were given")
        return listed
