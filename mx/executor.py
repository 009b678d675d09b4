"""Executors: a symbol bound to arrays, computed by as many workers as the context has devices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..analyzer.indices.region import Shape
from ..api import partition
from ..dataflow.graph import Role
from ..dataflow.symbol import Symbol
from ..dataflow.training import gradient_graph, inference_graph
from ..errors import DataError, ExecutionError, ShapeError
from ..operators.kernels.kernel import Array
from ..partitioner import lower
from ..runtime import executor as runtime
from ..runtime.choose_engine import engine_on
from ..runtime.closeable import Closeable
from ..runtime.context import Context, devices_of
from ..runtime.initializer import Uniform, initial_value
from ..runtime.parameters import tensors_of
from ..support.wording import alternatives
from .arguments import assign, named, requests_of
from .ndarray.array import NDArray, as_array
from .seed import current_seed

__all__ = ["Executor", "bind", "simple_bind"]


def simple_bind(symbol: Symbol, ctx: Any, grad_req: Any, shapes: Mapping[str, Any]) -> Executor:
    """See `Symbol.simple_bind`."""
    return _bound_to_zeros(symbol, devices_of(ctx), grad_req, shapes, current_seed())


def bind(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any) -> Executor:
    """See `Symbol.bind`. No gradient is computed for an argument without an array for it.

    Raises DataError for an array that is missing or unknown, ShapeError for shapes that do not fit.
    """
    names = symbol.list_arguments()
    arguments = named("args", names, args)
    gradients = named("args_grad", names, args_grad or {}, partial=True)
    auxiliary = named("aux_states", symbol.list_auxiliary_states(), aux_states or {})
    symbol.infer_shape(**{name: array.shape for name, array in {**arguments, **auxiliary}.items()})
    for name, gradient in gradients.items():
        if gradient.shape != arguments[name].shape:
            raise ShapeError(
                f"argument '{name}' has shape {arguments[name].shape}, but its array in args_grad has shape "
                f"{gradient.shape}"
            )
    requests = {
        name: request if name in gradients else "null"
        for name, request in requests_of(names, grad_req).items()
    }
    kept = {name: gradients[name] for name in _wanted(requests)}
    return Executor(symbol, devices_of(ctx), requests, arguments, kept, auxiliary, current_seed())


class Executor(Closeable):
    """Arrays for all arguments, auxiliary states and gradients, and calls that compute with them.

    `arg_dict`, `grad_dict` and `aux_dict` hold the arrays by name; `grad_dict` has None for an argument whose
    gradient is not computed. A gradient that is zero everywhere stays zero. `seed` determines the random
    numbers of operators such as Dropout.
    """

    def __init__(
        self,
        symbol: Symbol,
        devices: Sequence[Context],
        requests: Mapping[str, str],
        arguments: dict[str, NDArray],
        gradients: Mapping[str, NDArray],
        auxiliary: dict[str, NDArray],
        seed: int,
    ) -> None:
        self.arg_dict = arguments
        self.grad_dict = {name: gradients.get(name) for name in arguments}
        self.aux_dict = auxiliary
        self._symbol = symbol
        self._requests = requests
        self._devices = devices
        self._seed = seed
        self._seeds: dict[str, Array] = {}
        self._executors: dict[bool, runtime.Executor] = {}
        self._ran_training = False

    @cached_property
    def outputs(self) -> list[NDArray]:
        """The outputs of the last forward pass, zeros before it. Every pass overwrites the same arrays."""
        shapes = {name: array.shape for name, array in {**self.arg_dict, **self.aux_dict}.items()}
        return [NDArray(np.zeros(shape, np.float32)) for shape in self._symbol.infer_shape(**shapes)[1]]

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs of the last forward pass by name."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=True))

    @property
    def arg_arrays(self) -> list[NDArray]:
        """The arguments in the order of `list_arguments`."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        """The gradients in the order of `list_arguments`."""
        return list(self.grad_dict.values())

    @property
    def aux_arrays(self) -> list[NDArray]:
        """The auxiliary states in the order of `list_auxiliary_states`."""
        return list(self.aux_dict.values())

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs; `kwargs` are assigned to arguments first.

        If `is_train`, auxiliary states such as moving means are updated too.
        """
        for name, value in kwargs.items():
            if name not in self.arg_dict:
                raise DataError(f"the symbol has no argument '{name}'{alternatives(name, self.arg_dict)}")
            assign(self.arg_dict, name, value)
        executor = self._run(is_train, {})
        self._ran_training = is_train
        self._read_outputs(executor)
        return self.outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients of the last forward pass, or else of the arguments, into `grad_dict`.

        A pass with `is_train=True` is required if the symbol computes something else in training. `out_grads`
        are the gradients of the outputs that are not losses, in order or by name; each of them is required. A
        list with one for every output is accepted too; the entries of losses are ignored. Raises
        ExecutionError if a pass is required and is not the last one, or if no gradient is asked for.
        """
        if not _wanted(self._requests):
            raise ExecutionError("backward has no gradient to compute: every grad_req is 'null'")
        executor = self._executors[True] if self._ran_training else self._trained()
        heads = self._heads(executor)
        if heads:
            self._run(True, {**dict(zip(heads, self._listed(out_grads, heads), strict=True)), **self._seeds})
        for name, gradient in self.grad_dict.items():
            if gradient is None:
                continue
            array = gradient.numpy_array
            if self._requests[name] == "write":
                array[...] = 0
            if executor.has(f"grad({name})"):
                array[...] = np.add(array, executor.read(f"grad({name})"))

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """Return an executor for other shapes of some arguments.

        Its arrays are the first elements of the arrays here, in the same memory, also those of outputs.
        Raises ShapeError if an array grows, unless `allow_up_sizing` lets it begin as zeros, and if the shape
        of an argument that is not named changes, unless `partial_shaping`. Outputs may grow, and change.
        """
        made = _bound_to_zeros(self._symbol, self._devices, self._requests, kwargs, self._seed)
        for own, new in (
            (self.arg_dict, made.arg_dict),
            (self.grad_dict, made.grad_dict),
            (self.aux_dict, made.aux_dict),
        ):
            for name, array in own.items():
                other = new[name]
                if array is None or other is None:
                    continue
                if not partial_shaping and name not in kwargs and other.shape != array.shape:
                    raise ShapeError(
                        f"'{name}' has shape {array.shape}, but would have shape {other.shape}; name it, or "
                        "allow the change with partial_shaping=True"
                    )
                if other.size <= array.size:
                    new[name] = _first_elements(name, array, other.shape)
                elif not allow_up_sizing:
                    raise ShapeError(
                        f"'{name}' has shape {array.shape}, and {other.shape} is larger; bind the largest "
                        "shape first, or allow new arrays with allow_up_sizing=True"
                    )
        made.outputs = [
            _first_elements("an output", own, new.shape) if new.size <= own.size else new
            for own, new in zip(self.outputs, made.outputs, strict=True)
        ]
        return made

    def copy_params_from(
        self,
        arg_params: Mapping[str, Any],
        aux_params: Mapping[str, Any] | None = None,
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

    def close(self) -> None:
        """End all threads and release the workers' memory."""
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()
        self._ran_training = False

    def _run(self, is_train: bool, heads: Mapping[str, Any]) -> runtime.Executor:
        executor = self._executors.get(is_train)
        if executor is None:
            executor = self._executors[is_train] = self._make(is_train)
        self._seeds = {name: executor.read(name) for name in self._seed_names(executor)}
        for name, array in {**self.arg_dict, **self.aux_dict, **heads}.items():
            if executor.has(name):
                executor.write(name, as_array(array))
        executor.run()
        return executor

    def _trained(self) -> runtime.Executor:
        """Run a pass in training on the arguments. Raises ExecutionError if the last one may differ."""
        executor = self._run(True, {}) if not self.aux_dict else None
        if executor is None or self._seed_names(executor):
            raise ExecutionError(
                "backward needs forward(is_train=True) before it: the symbol has auxiliary states or draws "
                "random numbers, so it computes something else in training"
            )
        return executor

    def _make(self, is_train: bool) -> runtime.Executor:
        shapes = {name: array.shape for name, array in self.arg_dict.items()}
        graph = (
            gradient_graph(self._symbol, shapes, _wanted(self._requests))
            if is_train
            else inference_graph(self._symbol, shapes)
        )
        partitioned = lower(graph, partition(graph, len(self._devices)))
        executor = runtime.Executor(partitioned, make_engine=engine_on(self._devices))
        for name in self._seed_names(executor):
            executor.write(name, initial_value(name, (1,), Uniform(), self._seed))
        return executor

    def _seed_names(self, executor: runtime.Executor) -> list[str]:
        """Return the states of random operators, which no user sees."""
        states = tensors_of(executor, Role.AUXILIARY)
        return [state.name for state in states if state.name not in self.aux_dict]

    def _read_outputs(self, executor: runtime.Executor) -> None:
        for name, state in self.aux_dict.items():
            if executor.has(name):
                state.numpy_array[...] = executor.read(name)
        graph = executor.partitioned.graph
        names = [graph.tensors[index].name for index in graph.outputs[: len(self._symbol)]]
        for name, output in zip(names, self.outputs, strict=True):
            output.numpy_array[...] = executor.read(name)

    def _heads(self, executor: runtime.Executor) -> list[str]:
        """List the tensors that are fed besides the arguments: gradients of outputs that are not losses."""
        fed = [t.name for t in executor.partitioned.graph.tensors if t.role is Role.DATA]
        return [name for name in fed if name not in self.arg_dict]

    def _listed(self, out_grads: Any, heads: Sequence[str]) -> list[Any]:
        """Select the gradient for each of `heads` from the user's `out_grads`."""
        outputs = self._symbol.list_outputs()
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads[name] for name in outputs if name in out_grads]
        listed = list(out_grads) if isinstance(out_grads, list | tuple) else [out_grads]
        names = [f"head({name})" for name in outputs]
        if out_grads is not None and len(listed) == len(names):
            listed = [value for name, value in zip(names, listed, strict=True) if name in heads]
        if out_grads is None or len(listed) != len(heads):
            given = 0 if out_grads is None else len(listed)
            raise DataError(f"backward needs out_grads for {', '.join(heads)}, but {given} were given")
        return listed


def _bound_to_zeros(
    symbol: Symbol, devices: Sequence[Context], grad_req: Any, shapes: Mapping[str, Any], seed: int
) -> Executor:
    """Bind a symbol to zeros. Raises ShapeError if shapes cannot be inferred from those given."""
    extents = {name: (value,) if isinstance(value, int) else tuple(value) for name, value in shapes.items()}
    shapes_of_arguments, _, shapes_of_states = symbol.infer_shape(**extents)
    names = symbol.list_arguments()
    requests = requests_of(names, grad_req)
    arguments = _zeros(names, shapes_of_arguments)
    gradients = _zeros(_wanted(requests), [arguments[name].shape for name in _wanted(requests)])
    states = _zeros(symbol.list_auxiliary_states(), shapes_of_states)
    return Executor(symbol, devices, requests, arguments, gradients, states, seed)


def _zeros(names: Sequence[str], shapes: Sequence[Shape]) -> dict[str, NDArray]:
    return {name: NDArray(np.zeros(shape, np.float32)) for name, shape in zip(names, shapes, strict=True)}


def _wanted(requests: Mapping[str, str]) -> list[str]:
    """Return the arguments whose gradient is computed."""
    return [name for name, request in requests.items() if request != "null"]


def _first_elements(name: str, array: NDArray, shape: Shape) -> NDArray:
    """Return the first elements of an array under another shape, in the same memory."""
    if shape == array.shape:
        return array
    if not array.numpy_array.flags.c_contiguous:
        raise DataError(f"the array of '{name}' is not contiguous and cannot be reshaped; bind a copy of it")
    return NDArray(array.numpy_array.reshape(-1)[: math.prod(shape)].reshape(shape))
