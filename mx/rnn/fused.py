"""A whole recurrent network as one `RNN` operator, and the same network as cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import DataError, GraphError
from ...support.wording import alternatives
from .. import symbol as sym
from ..ndarray.array import NDArray, as_array
from ..ndarray.imperative import Array
from ..symbol import Symbol
from .cells import (
    BaseRNNCell,
    GRUCell,
    LSTMCell,
    Outputs,
    RNNCell,
    RNNParams,
    States,
    axis_of,
    step_variables,
)
from .modifiers import DropoutCell
from .stacks import BidirectionalCell, SequentialRNNCell

GATES = {
    "rnn_relu": RNNCell.gates,
    "rnn_tanh": RNNCell.gates,
    "lstm": LSTMCell.gates,
    "gru": GRUCell.gates,
}


class FusedRNNCell(BaseRNNCell):
    """Layers of cells of one mode, "rnn_relu", "rnn_tanh", "lstm" or "gru"; all weights are one vector."""

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if mode not in GATES:
            raise GraphError(f"mode is {mode!r}, expected one of {', '.join(GATES)}")
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self.hidden = num_hidden
        self.num_layers = num_layers
        self.mode = mode
        self.bidirectional = bidirectional
        self.directions = ("l", "r") if bidirectional else ("l",)
        self.dropout = dropout
        self.get_next_state = get_next_state
        self.forget_bias = forget_bias
        self._parameter = self._params.get("parameters")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        shape = (self.num_layers * len(self.directions), 0, self.hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self.mode == "lstm" else 1)]

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        """Raises GraphError: the whole sequence is needed."""
        raise GraphError("a FusedRNNCell needs the whole sequence; call unroll, or unfuse() it into cells")

    def unroll(
        self,
        length: int,
        inputs: Any = None,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        input_prefix: str = "",
    ) -> tuple[Outputs, States]:
        """Return one RNN operator on the whole sequence; see `BaseRNNCell.unroll`."""
        self.reset()
        axis = axis_of(layout)
        if inputs is None:
            inputs = step_variables(length, input_prefix)
        if not isinstance(inputs, Symbol):
            inputs = sym.Concat(*[sym.expand_dims(step, axis=0) for step in inputs], dim=0)
        elif axis == 1:
            inputs = sym.SwapAxis(inputs, dim1=0, dim2=1)
        states = list(self.begin_state() if begin_state is None else begin_state)
        named = dict(zip(("state", "state_cell"), states, strict=False))
        made = sym.RNN(
            data=inputs,
            parameters=self._parameter,
            **named,
            state_size=self.hidden,
            num_layers=self.num_layers,
            bidirectional=self.bidirectional,
            p=self.dropout,
            state_outputs=self.get_next_state,
            mode=self.mode,
            name=f"{self._prefix}rnn",
        )
        outputs = made[0]
        last = [made[index] for index in range(1, len(made))]
        if merge_outputs is not False:
            return (sym.SwapAxis(outputs, dim1=0, dim2=1) if axis == 1 else outputs), last
        steps = sym.SliceChannel(outputs, num_outputs=length, axis=0, squeeze_axis=True)
        return list(steps), last

    def unfuse(self) -> SequentialRNNCell:
        """Return the same network as a stack of cells, named so that `unpack_weights` fits them."""
        makers: dict[str, Callable[[str], BaseRNNCell]] = {
            "rnn_relu": lambda prefix: RNNCell(self.hidden, "relu", prefix),
            "rnn_tanh": lambda prefix: RNNCell(self.hidden, "tanh", prefix),
            "lstm": lambda prefix: LSTMCell(self.hidden, prefix, forget_bias=self.forget_bias),
            "gru": lambda prefix: GRUCell(self.hidden, prefix),
        }
        make = makers[self.mode]
        stack = SequentialRNNCell()
        for layer in range(self.num_layers):
            cells = [make(f"{self._prefix}{direction}{layer}_") for direction in self.directions]
            if self.bidirectional:
                left, right = cells
                stack.add(BidirectionalCell(left, right, output_prefix=f"{self._prefix}bi_l{layer}_"))
            else:
                stack.add(*cells)
            if self.dropout > 0 and layer != self.num_layers - 1:
                stack.add(DropoutCell(self.dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return arrays of each layer, direction and gate in place of the one vector.

        Raises DataError for a vector that is missing, or of a size that no inputs give.
        """
        found = dict(args)
        vector = _taken(found, f"{self._prefix}parameters")
        width = self._width(vector.size)
        parts = list(self._parts(width))
        if width < 1 or sum(prod(shape) for _, _, shape in parts) != vector.size:
            raise DataError(
                f"'{self._prefix}parameters' has {vector.size} elements, which fit no inputs of a cell with "
                f"{self.num_layers} layers of {self.hidden}; unpack it with the cell that it was made for"
            )
        for name, start, shape in parts:
            found[name] = NDArray(vector[start : start + prod(shape)].reshape(shape).copy())
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the one vector in place of the arrays of each layer, direction and gate.

        Raises DataError if one of them is missing.
        """
        found = dict(args)
        first = _taken(dict(args), f"{self._prefix}l0_i2h{GATES[self.mode][0]}_weight")
        parts = [_taken(found, name).ravel() for name, _, _ in self._parts(first.shape[1])]
        found[f"{self._prefix}parameters"] = NDArray(np.concatenate(parts))
        return found

    def _parts(self, width: int) -> Iterator[tuple[str, int, tuple[int, ...]]]:
        """Name, place and shape of each array in the vector: all weights, then all biases."""
        start = 0
        for kind in ("weight", "bias"):
            for layer in range(self.num_layers):
                inner = width if layer == 0 else self.hidden * len(self.directions)
                for direction in self.directions:
                    for product, columns in (("i2h", inner), ("h2h", self.hidden)):
                        for gate in GATES[self.mode]:
                            shape = (self.hidden, columns) if kind == "weight" else (self.hidden,)
                            yield f"{self._prefix}{direction}{layer}_{product}{gate}_{kind}", start, shape
                            start += prod(shape)

    def _width(self, size: int) -> int:
        """Return how many features the inputs have, from the size of the vector."""
        rows = len(GATES[self.mode]) * self.hidden
        directions = len(self.directions)
        upper = (self.num_layers - 1) * directions * rows * (directions * self.hidden + self.hidden + 2)
        return (size - upper) // (directions * rows) - self.hidden - 2


def _taken(arrays: dict[str, NDArray], name: str) -> Array:
    """Return an array, taken out. Raises DataError if it is missing."""
    if name not in arrays:
        raise DataError(f"there is no array '{name}'{alternatives(name, arrays)}")
    return as_array(arrays.pop(name))
