"""ATen operators that are sums of products, and attention."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt

from .call import (
    AtenCall,
    Operand,
    TensorValue,
    at,
    bound,
    elementwise,
    literal,
    variables,
)
from .converter import Converter


def linear(call: AtenCall) -> TensorValue:
    """Apply the library's product if there are rows."""
    data, weight = call.tensor("input"), call.tensor("weight")
    bias = [call.tensor("bias")] if call.has("bias") else []
    if data.rank > 1 and weight.rank == 2:
        hidden = weight.shape[0]
        return call.library(
            "FullyConnected", data, weight, *bias, num_hidden=hidden, no_bias=not bias, flatten=False
        )
    rows, columns = variables(data.rank)[:-1], ["h"] if weight.rank == 2 else []
    product = f"Sum(lambda k: {at('data', [*rows, 'k'])} * {at('weight', [*columns, 'k'])})"
    binders = bound([*rows, *columns])
    if not bias:
        return call.described({"data": data, "weight": weight}, f"lambda {binders}: {product}")
    tensors = {"data": data, "weight": weight, "bias": bias[0]}
    result = f"lambda {binders}: {at('product', [*rows, *columns])} + {at('bias', columns)}"
    return call.described(tensors, result, stages=[f"product = lambda {binders}: {product}"])


def multiplied(
    call: AtenCall,
    left: TensorValue,
    right: TensorValue,
    step: str = "",
    shape: tuple[int, ...] | None = None,
) -> TensorValue:
    """Return the product of vectors, matrices or batches of matrices, which are broadcast."""
    rows = ["m"] if left.rank > 1 else []
    columns = ["n"] if right.rank > 1 else []
    batches = left.shape[:-2], right.shape[:-2]
    outer = max(map(len, batches))
    names = variables(outer)
    common = tuple(
        max(batch[axis - outer + len(batch)] if axis >= outer - len(batch) else 1 for batch in batches)
        for axis in range(outer)
    )

    def batch(shape: tuple[int, ...]) -> list[str]:
        offset = outer - len(shape)
        return [
            "0" if extent == 1 and common[offset + axis] != 1 else names[offset + axis]
            for axis, extent in enumerate(shape)
        ]

    first = at("left", [*batch(batches[0]), *rows, "k"])
    second = at("right", [*batch(batches[1]), "k", *columns])
    binders = bound([*names, *rows, *columns])
    found = (*common, *(left.shape[-2:-1] if rows else ()), *(right.shape[-1:] if columns else ()))
    return call.described(
        {"left": left, "right": right},
        f"lambda {binders}: Sum(lambda k: {first} * {second})",
        shape=found if shape is None else shape,
        kind="float",
        step=step,
    )


def matmul(call: AtenCall) -> TensorValue:
    left = call.tensor("self")
    keys = ("other", "mat2", "vec", "tensor")
    right = call.tensor(next(key for key in keys if call.has(key)))
    return multiplied(call, left, right)


def added_product(call: AtenCall) -> TensorValue:
    """Return a product, scaled, plus a tensor that is broadcast, scaled too. `addbmm` adds up a batch."""
    keys = next(
        pair for pair in (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec")) if call.has(pair[0])
    )
    left, right = call.tensor(keys[0]), call.tensor(keys[1])
    if call.target == "aten.addbmm":
        text = "lambda m, n: Sum(lambda b, k: left[b, m, k] * right[b, k, n])"
        product = call.described({"left": left, "right": right}, text, step="product")
    else:
        product = multiplied(call, left, right, "product")
    beta, alpha = call.get("beta", 1), call.get("alpha", 1)
    parts = [
        f"{literal(beta)} * {{1}}" if beta != 1 else "{1}",
        f"{literal(alpha)} * {{0}}" if alpha != 1 else "{0}",
    ]
    if beta == 0:
        return elementwise(call, parts[1], product)
    return elementwise(call, " + ".join(reversed(parts)), product, call.operand("self"))


def bilinear(call: AtenCall) -> TensorValue:
    """Sum over pairs of features of two inputs, with a weight for every pair."""
    tensors = {"left": call.tensor("input1"), "right": call.tensor("input2"), "weight": call.tensor("weight")}
    names = variables(tensors["left"].rank - 1)
    left, right = at("left", [*names, "j"]), at("right", [*names, "k"])
    binders = bound([*names, "h"])
    product = f"lambda {binders}: Sum(lambda j, k: {left} * weight[h, j, k] * {right})"
    if not call.has("bias"):
        return call.described(tensors, product)
    tensors["bias"] = call.tensor("bias")
    result = f"lambda {binders}: {at('product', [*names, 'h'])} + bias[h]"
    return call.described(tensors, result, stages=[f"product = {product}"])


def outer(call: AtenCall) -> TensorValue:
    tensors = {"left": call.tensor("self"), "right": call.tensor("vec2")}
    return call.described(tensors, "lambda i, j: left[i] * right[j]")


def attention(call: AtenCall) -> TensorValue:
    """Scores, a softmax over them and a sum of values, each an operation that is split by itself."""
    query, key, value = (call.tensor(name) for name in ("query", "key", "value"))
    probability = call.get("dropout_p", 0.0)
    batch = variables(len(call.result.shape) - 2)
    factor = call.get("scale", 1 / sqrt(query.shape[-1]))
    common = (*call.result.shape[:-1], key.shape[-2])
    queries, keys, values = (_grouped(call, batch, each) for each in (query, key, value))
    scores = call.described(
        {"query": query, "key": key},
        f"lambda {bound([*batch, 'm', 'n'])}: {literal(factor)} * "
        f"Sum(lambda k: {at('query', [*queries, 'm', 'k'])} * {at('key', [*keys, 'n', 'k'])})",
        shape=common,
        step="scores",
    )
    scores, rows = _masked(call, scores)
    weights = call.library("softmax", scores, axis=len(common) - 1, shape=common, step="softmax")
    if probability:
        weights = call.library("Dropout", weights, p=probability, shape=common, step="dropout")
    found = call.described(
        {"weights": weights, "value": value},
        f"lambda {bound([*batch, 'm', 'j'])}: "
        f"Sum(lambda n: {at('weights', [*batch, 'm', 'n'])} * {at('value', [*values, 'n', 'j'])})",
        step="values" if rows else "",
    )
    return elementwise(call, "where({1} != 0, {0}, 0)", found, rows) if rows else found


def _grouped(call: AtenCall, batch: list[str], other: TensorValue) -> list[str]:
    """Return indices of the batch dimensions; a head of keys may serve several heads of queries."""
    indices = []
    missing = len(batch) + 2 - other.rank
    for name, extent, own in zip(batch[missing:], call.result.shape[missing:], other.shape, strict=False):
        if own == extent:
            indices.append(name)
        elif own == 1:
            indices.append("0")
        else:
            indices.append(f"{name} // {extent // own}")
    return indices


def _masked(call: AtenCall, scores: TensorValue) -> tuple[TensorValue, TensorValue | None]:
    """Return the scores that a mask leaves, and which of its rows leave any if some may not: the results of
    the others are zero.
    """
    if call.get("is_causal", False):
        names = variables(scores.rank)
        text = f"lambda {bound(names)}: where({names[-1]} <= {names[-2]}, {at('scores', names)}, -inf)"
        return call.described({"scores": scores}, text, shape=scores.shape, step="mask"), None
    if not call.has("attn_mask"):
        return scores, None
    mask: Operand = call.operand("attn_mask")
    boolean = mask.kind == "bool" if isinstance(mask, TensorValue) else isinstance(mask, bool)
    left = "{} != 0" if boolean else "{} > -inf"
    rows = _rows_left(call, left)
    if rows is None:
        body = "where({1} != 0, {0}, -inf)" if boolean else "{0} + {1}"
        return elementwise(call, body, scores, mask, shape=scores.shape, step="mask"), None
    body = "where({1} != 0 or {2} == 0, {0}, -inf)" if boolean else "{0} + where({2} != 0, {1}, 0)"
    return elementwise(call, body, scores, mask, rows, shape=scores.shape, step="mask"), rows


def _rows_left(call: AtenCall, left: str) -> TensorValue | None:
    """Return which rows of the mask leave anything; nothing if all rows of a constant mask do."""
    given = call.arguments["attn_mask"]
    if not isinstance(given, TensorValue):
        kept = (given if "bool" in str(given.dtype) else given > -inf).any(-1, keepdim=True)
        return None if bool(kept.all()) else call.constant(kept)
    names = variables(given.rank)
    found = f"Max(lambda {names[-1]}: where({left.format(at('mask', names))}, 1, 0))"
    return call.described(
        {"mask": given},
        f"lambda {', '.join([*names[:-1], 'one=1'])}: {found}",
        shape=(*given.shape[:-1], 1),
        kind="bool",
        step="rows",
    )


CONVERTERS: Mapping[str, Converter] = {
    "linear": linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), matmul),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv"), added_product),
    "bilinear": bilinear,
    "outer": outer,
    "scaled_dot_product_attention": attention,
}
