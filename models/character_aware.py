"""A language model that reads the letters of words and predicts words (Kim et al., 2016).

Convolutions of several widths run over the letters of a word. The largest response of each filter makes the
word's vector, which two highway layers transform. Layers of LSTM read the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dataflow import sym
from ..dataflow.symbol import Symbol
from ..errors import GraphError
from . import recurrent

LETTER_FEATURES = 15
HIGHWAYS = 2

FILTERS = (50, 100, 150, 200, 200, 200, 200)
"""The number of filters of each width, from one letter on."""


@dataclass(frozen=True, slots=True)
class CharacterAware:
    """The sizes of the network."""

    layers: int
    """The number of LSTM layers."""

    hidden: int
    """The number of features of each LSTM layer."""

    steps: int
    """The number of words of a sequence."""

    letters: int
    """The number of letters of a word; shorter words are filled."""

    alphabet: int
    """The number of different letters."""

    filters: tuple[int, ...]
    """The number of filters of each width, from one letter on."""

    def __post_init__(self) -> None:
        if len(self.filters) > self.letters:
            raise GraphError(
                f"filters of up to {len(self.filters)} letters do not fit words of {self.letters} letters; "
                "give fewer filters or longer words"
            )


def network(architecture: CharacterAware, vocabulary: int) -> Symbol:
    """Predict the next word at every step.

    data is [batch, time, letter], softmax_label [batch, time], the output [batch * time, vocabulary].
    """
    vector = _word_vectors(architecture)
    for number in range(HIGHWAYS):
        vector = _highway(vector, sum(architecture.filters), f"highway{number}")
    width, steps = sum(architecture.filters), architecture.steps
    words = sym.Reshape(vector, shape=(-1, steps, width), name="words")
    layers, hidden = architecture.layers, architecture.hidden
    return recurrent.predicted(recurrent.lstm, layers, hidden, steps, words, vocabulary)


def _word_vectors(architecture: CharacterAware) -> Symbol:
    """Return a vector for each word, [batch * time, filters]."""
    letters = sym.Embedding(
        sym.Variable("data"), input_dim=architecture.alphabet, output_dim=LETTER_FEATURES, name="embed"
    )
    letters = sym.Reshape(letters, shape=(-3, 0, 0), name="letters")
    letters = sym.transpose(letters, axes=(0, 2, 1), name="features_first")
    found = []
    for width, count in enumerate(architecture.filters, 1):
        name = f"letters{width}"
        body = sym.Convolution(letters, num_filter=count, kernel=(width,), name=f"{name}_conv")
        body = sym.Activation(body, act_type="tanh", name=f"{name}_tanh")
        body = sym.Pooling(body, kernel=(1,), global_pool=True, pool_type="max", name=f"{name}_pool")
        found.append(sym.Flatten(body, name=f"{name}_flat"))
    return sym.Concat(*found, dim=1, name="joined")


def _highway(data: Symbol, width: int, name: str) -> Symbol:
    """Return `gate * relu(product) + (1 - gate) * data`, as data + gate * (relu(product) - data)."""
    gate = sym.FullyConnected(data, num_hidden=width, name=f"{name}_gate")
    gate = sym.Activation(gate, act_type="sigmoid", name=f"{name}_sigmoid")
    made = sym.FullyConnected(data, num_hidden=width, name=f"{name}_product")
    made = sym.Activation(made, act_type="relu", name=f"{name}_relu")
    change = sym.elemwise_mul(gate, sym.elemwise_sub(made, data, name=f"{name}_minus"), name=f"{name}_change")
    return sym.elemwise_add(data, change, name=f"{name}_plus")
