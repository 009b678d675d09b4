"""Tensors that depend on nothing that changes: variables that are not trained, each of them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dataflow.symbol.compose import variable
from .call import Kind, TensorValue
from .installed import installed

Array = npt.NDArray[Any]


def kind_of(tensor: Any) -> Kind:
    """Return the kind of a tensor's elements."""
    if tensor.is_complex():
        return "complex"
    if tensor.is_floating_point():
        return "float"
    return "bool" if str(tensor.dtype) == "torch.bool" else "int"


def view_as_real(tensor: Any) -> Any:
    """Return the parts of complex numbers in a last dimension of two, and other tensors as they are."""
    return installed().view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def array_of(tensor: Any) -> Array:
    """Return a copy of a tensor as an array of float32, or of float64 if it is; at least one dimension.

    Complex numbers have their parts in a last dimension. A tensor that repeats one element in memory of its
    size gives a read-only array of that kind.
    """
    plain = tensor.detach().cpu()
    if plain.is_complex():
        plain = view_as_real(plain)
    if plain.numel() > 1 and not any(plain.stride()):
        return np.broadcast_to(array_of(plain[(0,) * plain.dim()])[0], tuple(plain.shape))
    wanted = np.float64 if str(plain.dtype) == "torch.float64" else np.float32
    if str(plain.dtype) == "torch.bfloat16":
        plain = plain.float()
    array: Array = np.array(plain.numpy(), dtype=wanted)
    return array.reshape(array.shape or (1,))


class ModuleConstants:
    """The constants of one module by their contents."""

    def __init__(self, named: Mapping[int, str], unique: Callable[[str], str]) -> None:
        self.values: dict[str, Array] = {}
        self._named = named
        self._unique = unique
        self._found: dict[tuple[tuple[int, ...], bytes], TensorValue] = {}

    def tensor(self, value: Any, near: str) -> TensorValue:
        """Return the variable that holds a tensor or a number. It has the buffer's name if it is a buffer, or
        else one after the call that reads it.
        """
        value = installed().as_tensor(value)
        array = array_of(value)
        key = (tuple(value.shape), sha256(array.tobytes()).digest())
        found = self._found.get(key)
        if found is None:
            name = self._unique(self._named.get(id(value), f"{near}.constant"))
            self.values[name] = array
            symbol = variable(name, array.shape, lr_mult=0.0)
            found = self._found[key] = TensorValue(symbol, tuple(value.shape), kind_of(value))
        return TensorValue(found.symbol, found.shape, kind_of(value))
