"""A recurrent translation model with attention (Wu et al., 2016), in the sizes of FlexFlow's table 4.

Layers of LSTM read the source, and as many write the target, which begin in the states in which the first
ones end. Every output of the last layer attends to all outputs of the encoder by products. Output and context
together predict the next word.
"""

from __future__ import annotations

from ..dataflow import sym
from ..dataflow.rnn import LSTMCell, SequentialRNNCell
from ..dataflow.symbol import Symbol


def translator(layers: int, hidden: int, steps: int, vocabulary: int) -> Symbol:
    """Predict the next word of the target at every step.

    source, data and softmax_label are [batch, time], the output is [batch * time, vocabulary].
    """
    heard, states = _stack("encoder", layers, hidden).unroll(
        steps, _embedded("source", vocabulary, hidden), merge_outputs=True
    )
    said, _ = _stack("decoder", layers, hidden).unroll(
        steps, _embedded("data", vocabulary, hidden), begin_state=states, merge_outputs=True
    )
    scores = sym.batch_dot(said, heard, transpose_b=True, name="scores")
    context = sym.batch_dot(sym.softmax(scores, axis=-1, name="attention"), heard, name="context")
    both = sym.Concat(said, context, dim=2, name="both")
    rows = sym.Reshape(both, shape=(-1, 2 * hidden), name="rows")
    mixed = sym.FullyConnected(rows, num_hidden=hidden, name="mix")
    words = sym.FullyConnected(
        sym.Activation(mixed, act_type="tanh", name="mixed"), num_hidden=vocabulary, name="pred"
    )
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,), name="label")
    return sym.SoftmaxOutput(words, label, name="softmax")


def _embedded(name: str, vocabulary: int, hidden: int) -> Symbol:
    return sym.Embedding(sym.Variable(name), input_dim=vocabulary, output_dim=hidden, name=f"{name}_embed")


def _stack(name: str, layers: int, hidden: int) -> SequentialRNNCell:
    stack = SequentialRNNCell()
    for layer in range(layers):
        stack.add(LSTMCell(hidden, prefix=f"{name}_l{layer}_"))
    return stack
