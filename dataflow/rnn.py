"""Recurrent cells and their unrolling over time, named and ordered as in MXNet's `mx.rnn`.

The copies of a cell at different time steps share their parameters and are tied: the partitioner gives
corresponding operations one strategy (Tofu, section 5.1, coarsening of unrolled time steps).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol, TypeVar

from ..errors import GraphError
from ..support.checked_argument import require, require_count
from .settings import TIE
from .symbol import Symbol
from .symbol.compose import apply, variable

AnySymbol = TypeVar("AnySymbol", bound=Symbol)
Unroll = Callable[
    [int, AnySymbol | Sequence[AnySymbol], Sequence[AnySymbol], str, bool],
    tuple[list[AnySymbol] | AnySymbol, list[AnySymbol]],
]
"""Unrolls a layer: length, inputs, states, layout and whether to merge outputs; gives outputs and states."""


class Cell(Protocol):
    """One time step: `step(time, inputs, states)` gives the output and the next states."""

    @property
    def prefix(self) -> str:
        """Return the prefix of the names of its parameters and nodes."""
        ...

    @property
    def state_count(self) -> int:
        """Return the number of its states."""
        ...

    def begin_state(self) -> Sequence[Symbol]:
        """Return the states before the first step."""
        ...

    def step(self, time: int, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, Sequence[Symbol]]:
        """Compute the output and next states of one step on inputs [batch, features]."""
        ...


def _parameters(prefix: str, i2h_bias: str | None = None) -> tuple[Symbol, ...]:
    """Weight and bias of the products with inputs and with the last output."""
    return (
        variable(f"{prefix}i2h_weight"),
        variable(f"{prefix}i2h_bias", init=i2h_bias),
        variable(f"{prefix}h2h_weight"),
        variable(f"{prefix}h2h_bias"),
    )


def tied_nodes(prefix: str, time: int) -> Callable[..., Symbol]:
    """Return `node(operator, role, *operands, **attributes)`, which makes a node of a time step.

    It is named `{prefix}t{time}_{role}` and tied to its copies at the other steps.
    """

    def node(operator: str, role: str, *operands: Symbol, **attributes: object) -> Symbol:
        return apply(
            operator,
            *operands,
            name=f"{prefix}t{time}_{role}",
            attr={TIE: f"{prefix}{role}"},
            **attributes,
        )

    return node


@dataclass(frozen=True, slots=True)
class _Recurrent(ABC):
    """A recurrent cell. It makes its `parameters` unless they are given."""

    num_hidden: int
    prefix: str
    state_count: ClassVar[int]
    parameters: tuple[Symbol, ...] = field(default=(), repr=False, kw_only=True)

    def begin_state(self) -> list[Symbol]:
        """Zeros; the batch is inferred."""
        return [
            apply("_zeros", shape=(0, self.num_hidden), name=f"{self.prefix}begin_state_{index}")
            for index in range(self.state_count)
        ]

    @abstractmethod
    def step(self, time: int, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Return one time step on inputs [batch, features]; `time` appears in the nodes' names."""

    def unroll(
        self,
        length: int,
        inputs: Symbol | Sequence[Symbol],
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool = False,
    ) -> tuple[list[Symbol] | Symbol, list[Symbol]]:
        """See `unroll`."""
        return unroll(self, length, inputs, begin_state, layout, merge_outputs)


@dataclass(frozen=True, slots=True)
class LSTMCell(_Recurrent):
    """Long short-term memory. Gates come in the order input, forget, candidate, output.

    Parameters are `{prefix}i2h_weight` [4 * hidden, features], `{prefix}h2h_weight` [4 * hidden, hidden] and
    their biases [4 * hidden], made here unless given as `parameters`; the states are the output and the
    memory, both [batch, hidden].
    """

    prefix: str = "lstm_"
    forget_bias: float = 1.0
    state_count: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.parameters:
            bias = json.dumps(["lstmbias", {"forget_bias": self.forget_bias}])
            object.__setattr__(self, "parameters", _parameters(self.prefix, bias))

    def step(self, time: int, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Return one time step on inputs [batch, features]; `time` appears in the nodes' names."""
        node = tied_nodes(self.prefix, time)
        output, memory = states
        i2h_weight, i2h_bias, h2h_weight, h2h_bias = self.parameters
        width = 4 * self.num_hidden
        i2h = node("FullyConnected", "i2h", inputs, i2h_weight, i2h_bias, num_hidden=width)
        h2h = node("FullyConnected", "h2h", output, h2h_weight, h2h_bias, num_hidden=width)
        gates = node("SliceChannel", "slice", node("elemwise_add", "gates", i2h, h2h), num_outputs=4)
        admit = node("Activation", "i", gates[0], act_type="sigmoid")
        keep = node("Activation", "f", gates[1], act_type="sigmoid")
        candidate = node("Activation", "c", gates[2], act_type="tanh")
        show = node("Activation", "o", gates[3], act_type="sigmoid")
        kept = node("elemwise_mul", "kept", keep, memory)
        admitted = node("elemwise_mul", "admitted", admit, candidate)
        memory = node("elemwise_add", "state", kept, admitted)
        output = node("elemwise_mul", "out", show, node("Activation", "tanh", memory, act_type="tanh"))
        return output, [output, memory]


@dataclass(frozen=True, slots=True)
class GRUCell(_Recurrent):
    """A gated recurrent unit. Gates come in the order reset, update, candidate.

    Parameters are `{prefix}i2h_weight` [3 * hidden, features], `{prefix}h2h_weight` [3 * hidden, hidden] and
    their biases [3 * hidden]; the state is the output, [batch, hidden]. The reset gate scales what the
    candidate takes from the last output after its product with the weight.
    """

    prefix: str = "gru_"
    state_count: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.parameters:
            object.__setattr__(self, "parameters", _parameters(self.prefix))

    def step(self, time: int, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Return one time step on inputs [batch, features]; `time` appears in the nodes' names."""
        node = tied_nodes(self.prefix, time)
        (output,) = states
        i2h_weight, i2h_bias, h2h_weight, h2h_bias = self.parameters
        width = 3 * self.num_hidden
        i2h = node("FullyConnected", "i2h", inputs, i2h_weight, i2h_bias, num_hidden=width)
        h2h = node("FullyConnected", "h2h", output, h2h_weight, h2h_bias, num_hidden=width)
        new = node("SliceChannel", "i2h_slice", i2h, num_outputs=3)
        old = node("SliceChannel", "h2h_slice", h2h, num_outputs=3)
        reset = node("Activation", "r", node("elemwise_add", "r_sum", new[0], old[0]), act_type="sigmoid")
        update = node("Activation", "z", node("elemwise_add", "z_sum", new[1], old[1]), act_type="sigmoid")
        recalled = node("elemwise_mul", "recalled", reset, old[2])
        candidate = node("Activation", "c", node("elemwise_add", "c_sum", new[2], recalled), act_type="tanh")
        change = node("elemwise_sub", "change", output, candidate)
        kept = node("elemwise_mul", "kept", update, change)
        output = node("elemwise_add", "out", candidate, kept)
        return output, [output]


@dataclass(slots=True)
class SequentialRNNCell:
    """Cells stacked: the outputs of one are the inputs of the next."""

    cells: list[Cell] = field(default_factory=list)

    def add(self, cell: Cell) -> None:
        """Put a cell on top. Raises GraphError if another one has its prefix."""
        if any(other.prefix == cell.prefix for other in self.cells):
            raise GraphError(
                f"two cells of the stack have the prefix {cell.prefix!r}; give each its own prefix="
            )
        self.cells.append(cell)

    @property
    def state_count(self) -> int:
        """Return the number of states of all cells together."""
        return sum(cell.state_count for cell in self.cells)

    def begin_state(self) -> list[Symbol]:
        """Return the states of all cells, in order."""
        return [state for cell in self.cells for state in cell.begin_state()]

    def unroll(
        self,
        length: int,
        inputs: Symbol | Sequence[Symbol],
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool = False,
    ) -> tuple[list[Symbol] | Symbol, list[Symbol]]:
        """Unroll layer after layer; see `unroll`. States are those of all cells, in order."""
        layers = [(cell.state_count, partial(unroll, cell)) for cell in self.cells]
        return unroll_layers(layers, length, inputs, _begun(self, begin_state), layout, merge_outputs)


def unroll(
    cell: Cell,
    length: int,
    inputs: Symbol | Sequence[Symbol],
    begin_state: Sequence[Symbol] | None = None,
    layout: str = "NTC",
    merge_outputs: bool = False,
) -> tuple[list[Symbol] | Symbol, list[Symbol]]:
    """`length` copies of a cell, each fed the states of the one before; returns outputs and last states.

    `inputs` is one symbol in `layout`, "NTC" or "TNC", or one symbol [batch, features] per time step.
    Outputs are a list of such symbols, or one symbol in `layout` with `merge_outputs`. Raises GraphError
    if the inputs are not `length` steps or `begin_state` does not have as many states as the cell.
    """
    if layout not in ("NTC", "TNC"):
        raise GraphError(f"layout is {layout!r}, expected 'NTC' or 'TNC'")
    axis = layout.index("T")
    steps = steps_of(cell.prefix, length, inputs, axis)
    states: Sequence[Symbol] = _begun(cell, begin_state)
    outputs = []
    for time, step in enumerate(steps):
        output, states = cell.step(time, step, states)
        outputs.append(output)
    return (merged(cell.prefix, outputs, axis) if merge_outputs else outputs), list(states)


def unroll_layers(
    layers: Sequence[tuple[int, Unroll[AnySymbol]]],
    length: int,
    inputs: AnySymbol | Sequence[AnySymbol],
    states: Sequence[AnySymbol],
    layout: str,
    merge_outputs: bool,
) -> tuple[list[AnySymbol] | AnySymbol, list[AnySymbol]]:
    """Unroll layer after layer, each on the outputs of the one before; returns as `unroll`.

    A layer is its number of states and what unrolls it. Raises GraphError if there is none.
    """
    if not layers:
        raise GraphError("the stack has no cells; add one before unrolling")
    outputs: AnySymbol | Sequence[AnySymbol] = inputs
    result: list[AnySymbol] | AnySymbol = []
    last: list[AnySymbol] = []
    for position, (count, unrolled) in enumerate(layers):
        own, states = states[:count], states[count:]
        merge = merge_outputs and position == len(layers) - 1
        result, final = unrolled(length, outputs, own, layout, merge)
        outputs = result
        last += final
    return result, last


def _begun(cell: Cell | SequentialRNNCell, given: Sequence[Symbol] | None) -> list[Symbol]:
    if given is None:
        return list(cell.begin_state())
    require(isinstance(given, Sequence), given, "begin_state", "a list of symbols", GraphError)
    if len(given) != cell.state_count:
        raise GraphError(f"begin_state has {len(given)} states, but the cell has {cell.state_count}")
    return list(given)


def steps_of(prefix: str, length: int, inputs: Symbol | Sequence[Symbol], axis: int) -> list[Symbol]:
    """Return one symbol [batch, features] per step; `axis` is the time axis of one symbol of all steps."""
    require_count(length, "length", GraphError, 1)
    if isinstance(inputs, Symbol) and len(inputs) == 1:
        if length == 1:
            name = f"{prefix}inputs"
            return [apply("Reshape", inputs, shape=(0, -3) if axis else (-3, 0), name=name)]
        sliced = apply(
            "SliceChannel", inputs, num_outputs=length, axis=axis, squeeze_axis=True, name=f"{prefix}inputs"
        )
        return list(sliced)
    require(isinstance(inputs, Iterable), inputs, "inputs", "a symbol, or one for each step", GraphError)
    steps = list(inputs)
    if len(steps) != length:
        raise GraphError(f"{len(steps)} inputs were given to unroll {length} time steps; give one for each")
    return steps


def merged(prefix: str, outputs: Sequence[Symbol], axis: int) -> Symbol:
    """Return one symbol of the outputs of all steps, with time along `axis`."""
    stacked = [
        apply(
            "expand_dims",
            output,
            axis=axis,
            name=f"{prefix}t{time}_outputs",
            attr={TIE: f"{prefix}outputs"},
        )
        for time, output in enumerate(outputs)
    ]
    return apply("Concat", *stacked, dim=axis, name=f"{prefix}outputs")
