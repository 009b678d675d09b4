"""Eidetic 3D LSTM, which predicts the frames of videos (Wang et al., 2019).

Cells are convolutional in time and space: each reads a window of frames. Besides its own state, a cell reads
a memory that runs through all layers of a time step and on to the next one, and recalls its past states by
attention. The network is fed true frames at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..dataflow import sym
from ..dataflow.rnn import tied_nodes
from ..dataflow.symbol import Symbol
from ..errors import GraphError

CONVOLUTIONS = ("inputs", "hidden", "memory", "cell_show", "memory_show", "joint")
"""The convolutions of a cell."""

FORGET_BIAS = 1.0
"""Added to the gate that keeps the memory."""

MakeNode = Callable[..., Symbol]
"""Makes a node of a time step, as `tied_nodes` returns it."""


@dataclass(frozen=True, slots=True)
class EideticArchitecture:
    """The sizes that all cells share."""

    layers: int
    """The number of cells on top of each other."""

    hidden: int
    """The channels of each cell."""

    kernel: tuple[int, int, int]
    """The extents of convolutions: frames, rows and columns; the frames are those of a window."""

    frame: tuple[int, int, int]
    """Channels, height and width of a frame."""

    def __post_init__(self) -> None:
        if not self.kernel[1] % 2 or not self.kernel[2] % 2:
            raise GraphError(f"a kernel of {self.kernel[1:]} has no centre; give odd extents, such as 5")


@dataclass(frozen=True, slots=True)
class EideticState:
    """The results of a cell at one time step, which it reads at the next one."""

    hidden: Symbol
    """Its output, `[batch, channel, frame, row, column]`."""

    cell: Symbol
    """Its state, of the same shape."""

    history: Symbol
    """All its states so far, `[batch, channel, position]`."""


def network(architecture: EideticArchitecture, steps: int) -> Symbol:
    """Predict the frame after each window of frames.

    data is [batch, channel, frame, row, column] with `steps` windows; label and output have `steps` frames.
    """
    window = architecture.kernel[0]
    cells = [_Cell(architecture, f"e3d_l{layer}_") for layer in range(architecture.layers)]
    data, frames = sym.Variable("data"), list[Symbol]()
    memory = _zeros(data, architecture)
    history = sym.Reshape(memory, shape=(0, 0, -1), name="begin_history")
    states = [EideticState(memory, memory, history)] * len(cells)
    predict = (sym.Variable("predict_weight"), sym.Variable("predict_bias"))
    for time in range(steps):
        node = tied_nodes("", time)
        body = node("slice_axis", "window", data, axis=2, begin=time, end=time + window)
        for layer, cell in enumerate(cells):
            states[layer], memory = cell.step(time, body, states[layer], memory)
            body = states[layer].hidden
        kernel, channels = (window, 1, 1), architecture.frame[0]
        frames.append(node("Convolution", "predict", body, *predict, num_filter=channels, kernel=kernel))
    output = sym.Concat(*frames, dim=2, name="frames")
    return sym.LinearRegressionOutput(output, sym.Variable("label"), name="loss")


def _zeros(data: Symbol, architecture: EideticArchitecture) -> Symbol:
    """Return the state of all cells before the first step, for as many samples as the data have."""
    window = sym.slice_axis(data, axis=2, begin=0, end=architecture.kernel[0], name="begin_window")
    channel = sym.slice_axis(window, axis=1, begin=0, end=1, name="begin_channel")
    zeros = sym.zeros_like(channel, name="begin_zeros")
    return sym.broadcast_axis(zeros, axis=1, size=architecture.hidden, name="begin")


@dataclass(frozen=True)
class _Cell:
    """One cell, whose parameters its copies at all time steps share."""

    architecture: EideticArchitecture
    prefix: str

    @cached_property
    def _parameters(self) -> Mapping[str, tuple[Symbol, Symbol]]:
        names = {role: f"{self.prefix}{role}" for role in CONVOLUTIONS}
        return {
            role: (sym.Variable(f"{name}_weight"), sym.Variable(f"{name}_bias"))
            for role, name in names.items()
        }

    @cached_property
    def _normal(self) -> tuple[Symbol, Symbol]:
        """The scales and offsets of layer normalisation."""
        return sym.Variable(f"{self.prefix}normal_gamma"), sym.Variable(f"{self.prefix}normal_beta")

    @property
    def _size(self) -> tuple[int, int, int]:
        """The extents of a state without batch and channels."""
        return (self.architecture.kernel[0], *self.architecture.frame[1:])

    def step(
        self, time: int, inputs: Symbol, state: EideticState, memory: Symbol
    ) -> tuple[EideticState, Symbol]:
        """Return the next state and memory; `inputs` are [batch, channel, frame, row, column]."""
        node = tied_nodes(self.prefix, time)
        x, h, m = (
            list(
                node(
                    "SliceChannel",
                    f"{role}_gates",
                    self._convolved(node, role, data, gates),
                    num_outputs=gates,
                )
            )
            for role, data, gates in (
                ("inputs", inputs, 7),
                ("hidden", state.hidden, 4),
                ("memory", memory, 4),
            )
        )
        recalled = self._recalled(node, _gate(node, "recall", "sigmoid", x[0], h[0]), state)
        admit, made = _gate(node, "admit", "sigmoid", x[1], h[1]), _gate(node, "made", "tanh", x[2], h[2])
        cell = node("elemwise_add", "cell", recalled, node("elemwise_mul", "admitted", admit, made))
        memory = _remembered(node, x[4:], m)
        shown = (self._convolved(node, "cell_show", cell), self._convolved(node, "memory_show", memory))
        show = _gate(node, "show", "tanh", x[3], h[3], *shown)
        joined = node("Concat", "joined", cell, memory, dim=1)
        joint = node(
            "Convolution",
            "joint",
            joined,
            *self._parameters["joint"],
            num_filter=self.architecture.hidden,
            kernel=(1, 1, 1),
        )
        told = node("Activation", "told", joint, act_type="tanh")
        hidden = node("elemwise_mul", "out", told, node("Activation", "open", show, act_type="sigmoid"))
        flat = node("Reshape", "flat", cell, shape=(0, 0, -1))
        return EideticState(hidden, cell, node("Concat", "history", state.history, flat, dim=2)), memory

    def _convolved(self, node: MakeNode, role: str, data: Symbol, gates: int = 1) -> Symbol:
        """Convolve a state or the inputs, with zeros around the frames, so that the size stays."""
        frames, rows, columns = self.architecture.kernel
        after = (0, 0, 0, 0, 0, frames - 1, 0, 0, 0, 0)
        padded = node("Pad", f"{role}_padded", data, mode="constant", pad_width=after)
        return node(
            "Convolution",
            role,
            padded,
            *self._parameters[role],
            num_filter=gates * self.architecture.hidden,
            kernel=self.architecture.kernel,
            pad=(0, rows // 2, columns // 2),
        )

    def _recalled(self, node: MakeNode, recall: Symbol, state: EideticState) -> Symbol:
        """Return the last state and what attention reads from all past ones, normalised over channels."""
        queries = node("Reshape", "queries", recall, shape=(0, 0, -1))
        scores = node("batch_dot", "scores", queries, state.history, transpose_a=True)
        weights = node("softmax", "weights", scores)
        read = node("batch_dot", "read", state.history, weights, transpose_b=True)
        read = node("Reshape", "reread", read, shape=(0, 0, *self._size))
        total = node("elemwise_add", "past", state.cell, read)
        return node("LayerNorm", "normal", total, *self._normal, axis=1)


def _gate(node: MakeNode, role: str, kind: str, *terms: Symbol) -> Symbol:
    return node("Activation", role, node("add_n", f"{role}_sum", *terms), act_type=kind)


def _remembered(node: MakeNode, x: Sequence[Symbol], m: Sequence[Symbol]) -> Symbol:
    """Return the next memory; `x` and `m` are the parts of gates that inputs and the memory make."""
    kept = node("_plus_scalar", "keep_more", x[1], scalar=FORGET_BIAS)
    keep, admit = _gate(node, "keep", "sigmoid", kept, m[1]), _gate(node, "take", "sigmoid", x[0], m[0])
    made = _gate(node, "new", "tanh", x[2], m[2])
    old = node("elemwise_mul", "kept", keep, node("Activation", "old", m[3], act_type="tanh"))
    return node("elemwise_add", "memory_next", old, node("elemwise_mul", "taken", admit, made))
