"""Recurrent networks: Tofu's large RNN benchmark and character language models."""

from __future__ import annotations

from collections.abc import Callable

from ..dataflow import sym
from ..dataflow.rnn import Cell, GRUCell, LSTMCell, SequentialRNNCell
from ..dataflow.symbol import Symbol

MakeCell = Callable[[int, int], Cell]
"""The cell of a layer, from the layer's number and its width."""


def lstm(layer: int, hidden: int) -> Cell:
    return LSTMCell(hidden, prefix=f"lstm_l{layer}_")


def gru(layer: int, hidden: int) -> Cell:
    return GRUCell(hidden, prefix=f"gru_l{layer}_")


def rnn(layers: int, hidden: int, steps: int, classes: int) -> Symbol:
    """LSTM layers over data [batch, time, feature]; the last output is classified (Tofu, section 7.1)."""
    outputs, _ = _stack(lstm, layers, hidden).unroll(steps, sym.Variable("data"))
    last = sym.FullyConnected(outputs[-1], num_hidden=classes, name="pred")
    return sym.SoftmaxOutput(last, name="softmax")


def language_model(
    cell: MakeCell, layers: int, hidden: int, steps: int, embedding: int, vocabulary: int
) -> Symbol:
    """Predicts the next character at every step; data and softmax_label are [batch, time], the output is
    [batch * time, vocabulary].
    """
    embedded = sym.Embedding(sym.Variable("data"), input_dim=vocabulary, output_dim=embedding, name="embed")
    return predicted(cell, layers, hidden, steps, embedded, vocabulary)


def predicted(
    cell: MakeCell, layers: int, hidden: int, steps: int, vectors: Symbol, vocabulary: int
) -> Symbol:
    """Predict the next of `vocabulary` tokens at every step from vectors [batch, time, feature]."""
    outputs, _ = _stack(cell, layers, hidden).unroll(steps, vectors, merge_outputs=True)
    assert isinstance(outputs, Symbol)
    rows = sym.Reshape(outputs, shape=(-1, hidden), name="rows")
    scores = sym.FullyConnected(rows, num_hidden=vocabulary, name="pred")
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,), name="label")
    return sym.SoftmaxOutput(scores, label, name="softmax")


def _stack(cell: MakeCell, layers: int, hidden: int) -> SequentialRNNCell:
    stack = SequentialRNNCell()
    for layer in range(layers):
        stack.add(cell(layer, hidden))
    return stack
