"""Cells: one time step of a recurrent network, called once for every step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...dataflow import rnn
from ...dataflow import symbol as dataflow
from ...dataflow.settings import TIE
from ...errors import GraphError
from .. import symbol as sym
from ..fused_weights import GATES
from ..initializer import Initializer, LSTMBias
from ..ndarray.array import NDArray, as_array
from ..symbol import Symbol

States = list[Symbol]
Outputs = Symbol | list[Symbol]


class RNNParams:
    """Variables by name, each made once: cells that are given the same object share their weights."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **settings: Any) -> Symbol:
        """Return the variable `prefix + name`. The settings apply if it is new."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = sym.Variable(full, **settings)
        return self._params[full]

    def include(self, other: RNNParams) -> None:
        """Count the variables of another object among these."""
        self._params |= other._params


class BaseRNNCell(ABC):
    """A time step, `output, states = cell(inputs, states)`; steps are counted from `reset`."""

    gates: ClassVar[tuple[str, ...]] = ()
    hidden: int = 0

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._prefix = prefix
        self.own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self.reset()

    @abstractmethod
    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]: ...

    @property
    @abstractmethod
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; 0 is the batch."""

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        return [info["shape"] for info in self.state_info]

    @property
    def params(self) -> RNNParams:
        """The cell's variables, to share with another cell."""
        self.own_params = False
        return self._params

    def reset(self) -> None:
        """Count steps and states from the start."""
        self._init_counter = -1
        self._counter = -1

    def begin_state(self, func: Callable[..., Any] = sym.zeros, **settings: Any) -> States:
        """Return states to start from: zeros whose batch is inferred, or what `func(name=, shape=)` makes."""
        states = []
        for info in self.state_info:
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            shape = {} if func is sym.Variable else {"shape": info["shape"]}
            states.append(sym.of(func(name=name, **shape, **settings)))
        return states

    def unroll(
        self,
        length: int,
        inputs: Any = None,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        input_prefix: str = "",
    ) -> tuple[Outputs, States]:
        """`length` steps; returns the outputs and the last states.

        `inputs` is one symbol in `layout`, "NTC" or "TNC", or one [batch, features] for each step; left out,
        steps are variables. Outputs are a list, or one symbol in `layout` with `merge_outputs`.
        """
        self.reset()
        given = step_variables(length, input_prefix) if inputs is None else inputs
        outputs, states = rnn.unroll(_Stepped(self), length, given, begin_state, layout, bool(merge_outputs))
        own = [sym.of(output) for output in outputs] if isinstance(outputs, list) else sym.of(outputs)
        return own, [sym.of(state) for state in states]

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return arrays by gate, `lstm_i2h_f_weight`, in place of those of all gates, `lstm_i2h_weight`."""
        found = dict(args)
        for group in self._groups(found):
            whole = as_array(found.pop(f"{self._prefix}{group[0]}_{group[1]}"))
            for gate, part in zip(self.gates, np.split(whole, len(self.gates)), strict=True):
                found[f"{self._prefix}{group[0]}{gate}_{group[1]}"] = NDArray(part.copy())
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return arrays of all gates in place of those by gate."""
        found = dict(args)
        for product in ("i2h", "h2h"):
            for kind in ("weight", "bias"):
                names = [f"{self._prefix}{product}{gate}_{kind}" for gate in self.gates]
                if all(self.gates) and all(name in found for name in names):
                    parts = [as_array(found.pop(name)) for name in names]
                    found[f"{self._prefix}{product}_{kind}"] = NDArray(np.concatenate(parts))
        return found

    def _groups(self, args: Mapping[str, NDArray]) -> list[tuple[str, str]]:
        if not all(self.gates) or not self.gates:
            return []
        several = [(product, kind) for product in ("i2h", "h2h") for kind in ("weight", "bias")]
        return [pair for pair in several if f"{self._prefix}{pair[0]}_{pair[1]}" in args]

    def _get_activation(
        self, inputs: Symbol, activation: str | Callable[..., Symbol], **settings: Any
    ) -> Symbol:
        """Apply an activation by name, or a function on symbols. Cells that scripts derive call this."""
        if callable(activation):
            return activation(inputs, **settings)
        return sym.of(sym.Activation(inputs, act_type=activation, **settings))

    def node(self, operator: str, role: str, *operands: Symbol, **attributes: Any) -> Symbol:
        """Return an operator of this step, tied to its copies at the others (Tofu, section 5.1)."""
        name = f"{self._prefix}t{self._counter}_{role}"
        attr = {TIE: f"{self._prefix}{role}"}
        return sym.of(getattr(sym, operator)(*operands, name=name, attr=attr, **attributes))


class _Stepped:
    """A cell as `dataflow.rnn` unrolls it."""

    def __init__(self, cell: BaseRNNCell) -> None:
        self.cell = cell
        self.prefix = cell._prefix
        self.state_count = len(cell.state_info)

    def begin_state(self) -> States:
        return self.cell.begin_state()

    def step(
        self, time: int, inputs: dataflow.Symbol, states: Sequence[dataflow.Symbol]
    ) -> tuple[Symbol, States]:
        """Compute one step. The cell counts the steps itself."""
        return self.cell(sym.of(inputs), [sym.of(state) for state in states])


class _Recurrent(BaseRNNCell):
    """A cell of `num_hidden` features with weights for its inputs and for its last output."""

    states: ClassVar[int] = 1

    def __init__(
        self,
        num_hidden: int,
        prefix: str,
        params: RNNParams | None,
        i2h_bias_initializer: Initializer | None = None,
    ) -> None:
        super().__init__(prefix, params)
        self.hidden = num_hidden
        self._weights = (
            self._params.get("i2h_weight"),
            self._params.get("i2h_bias", init=i2h_bias_initializer),
            self._params.get("h2h_weight"),
            self._params.get("h2h_bias"),
        )

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": (0, self.hidden), "__layout__": "NC"} for _ in range(self.states)]


class RNNCell(_Recurrent):
    """The activation of the inputs' and the state's products: Elman's network."""

    gates = GATES["rnn_tanh"]

    def __init__(
        self, num_hidden: int, activation: str = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ) -> None:
        super().__init__(num_hidden, prefix, params)
        self.activation = activation

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        self._counter += 1
        i2h = self.node("FullyConnected", "i2h", inputs, *self._weights[:2], num_hidden=self.hidden)
        h2h = self.node("FullyConnected", "h2h", states[0], *self._weights[2:], num_hidden=self.hidden)
        total = self.node("elemwise_add", "sum", i2h, h2h)
        output = self.node("Activation", "out", total, act_type=self.activation)
        return output, [output]


class _Described(_Recurrent):
    """A cell that `dataflow.rnn` describes."""

    @abstractmethod
    def described(self) -> rnn.Cell:
        """Return the cell with this one's variables."""

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, States]:
        self._counter += 1
        output, after = self.described().step(self._counter, inputs, states)
        return sym.of(output), [sym.of(state) for state in after]


class LSTMCell(_Described):
    """Long short-term memory. Gates: input, forget, candidate, output; states: the output and the memory."""

    gates = GATES["lstm"]
    states = rnn.LSTMCell.state_count

    def __init__(
        self,
        num_hidden: int,
        prefix: str = "lstm_",
        params: RNNParams | None = None,
        forget_bias: float = 1.0,
    ) -> None:
        super().__init__(num_hidden, prefix, params, LSTMBias(forget_bias=forget_bias))

    def described(self) -> rnn.Cell:
        return rnn.LSTMCell(self.hidden, self._prefix, parameters=self._weights)


class GRUCell(_Described):
    """A gated recurrent unit. Gates: reset, update, candidate."""

    gates = GATES["gru"]
    states = rnn.GRUCell.state_count

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    def described(self) -> rnn.Cell:
        return rnn.GRUCell(self.hidden, self._prefix, parameters=self._weights)


def split(inputs: Any, length: int, layout: str, prefix: str, input_prefix: str = "") -> list[Symbol]:
    """Return one symbol [batch, features] for each step. Raises GraphError if there are not `length`."""
    if inputs is None:
        return step_variables(length, input_prefix)
    return [sym.of(step) for step in rnn.steps_of(prefix, length, inputs, axis_of(layout))]


def step_variables(length: int, input_prefix: str) -> list[Symbol]:
    """Return a variable for the inputs of each step."""
    return [sym.Variable(f"{input_prefix}t{step}_data") for step in range(length)]


def merge(outputs: list[Symbol], layout: str, merged: bool, prefix: str) -> Outputs:
    """Return the outputs as a list, or as one symbol."""
    return sym.of(rnn.merged(prefix, outputs, axis_of(layout))) if merged else outputs


def axis_of(layout: str) -> int:
    """Return where time lies."""
    if layout not in ("NTC", "TNC"):
        raise GraphError(f"layout is {layout!r}, expected 'NTC' or 'TNC'")
    return layout.index("T")
