"""Trained values back into a module of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dataflow.symbol import Symbol
from ...errors import DataError
from ...support.wording import alternatives
from .constants import view_as_real
from .installed import installed


def to_torch(module: Any, symbol: Symbol, parameters: Mapping[str, npt.ArrayLike]) -> Any:
    """Write parameters and states into the module that the symbol was read from, and return the module.

    All values are checked before any is written. Tied tensors are written once. Values that the symbol does
    not have, such as the number of batches that batch normalisation has seen, stay. Raises DataError for a
    name or a shape that does not fit.
    """
    torch = installed()
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    held = {name: view_as_real(tensor) for name, tensor in named.items()}
    variables = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    for name in parameters:
        if name not in variables and name not in held:
            raise DataError(
                f"a value was given for {name!r}, which neither the symbol nor the module has"
                f"{alternatives(name, held)}"
            )
    missing = [name for name in held if name in variables and name not in parameters]
    if missing:
        raise DataError(
            f"no value was given for {', '.join(missing[:4])}; give what tofu.Module.parameters() has"
        )
    fitting = {name: _fitting(name, held[name], parameters[name]) for name in held if name in parameters}
    with torch.no_grad():
        for name, array in fitting.items():
            held[name].copy_(torch.from_numpy(array))
    return module


def _fitting(name: str, tensor: Any, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the value in the tensor's shape. A tensor without dimensions has one element in the symbol."""
    array = np.ascontiguousarray(value)
    shape = tuple(tensor.shape)
    if array.shape != (shape or (1,)) and array.shape != shape:
        raise DataError(f"{name} has shape {array.shape} in the parameters, but {shape} in the module")
    return array.reshape(shape)
