"""Executors: a symbol bound to arrays, computed by as many workers as the context has devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api import bind as tofu_bind
from ..api import simple_bind as tofu_simple_bind
from ..dataflow.symbol import Symbol
from ..runtime.bound_symbol import BoundSymbol
from ..runtime.closeable import Closeable
from . import random
from .ndarray.array import NDArray, as_array

__all__ = ["Executor", "bind", "simple_bind"]


class Executor(Closeable):
    """`arg_dict`, `grad_dict` and `aux_dict` hold the arrays; `forward` and `backward` compute with them."""

    def __init__(self, bound: BoundSymbol) -> None:
        self._bound = bound
        self._symbol = bound.symbol
        self.arg_dict = _wrapped(bound.arg_dict)
        gradients = _wrapped(bound.grad_dict)
        self.grad_dict = {name: gradients.get(name) for name in self.arg_dict}
        self.aux_dict = _wrapped(bound.aux_dict)
        self.outputs: list[NDArray] = []

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs of the last forward pass by name."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=False))

    @property
    def arg_arrays(self) -> list[NDArray]:
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self) -> list[NDArray | None]:
        return list(self.grad_dict.values())

    @property
    def aux_arrays(self) -> list[NDArray]:
        return list(self.aux_dict.values())

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs; `kwargs` are assigned to arguments first. See `BoundSymbol.forward`."""
        data = {name: as_array(value) for name, value in kwargs.items()}
        self.outputs = [NDArray(output) for output in self._bound.forward(is_train, **data)]
        return self.outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients of the last `forward(is_train=True)`. See `BoundSymbol.backward`."""
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads[name] for name in self._symbol.list_outputs() if name in out_grads]
        if isinstance(out_grads, list | tuple):
            self._bound.backward([as_array(gradient) for gradient in out_grads])
        else:
            self._bound.backward(None if out_grads is None else as_array(out_grads))

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """Return an executor for other shapes of some arguments; arrays whose shape stays are shared."""
        return Executor(self._bound.reshape(**kwargs))

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Assign values to arguments and auxiliary states by name. See `BoundSymbol.copy_params_from`."""
        self._bound.copy_params_from(
            {name: as_array(value) for name, value in arg_params.items()},
            {name: as_array(value) for name, value in (aux_params or {}).items()},
            allow_extra_params,
        )

    def close(self) -> None:
        """End all threads and give the workers' memory back."""
        self._bound.close()


def simple_bind(symbol: Symbol, ctx: Any, grad_req: Any, shapes: Mapping[str, Any]) -> Executor:
    """See `Symbol.simple_bind`."""
    arguments: dict[str, Any] = {name: _shape(value) for name, value in shapes.items()}
    seed = random.current_seed()
    return Executor(tofu_simple_bind(symbol, ctx, grad_req=grad_req, seed=seed, **arguments))


def bind(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any) -> Executor:
    """See `Symbol.bind`."""
    arguments, gradients, states = map(_unwrapped, (args, args_grad, aux_states))
    seed = random.current_seed()
    return Executor(tofu_bind(symbol, ctx, arguments, gradients, grad_req, states, seed=seed))


def _shape(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _wrapped(arrays: Mapping[str, Any]) -> dict[str, NDArray]:
    return {name: NDArray(array) for name, array in arrays.items()}


def _unwrapped(given: Any) -> Any:
    """Return the NumPy arrays in a dictionary or list of arrays."""
    if isinstance(given, Mapping):
        return {name: as_array(value) for name, value in given.items() if value is not None}
    return given if given is None else [None if value is None else as_array(value) for value in given]
