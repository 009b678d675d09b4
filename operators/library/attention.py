"""Attention with shared heads of keys, over all positions or a sliding window, and rotary positions.

Tensors are `[batch, head, position, feature]`. Scores, their maximum, weights, sums and the result are
stages, each with strategies of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, flag, integer, optional_number
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, of_data
from .texts import check_rank

LAYOUT = "batch, head, position, feature"

WHOLE = """
def attention(query, key, value, *, scale, share):
    product = lambda b, h, i, j: Sum(lambda d: query[b, h, i, d] * key[b, h // share, j, d])
    score = lambda b, h, i, j: {score}
    peak = lambda b, h, i: Max(lambda j: score[b, h, i, j])
    weight = lambda b, h, i, j: exp(score[b, h, i, j] - peak[b, h, i])
    total = lambda b, h, i: Sum(lambda j: weight[b, h, i, j])
    mixed = lambda b, h, i, d: Sum(lambda j: weight[b, h, i, j] * value[b, h // share, j, d])
    return lambda b, h, i, d: mixed[b, h, i, d] / total[b, h, i]
"""
"""Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.2.1. Heads share keys and values as in
Ainslie et al., GQA, EMNLP 2023, section 2.2."""

SCALED = "scale * product[b, h, i, j]"
CAUSAL = "where(j <= i + {ahead}, scale * product[b, h, i, j], -inf)"

WINDOW = """
def attention(query, key, value, *, scale, share, window, behind):
    product = lambda b, h, i, w=window: Sum(
        lambda d: query[b, h, i, d] * pad(key[b, h // share, i + w - behind, d], 0)
    )
    score = lambda b, h, i, w: where(i + w >= behind, scale * product[b, h, i, w], -inf)
    peak = lambda b, h, i: Max(lambda w: score[b, h, i, w])
    weight = lambda b, h, i, w: exp(score[b, h, i, w] - peak[b, h, i])
    total = lambda b, h, i: Sum(lambda w: weight[b, h, i, w])
    mixed = lambda b, h, i, d: Sum(
        lambda w: weight[b, h, i, w] * pad(value[b, h // share, i + w - behind, d], 0)
    )
    return lambda b, h, i, d: mixed[b, h, i, d] / total[b, h, i]
"""
"""Beltagy et al., Longformer, 2020, section 3.1: each query reads the last `window` keys up to its own."""

ROTARY = {
    "half": """
def rotary_embedding(data, cosine, sine, *, half):
    return lambda *b, t, d: data[*b, t, d] * cosine[t, d % half] + sine[t, d % half] * where(
        d < half, -data[*b, t, (d + half) % (2 * half)], data[*b, t, (d + half) % (2 * half)]
    )
""",
    "pairs": """
def rotary_embedding(data, cosine, sine):
    return lambda *b, t, d: data[*b, t, d] * cosine[t, d // 2] + sine[t, d // 2] * where(
        d % 2 == 0, -data[*b, t, d // 2 * 2 + 1], data[*b, t, d // 2 * 2]
    )
""",
}
"""Su et al., RoFormer, 2021, equation 34. A feature is rotated with the one half of the features away, or
with its neighbour."""


def _attention(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    query, key = shapes["query"], shapes["key"]
    for name in ("query", "key"):
        check_rank("attention", name, len(shapes[name]), LAYOUT)
    (_, heads, asked, features), (_, shared, known, _) = query, key
    if not shared or heads % shared:
        raise ShapeError(
            f"attention: {heads} heads of queries cannot share {shared} heads of keys; "
            "the first number must be a multiple of the second"
        )
    window = attributes.integer("window")
    limited = window or attributes.flag("causal")
    if limited and known < asked:
        raise ShapeError(
            f"attention: there are {known} keys for {asked} queries, which are the last positions of "
            "the keys; give as many keys as queries at least"
        )
    scale = attributes["scale"]
    constants = {
        "share": heads // shared,
        "scale": max(features, 1) ** -0.5 if scale is None else attributes.number("scale"),
    }
    ahead = known - asked
    if window:
        return variant(WINDOW, {**constants, "window": window, "behind": window - 1 - ahead})
    return variant(WHOLE.format(score=CAUSAL.format(ahead=ahead) if limited else SCALED), constants)


def _rotary(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    features = shapes["data"][-1] if shapes["data"] else 0
    if len(shapes["data"]) < 2 or features % 2 or not features:
        raise ShapeError(
            f"rotary_embedding: data has shape {shapes['data']}; its last two dimensions must be positions "
            "and an even number of features"
        )
    pairs = attributes.flag("interleaved")
    return variant(ROTARY["pairs" if pairs else "half"], {} if pairs else {"half": features // 2})


OPERATORS = (
    Operator(
        name="attention",
        definition=ByShape(_attention, lambda attributes: ("query", "key")),
        argument_names=arguments("query", "key", "value"),
        specs=(optional_number("scale"), flag("causal", False), integer("window", 0, least=0)),
        example=Example(
            {"query": (2, 4, 3, 2), "key": (2, 2, 5, 2), "value": (2, 2, 5, 2)}, {"causal": True}
        ),
    ),
    Operator(
        name="rotary_embedding",
        definition=ByShape(_rotary, of_data),
        argument_names=arguments("data", "cosine", "sine"),
        specs=(flag("interleaved", False),),
        example=Example({"data": (2, 2, 3, 4), "cosine": (3, 2), "sine": (3, 2)}),
    ),
)
