"""RNN: layers of recurrent cells over a whole sequence, in both directions if asked for.

The sequence is unrolled: every step is a few stages, each split like any matrix product. Weights lie in one
vector, as cuDNN packs them: for every layer and direction the matrices for inputs and for states, gate by
gate; then all biases in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..shapes.shape_solver import PartialShape
from ..stages.attributes import Attributes, choice, count, flag, integer, number
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments
from .texts import check_rank

LAYOUT = "time, batch, features"
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class _Cell(NamedTuple):
    """One layer in one direction."""

    number: int
    """Its number among all cells."""

    width: int
    """The width of its input."""

    weights: int
    """The place of its matrices in the vector of parameters."""

    biases: int
    """The place of its biases in the vector of parameters."""


class _Network(NamedTuple):
    """All cells, and the sizes that they share."""

    layers: tuple[tuple[_Cell, ...], ...]
    """The cells of each layer, one for each direction."""

    mode: str
    """The kind of cell, a key of `GATES`."""

    hidden: int
    """The number of hidden units."""

    parameters: int
    """The length of the vector of parameters."""

    @property
    def rows(self) -> int:
        """Rows of a cell's matrices: one for each gate of each hidden unit."""
        return GATES[self.mode] * self.hidden


def _network(attributes: Attributes, inputs: int) -> _Network:
    hidden, mode = attributes.integer("state_size"), attributes.text("mode")
    directions = 2 if attributes.flag("bidirectional") else 1
    count, rows = directions * attributes.integer("num_layers"), GATES[mode] * hidden
    widths = [inputs if index < directions else directions * hidden for index in range(count)]
    sizes = [rows * (width + hidden) for width in widths]
    total = sum(sizes)
    cells = [
        _Cell(index, width, sum(sizes[:index]), total + 2 * rows * index)
        for index, width in enumerate(widths)
    ]
    layers = tuple(tuple(cells[first : first + directions]) for first in range(0, count, directions))
    return _Network(layers, mode, hidden, total + 2 * rows * count)


class _Writer:
    """Writes the stages of the unrolled network. Values are TDL expressions in `n` and another variable."""

    def __init__(self, network: _Network) -> None:
        self.network = network
        self.lines: list[str] = []

    def stage(self, name: str, value: str) -> str:
        self.lines.append(f"    {name} = {value}")
        return name

    def unpack(self, cell: _Cell) -> None:
        """Write stages that hold a cell's matrices and biases."""
        rows, hidden, c = self.network.rows, self.network.hidden, cell.number
        for name, start, columns in (
            ("input", cell.weights, cell.width),
            ("state", cell.weights + rows * cell.width, hidden),
        ):
            self.stage(
                f"{name}_weight{c}",
                f"lambda g={rows}, k={columns}: parameters[{start} + g * {columns} + k]",
            )
        for name, start in (("input", cell.biases), ("state", cell.biases + rows)):
            self.stage(f"{name}_bias{c}", f"lambda g={rows}: parameters[{start} + g]")

    def run(self, cell: _Cell, inputs: Sequence[str], backwards: bool) -> list[tuple[str, str]]:
        """Return the states, and the memories of an LSTM, after every step, in the order of time."""
        self.unpack(cell)
        state, memory = f"state[{cell.number}, n, {{}}]", f"state_cell[{cell.number}, n, j]"
        found: dict[int, tuple[str, str]] = {}
        times = range(len(inputs))
        for time in reversed(times) if backwards else times:
            found[time] = self.step(cell, time, inputs[time], state, memory)
            state, memory = f"{found[time][0]}[n, {{}}]", f"{found[time][1]}[n, j]"
        return [found[time] for time in times]

    def both(self, names: Sequence[str], hidden: int) -> str:
        """Return states after one step as one value: those of a second direction stand behind the first's."""
        if len(names) == 1:
            return f"{names[0]}[n, {{}}]"
        first, second = names
        joined = f"pad({first}[n, f], 0) + pad({second}[n, f - {hidden}], 0)"
        return f"{self.stage(f'{first}_{second}', f'lambda n, f={2 * hidden}: {joined}')}[n, {{}}]"

    def step(self, cell: _Cell, time: int, value: str, state: str, memory: str) -> tuple[str, str]:
        """Return the stages of one step: two products, then the gates as MXNet orders them."""
        c, at, hidden = cell.number, f"{cell.number}_{time}", self.network.hidden
        x = self.stage(
            f"x{at}",
            f"lambda n, g: Sum(lambda k={cell.width}: {value.format('k')} * input_weight{c}[g, k])",
        )
        s = self.stage(f"s{at}", f"lambda n, g: Sum(lambda k: {state.format('k')} * state_weight{c}[g, k])")

        def parts(number: int) -> tuple[str, str]:
            place = f"j + {number * hidden}"
            return (
                f"{x}[n, {place}] + input_bias{c}[{place}]",
                f"{s}[n, {place}] + state_bias{c}[{place}]",
            )

        gates = [" + ".join(parts(number)) for number in range(GATES[self.network.mode])]
        unit = f"lambda n, j={hidden}:"
        match self.network.mode:
            case "lstm":
                kept = f"sigmoid({gates[1]}) * {memory} + sigmoid({gates[0]}) * tanh({gates[2]})"
                new = self.stage(f"c{at}", f"{unit} {kept}")
                return self.stage(f"h{at}", f"{unit} sigmoid({gates[3]}) * tanh({new}[n, j])"), new
            case "gru":
                kept = self.stage(f"z{at}", f"{unit} sigmoid({gates[1]})")
                given, recalled = parts(2)
                fresh = self.stage(f"m{at}", f"{unit} tanh({given} + sigmoid({gates[0]}) * ({recalled}))")
                mixed = f"(1 - {kept}[n, j]) * {fresh}[n, j] + {kept}[n, j] * {state.format('j')}"
                return self.stage(f"h{at}", f"{unit} {mixed}"), ""
            case mode:
                function = "relu" if mode == "rnn_relu" else "tanh"
                return self.stage(f"h{at}", f"{unit} {function}({gates[0]})"), ""


def _selected(variable: str, values: Sequence[str], first: int = 0) -> str:
    """Return the value whose number, counted from `first`, the variable is, by halving."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    low, high = (
        _selected(variable, part, start)
        for part, start in ((values[:half], first), (values[half:], first + half))
    )
    return f"where({variable} < {first + half}, {low}, {high})"


def _rnn(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return a network whose outputs are the last layer after every step and, if asked for, last states."""
    if attributes.number("p") != 0:
        raise OperatorError("RNN: p is not supported; use one RNN for each layer and Dropout between them")
    check_rank("RNN", "data", len(shapes["data"]), LAYOUT)
    steps, batch, inputs = shapes["data"]
    if not steps:
        raise ShapeError(f"RNN: data of shape {shapes['data']} has no time steps")
    network = _network(attributes, inputs)
    if shapes["parameters"] != (network.parameters,):
        raise ShapeError(
            f"RNN: parameters has shape {shapes['parameters']}, but these cells have {network.parameters} "
            "numbers"
        )
    writer, hidden = _Writer(network), network.hidden
    values = [f"data[{time}, n, {{}}]" for time in range(steps)]
    last: list[tuple[str, str]] = []
    for layer in network.layers:
        ran = [writer.run(cell, values, backwards=way == 1) for way, cell in enumerate(layer)]
        last += [states[0 if way == 1 else -1] for way, states in enumerate(ran)]
        values = [writer.both([states[time][0] for states in ran], hidden) for time in range(steps)]
    width = len(network.layers[0]) * hidden
    found = _selected("t", [value.format("f") for value in values])
    outputs = [f"lambda t={steps}, n={batch}, f={width}: {found}"]
    if attributes.flag("state_outputs"):
        for part in range(2 if network.mode == "lstm" else 1):
            chosen = _selected("layer", [f"{names[part]}[n, j]" for names in last])
            outputs.append(f"lambda layer={len(last)}, n={batch}, j={hidden}: {chosen}")
    tensors = ", ".join(_arguments(attributes))
    results = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    body = "\n".join([*writer.lines, f"    return {results}"])
    return variant(f"def RNN({tensors}):\n{body}")


def _arguments(attributes: Attributes) -> tuple[str, ...]:
    states = ("state", "state_cell") if attributes.text("mode") == "lstm" else ("state",)
    return ("data", "parameters", *states)


def _output_count(attributes: Attributes) -> int:
    return len(_arguments(attributes)) - 1 if attributes.flag("state_outputs") else 1


def _hints(attributes: Attributes, shapes: Mapping[str, PartialShape]) -> Mapping[str, PartialShape]:
    data = shapes["data"]
    if data is None:
        return {}
    check_rank("RNN", "data", len(data), LAYOUT)
    cells = attributes.integer("num_layers") * (2 if attributes.flag("bidirectional") else 1)
    states: PartialShape = (cells, data[1], attributes.integer("state_size"))
    hints: dict[str, PartialShape] = dict.fromkeys(_arguments(attributes)[2:], states)
    if data[2] is not None:
        hints["parameters"] = (_network(attributes, data[2]).parameters,)
    return hints


OPERATORS = (
    Operator(
        name="RNN",
        definition=ByShape(_rnn, of=arguments("data", "parameters")),
        argument_names=_arguments,
        output_count=_output_count,
        specs=(
            integer("state_size", least=1),
            count("num_layers"),
            flag("bidirectional", False),
            choice("mode", *GATES),
            number("p", 0.0),
            flag("state_outputs", False),
        ),
        hints=_hints,
        example=Example(
            {"data": (2, 2, 3), "parameters": (56,), "state": (1, 2, 2), "state_cell": (1, 2, 2)},
            {"state_size": 2, "num_layers": 1, "mode": "lstm"},
        ),
    ),
)
