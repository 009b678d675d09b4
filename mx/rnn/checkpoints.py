"""Checkpoints of recurrent networks, with weights by gate, so that fused cells and others read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...dataflow.symbol import Symbol
from .. import model
from ..ndarray.array import NDArray
from .cells import BaseRNNCell

Cells = BaseRNNCell | Sequence[BaseRNNCell]
Params = Mapping[str, NDArray]


def save_rnn_checkpoint(
    cells: Cells, prefix: str, epoch: int, symbol: Symbol, arg_params: Params, aux_params: Params
) -> None:
    """Save as `mx.model.save_checkpoint` does, with unpacked weights."""
    for cell in _listed(cells):
        arg_params = cell.unpack_weights(arg_params)
    model.save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(
    cells: Cells, prefix: str, epoch: int
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Return what `save_rnn_checkpoint` wrote, with weights packed for these cells."""
    symbol, arg_params, aux_params = model.load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """Return a callback as `mx.callback.do_checkpoint`, with unpacked weights."""

    def callback(epoch: int, symbol: Any, arg_params: Params, aux_params: Params) -> None:
        if (epoch + 1) % max(period, 1) == 0:
            save_rnn_checkpoint(cells, prefix, epoch + 1, symbol, arg_params, aux_params)

    return callback


def _listed(cells: Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells
