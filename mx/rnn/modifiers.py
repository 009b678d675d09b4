"""Cells around cells: dropout, zoneout, residual connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import GraphError
from .. import symbol as sym
from ..ndarray.array import NDArray
from ..symbol import Symbol
from .cells import BaseRNNCell, Outputs, States, merge, split
from .stacks import BidirectionalCell


class DropoutCell(BaseRNNCell):
    """Dropout of the inputs; a cell without states, for stacks."""

    def __init__(self, dropout: float, prefix: str = "dropout_", params: Any = None) -> None:
        super().__init__(prefix, params)
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return []

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        self._counter += 1
        return (self.node("Dropout", "out", inputs, p=self.dropout) if self.dropout > 0 else inputs), []


class ModifierCell(BaseRNNCell):
    """A cell that changes what another one gives; parameters and states are that one's."""

    def __init__(self, base_cell: BaseRNNCell) -> None:
        self.base_cell = base_cell
        super().__init__(base_cell._prefix, base_cell._params)

    def reset(self) -> None:
        super().reset()
        self.base_cell.reset()

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return self.base_cell.state_info

    def begin_state(self, func: Callable[..., Any] = sym.zeros, **settings: Any) -> States:
        return self.base_cell.begin_state(func, **settings)

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Elements of outputs and states that keep, at random, what they were a step before (Krueger et al.)."""

    def __init__(
        self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ) -> None:
        if isinstance(base_cell, BidirectionalCell):
            raise GraphError("ZoneoutCell goes around each cell of a BidirectionalCell, not around both")
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self._before: Symbol | None = None

    def reset(self) -> None:
        super().reset()
        self._before = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        self._counter += 1
        output, after = self.base_cell(inputs, states)
        mixed = self._mixed("output", self.zoneout_outputs, output, self._before)
        kept = [
            self._mixed(f"state{index}", self.zoneout_states, new, old)
            for index, (new, old) in enumerate(zip(after, states, strict=True))
        ]
        self._before = mixed
        return mixed, kept

    def _mixed(self, role: str, share: float, new: Symbol, old: Symbol | None) -> Symbol:
        if share == 0:
            return new
        ones = self.node("ones_like", f"zoneout_{role}_ones", new)
        mask = self.node("Dropout", f"zoneout_{role}_mask", ones, p=share)
        if old is None:
            old = self.node("zeros_like", f"zoneout_{role}_zeros", new)
        return self.node("where", f"zoneout_{role}", mask, new, old)


class ResidualCell(ModifierCell):
    """A cell whose inputs are added to its outputs (He et al.)."""

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        self._counter += 1
        output, after = self.base_cell(inputs, states)
        return self.node("elemwise_add", "plus_residual", output, inputs), after

    def unroll(
        self,
        length: int,
        inputs: Any = None,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        input_prefix: str = "",
    ) -> tuple[Outputs, States]:
        """Unroll the cell and add the inputs; see `BaseRNNCell.unroll`."""
        self.reset()
        steps = split(inputs, length, layout, self._prefix, input_prefix)
        outputs, states = self.base_cell.unroll(length, steps, begin_state, layout, False)
        sums = []
        for output, step in zip(outputs, steps, strict=True):
            self._counter += 1
            sums.append(self.node("elemwise_add", "plus_residual", output, step))
        return merge(sums, layout, bool(merge_outputs), self._prefix), states
