"""Transformers: BERT's encoder, the decoder and the translator of the first paper, and GPT.

Attention is composed of library operators on [batch, head, time, feature], so that heads are a dimension of
their own and splitting over them follows from the descriptions. Queries, keys and values have weights of
their own for the same reason: a joint one would be cut across the three. Positions are learned, and the
embedding also predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt

from ..dataflow import sym
from ..dataflow.symbol import Symbol
from ..errors import GraphError
from ..operators.declare import parse
from ..operators.operator import Operator

UNLABELLED = -1
"""The label of a position whose prediction does not count."""


@dataclass(frozen=True, slots=True)
class TransformerArchitecture:
    """The sizes and choices that all layers share."""

    layers: int
    """The number of layers."""

    width: int
    """The number of features of each position."""

    heads: int
    """The number of attention heads, which divides the width."""

    activation: str = "gelu"
    """The function between the two products of a feed-forward sublayer."""

    normal_first: bool = False
    """Whether layer normalisation comes before each sublayer, as in GPT-2; if not, it comes after it, as in
    BERT."""

    dropout: float = 0.1
    """The probability with which dropout clears an element."""

    inner: int | None = None
    """The number of features between the two products of a feed-forward sublayer; None for four times the
    width."""

    def __post_init__(self) -> None:
        if self.heads < 1 or self.width % self.heads:
            raise GraphError(f"a width of {self.width} cannot be divided among heads={self.heads}")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The variables that embed tokens and their positions."""

    size: int
    """The number of different tokens."""

    steps: int
    """The length of a sequence."""

    tokens: Symbol
    """The embedding of tokens, `[size, width]`."""

    positions: Symbol
    """The embedding of positions, `[steps, width]`."""


def encoder(architecture: TransformerArchitecture, vocabulary: int, steps: int) -> Symbol:
    """BERT without segments: predicts the tokens at labelled positions; a label of -1 leaves one out.

    data and softmax_label are [batch, time], the output is [batch * time, vocabulary].
    """
    words = _vocabulary(vocabulary, steps, architecture.width)
    body = _embedded(sym.Variable("data"), words, architecture, "")
    body = _dropped(_normal(body, "embed_norm"), architecture, "embed")
    for layer in range(architecture.layers):
        body = _layer(body, architecture, f"layer{layer}")
    return _predicted(body, words, architecture)


def decoder(architecture: TransformerArchitecture, vocabulary: int, steps: int) -> Symbol:
    """Predicts the next token from those before it and from `memory` [batch, source time, width].

    data and softmax_label are [batch, time], the output is [batch * time, vocabulary].
    """
    words = _vocabulary(vocabulary, steps, architecture.width)
    return _decoded(sym.Variable("data"), sym.Variable("memory"), words, architecture)


def translator(architecture: TransformerArchitecture, vocabulary: int, steps: int) -> Symbol:
    """Encoder and decoder, with as many layers each, over one vocabulary.

    source, data (the target so far) and softmax_label are [batch, time]; the output is
    [batch * time, vocabulary].
    """
    words = _vocabulary(vocabulary, steps, architecture.width)
    memory = _embedded(sym.Variable("source"), words, architecture, "source_")
    memory = _dropped(memory, architecture, "source_embed")
    for layer in range(architecture.layers):
        memory = _layer(memory, architecture, f"encoder{layer}")
    return _decoded(sym.Variable("data"), memory, words, architecture)


def gpt(architecture: TransformerArchitecture, vocabulary: int, steps: int) -> Symbol:
    """GPT-2: predicts the next token from those before it.

    data and softmax_label are [batch, time], the output is [batch * time, vocabulary].
    """
    words = _vocabulary(vocabulary, steps, architecture.width)
    body = _dropped(_embedded(sym.Variable("data"), words, architecture, ""), architecture, "embed")
    for layer in range(architecture.layers):
        body = _layer(body, architecture, f"layer{layer}", causal=True)
    return _predicted(_normal(body, "final_norm"), words, architecture)


def _decoded(
    data: Symbol, memory: Symbol, words: Vocabulary, architecture: TransformerArchitecture
) -> Symbol:
    body = _dropped(_embedded(data, words, architecture, ""), architecture, "embed")
    for layer in range(architecture.layers):
        body = _layer(body, architecture, f"decoder{layer}", causal=True, memory=memory)
    return _predicted(body, words, architecture)


def _vocabulary(size: int, steps: int, width: int) -> Vocabulary:
    tokens = sym.Variable("embed_weight", shape=(size, width))
    return Vocabulary(size, steps, tokens, sym.Variable("position_weight", shape=(steps, width)))


def _embedded(data: Symbol, words: Vocabulary, architecture: TransformerArchitecture, prefix: str) -> Symbol:
    """Return the sum of the vectors of tokens [batch, time] and of their positions: [batch, time, width]."""
    tokens = sym.Embedding(
        data, words.tokens, input_dim=words.size, output_dim=architecture.width, name=f"{prefix}embed"
    )
    positions = sym.expand_dims(words.positions, axis=0, name=f"{prefix}position")
    return sym.broadcast_add(tokens, positions, name=f"{prefix}embed_sum")


def _predicted(body: Symbol, words: Vocabulary, architecture: TransformerArchitecture) -> Symbol:
    """Return scores of all tokens at every position, by the embedding itself."""
    rows = sym.Reshape(body, shape=(-1, architecture.width), name="rows")
    scores = sym.FullyConnected(rows, words.tokens, num_hidden=words.size, no_bias=True, name="pred")
    label = sym.Reshape(sym.Variable("softmax_label"), shape=(-1,), name="label")
    return sym.SoftmaxOutput(scores, label, use_ignore=True, ignore_label=UNLABELLED, name="softmax")


def _layer(
    data: Symbol,
    architecture: TransformerArchitecture,
    name: str,
    *,
    causal: bool = False,
    memory: Symbol | None = None,
) -> Symbol:
    """Self-attention, attention to `memory` if there is one, and two products applied to every position."""

    def attend(inputs: Symbol) -> Symbol:
        return attention(inputs, inputs, architecture, f"{name}_attention", causal=causal)

    def remember(inputs: Symbol) -> Symbol:
        assert memory is not None
        return attention(inputs, memory, architecture, f"{name}_memory")

    def feed_forward(inputs: Symbol) -> Symbol:
        hidden = _product(inputs, architecture.inner or 4 * architecture.width, f"{name}_hidden")
        if architecture.activation == "gelu":
            hidden = sym.gelu(hidden, name=f"{name}_gelu")
        else:
            hidden = sym.Activation(hidden, act_type=architecture.activation, name=f"{name}_activation")
        return _product(hidden, architecture.width, f"{name}_output")

    body = _residual(data, attend, architecture, f"{name}_attention")
    if memory is not None:
        body = _residual(body, remember, architecture, f"{name}_memory")
    return _residual(body, feed_forward, architecture, f"{name}_feed_forward")


def attention(
    data: Symbol, memory: Symbol, architecture: TransformerArchitecture, name: str, *, causal: bool = False
) -> Symbol:
    """Let every position of data [batch, time, width] read from those of memory that match it.

    Several heads do so, each with its share of the features.
    """
    heads = architecture.heads

    def by_head(inputs: Symbol, role: str) -> Symbol:
        """[batch, time, width] to [batch, head, time, feature]."""
        body = _product(inputs, architecture.width, f"{name}_{role}")
        body = sym.Reshape(body, shape=(0, 0, -4, heads, -1), name=f"{name}_{role}_heads")
        return sym.transpose(body, axes=(0, 2, 1, 3), name=f"{name}_{role}_first")

    scale = 1 / sqrt(architecture.width // heads)
    queries = sym._mul_scalar(by_head(data, "query"), scalar=scale, name=f"{name}_scaled")
    scores = sym.batch_dot(queries, by_head(memory, "key"), transpose_b=True, name=f"{name}_scores")
    if causal:
        scores = sym.apply(_causal_mask(), scores, name=f"{name}_mask")
    weights = _dropped(sym.softmax(scores, name=f"{name}_softmax"), architecture, f"{name}_softmax")
    read = sym.batch_dot(weights, by_head(memory, "value"), name=f"{name}_read")
    read = sym.transpose(read, axes=(0, 2, 1, 3), name=f"{name}_read_first")
    return _product(
        sym.Reshape(read, shape=(0, 0, -3), name=f"{name}_joined"), architecture.width, f"{name}_joint"
    )


@cache
def _causal_mask() -> Operator:
    """Return the operator by which each position attends to positions up to its own."""
    return parse(
        "def causal_mask(scores):\n    return lambda n, h, i, j: where(j <= i, scores[n, h, i, j], -inf)\n"
    )


def _residual(
    data: Symbol, sublayer: Callable[[Symbol], Symbol], architecture: TransformerArchitecture, name: str
) -> Symbol:
    """Return what a sublayer adds to its input, normalised before or after."""
    inputs = _normal(data, f"{name}_norm") if architecture.normal_first else data
    added = _dropped(sublayer(inputs), architecture, name)
    body = sym.elemwise_add(data, added, name=f"{name}_plus")
    return body if architecture.normal_first else _normal(body, f"{name}_norm")


def _product(data: Symbol, width: int, name: str) -> Symbol:
    """Return a fully connected layer at every position."""
    return sym.FullyConnected(data, num_hidden=width, flatten=False, name=name)


def _normal(data: Symbol, name: str) -> Symbol:
    return sym.LayerNorm(data, axis=-1, name=name)


def _dropped(data: Symbol, architecture: TransformerArchitecture, name: str) -> Symbol:
    return sym.Dropout(data, p=architecture.dropout, name=f"{name}_drop") if architecture.dropout else data
