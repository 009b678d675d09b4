"""Cells made of cells: one on top of the other, or one in each direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...dataflow import rnn
from ...errors import GraphError
from .. import symbol as sym
from ..ndarray.array import NDArray
from ..symbol import Symbol
from .cells import BaseRNNCell, Outputs, RNNParams, States, merge, split


class CellGroup(BaseRNNCell):
    """Cells whose states stand one after the other."""

    _cells: Sequence[BaseRNNCell]

    def reset(self) -> None:
        super().reset()
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Callable[..., Any] = sym.zeros, **settings: Any) -> States:
        return [state for cell in self._cells for state in cell.begin_state(func, **settings)]


class SequentialRNNCell(CellGroup):
    """Cells stacked: the outputs of one are the inputs of the next."""

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__("", params)
        self._cells: list[BaseRNNCell] = []

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell on top. Raises GraphError if another cell has its prefix but other weights."""
        if any(isinstance(cell, type(other)) and _clash(cell, other) for other in self._cells):
            raise GraphError(
                f"two cells of the stack have the prefix {cell._prefix!r}; give each its own prefix=, a "
                "BidirectionalCell its own output_prefix="
            )
        self._cells.append(cell)
        self._params.include(cell._params)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        last: States = []
        left = list(states)
        for cell in self._cells:
            if isinstance(cell, BidirectionalCell):
                raise GraphError("a BidirectionalCell needs the whole sequence; call unroll")
            own, left = left[: len(cell.state_info)], left[len(cell.state_info) :]
            inputs, after = cell(inputs, own)
            last += after
        return inputs, last

    def unroll(
        self,
        length: int,
        inputs: Any = None,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        input_prefix: str = "",
    ) -> tuple[Outputs, States]:
        """Unroll layer after layer; see `BaseRNNCell.unroll`."""
        self.reset()
        layers = [
            (len(cell.state_info), partial(cell.unroll, input_prefix=input_prefix)) for cell in self._cells
        ]
        states = self.begin_state() if begin_state is None else list(begin_state)
        return rnn.unroll_layers(layers, length, inputs, states, layout, bool(merge_outputs))

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        found = dict(args)
        for cell in self._cells:
            found = cell.unpack_weights(found)
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        found = dict(args)
        for cell in self._cells:
            found = cell.pack_weights(found)
        return found


class BidirectionalCell(CellGroup):
    """A cell that reads the sequence forwards and one that reads it backwards; outputs are concatenated."""

    def __init__(
        self,
        l_cell: BaseRNNCell,
        r_cell: BaseRNNCell,
        params: RNNParams | None = None,
        output_prefix: str = "bi_",
    ) -> None:
        super().__init__(output_prefix, params)
        if l_cell._prefix == r_cell._prefix and l_cell._params is not r_cell._params:
            raise GraphError(f"both cells have the prefix {l_cell._prefix!r}; give each its own prefix=")
        self._cells = (l_cell, r_cell)
        for cell in self._cells:
            self._params.include(cell._params)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        """Raises GraphError: the whole sequence is needed."""
        raise GraphError("a BidirectionalCell needs the whole sequence; call unroll")

    def unroll(
        self,
        length: int,
        inputs: Any = None,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        input_prefix: str = "",
    ) -> tuple[Outputs, States]:
        """Unroll both cells; see `BaseRNNCell.unroll`. States are those of the first, then of the second."""
        self.reset()
        forwards, backwards = self._cells
        steps = split(inputs, length, layout, self._prefix, input_prefix)
        states = list(self.begin_state() if begin_state is None else begin_state)
        count = len(forwards.state_info)
        ahead, ahead_states = forwards.unroll(length, steps, states[:count], layout, False)
        back, back_states = backwards.unroll(length, steps[::-1], states[count:], layout, False)
        both = [
            sym.Concat(one, other, dim=1, name=f"{self._prefix}t{step}")
            for step, (one, other) in enumerate(zip(ahead, list(back)[::-1], strict=True))
        ]
        return merge(both, layout, bool(merge_outputs), self._prefix), ahead_states + back_states

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self._cells[1].unpack_weights(self._cells[0].unpack_weights(args))

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self._cells[1].pack_weights(self._cells[0].pack_weights(args))


def _clash(cell: BaseRNNCell, other: BaseRNNCell) -> bool:
    named = bool(cell._prefix) and cell._prefix == other._prefix
    return named and cell._params is not other._params and cell.own_params and other.own_params
