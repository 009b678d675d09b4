"""`mx.model`: a symbol and its parameters in files, `prefix-symbol.json` and `prefix-0001.params`.

Parameters are in the safetensors format, under the names `arg:fc1_weight` and `aux:bn_moving_mean`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..dataflow.symbol import Symbol
from ..errors import DataError
from . import symbol as sym
from .ndarray.array import NDArray
from .ndarray.files import load, save

__all__ = ["BatchEndParam", "load_checkpoint", "load_params", "save_checkpoint"]

Params = Mapping[str, NDArray]


class BatchEndParam(NamedTuple):
    """The argument of a callback after a batch, with MXNet's names."""

    epoch: int
    """The number of the epoch, from 0."""

    nbatch: int
    """The number of the batch in the epoch, from 0; at the end of a score, the number of batches."""

    eval_metric: Any
    """The metric so far."""

    locals: Any = None
    """The local variables of the loop that calls, as in MXNet; None outside of such a loop."""


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Params,
    aux_params: Params,
    remove_amp_cast: bool = True,
) -> None:
    """Write symbol and parameters. Raises DataError if they cannot be written."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json")
    save_params(f"{prefix}-{epoch:04d}.params", arg_params, aux_params)


def load_checkpoint(prefix: str, epoch: int) -> tuple[sym.Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Return the symbol, its parameters and its auxiliary states. Raises GraphError, DataError."""
    symbol = sym.load(f"{prefix}-symbol.json")
    return symbol, *load_params(prefix, epoch)


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return the parameters and the auxiliary states of an epoch. Raises DataError."""
    return read_params(f"{prefix}-{epoch:04d}.params")


def save_params(fname: str, arg_params: Params, aux_params: Params) -> None:
    """Write parameters and auxiliary states to one file."""
    named = {f"arg:{name}": array for name, array in arg_params.items()}
    save(fname, named | {f"aux:{name}": array for name, array in aux_params.items()})


def read_params(fname: str) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Return what `save_params` wrote."""
    found: Any = load(fname)
    kinds: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
    for key, array in found.items() if isinstance(found, dict) else ():
        kind, _, name = key.partition(":")
        if kind not in kinds:
            raise DataError(f"{fname} holds '{key}', expected names such as 'arg:fc1_weight'")
        kinds[kind][name] = array
    return kinds["arg"], kinds["aux"]
