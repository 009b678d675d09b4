"""A whole recurrent network as one `RNN` operator, and the same network as cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import GraphError
from .. import symbol as sym
from ..fused_weights import GATES, FusedWeights
from ..initializer import FusedRNN
from ..ndarray.array import NDArray
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
        self._weights = FusedWeights(mode, num_hidden, num_layers, self.directions, self._prefix)
        start = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self._params.get("parameters", init=start)

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
        return self._weights.unpack(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the one vector in place of the arrays of each layer, direction and gate.

        Raises DataError if one of them is missing.
        """
        return self._weights.pack(args)
