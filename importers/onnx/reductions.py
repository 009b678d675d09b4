"""ONNX nodes that reduce, order or normalise along dimensions, and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from .compose import apply, broadcast, described, elementwise, outputs, reshape, scaled, shaped, stretched
from .elementwise import ADD, DIV, MUL, SUB, binary, whole
from .moves import transposed
from .node import Adapter, OnnxNode
from .operand import OnnxOperand, UnsupportedNodeError, constant

REDUCTIONS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceProd": "prod",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceL2": "norm",
}
BEFORE = {"ReduceL1": "abs", "ReduceSumSquare": "square"}
"""The function of elements that each node sums."""

ROUNDED = frozenset({"ReduceMean", "ReduceL2", "ReduceLogSum"})
"""The nodes whose results are not whole numbers if their inputs are."""

ATTENTION = frozenset(
    {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"}
)
"""The attributes of Attention that are read."""


def reduced(name: str, node: OnnxNode, data: OnnxOperand, keepdims: int | None = None) -> OnnxOperand:
    """Reduce along the dimensions that the node names, or along all; `keepdims` replaces the node's."""
    axes = node.integers("axes", 1)
    if not data.ndim or _reduces_nothing(node):
        return data
    if any(not -data.ndim <= axis < data.ndim for axis in axes):
        raise UnsupportedNodeError(f"axes {axes} of a tensor of {data.ndim} dimensions")
    gone = {axis % data.ndim for axis in axes} or set(range(data.ndim))
    if node.integer("keepdims", 1) if keepdims is None else keepdims:
        return apply(name, data, axis=axes, keepdims=True)
    left = tuple(extent for axis, extent in enumerate(data.shape) if axis not in gone)
    return reshape(apply(name, data, axis=axes), left)


def _reduces_nothing(node: OnnxNode) -> bool:
    return not node.integers("axes", 1) and bool(node.integer("noop_with_empty_axes", 0))


def reduction(node: OnnxNode) -> Sequence[OnnxOperand]:
    if node.kind in REDUCTIONS:
        if node.kind == "ReduceL2" and (_reduces_nothing(node) or not node[0].ndim):
            return [apply("abs", node[0])]
        found = reduced(REDUCTIONS[node.kind], node, node[0])
        return [whole(node, found) if node.kind in ROUNDED else found]
    data = apply(BEFORE[node.kind], node[0]) if node.kind in BEFORE else node[0]
    total = reduced("sum", node, data)
    return [whole(node, shaped(apply("log", total), total.shape)) if node.kind in ROUNDED else total]


def log_sum_exp(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Exponentials are of numbers below their maximum, so that none of them is infinite."""
    data = node[0]
    if not data.ndim or _reduces_nothing(node):
        return [data]
    most = elementwise("steady", "where(abs({0}) < inf, {0}, 0)", reduced("max", node, data, keepdims=1))
    most = apply("BlockGrad", most)
    total = reduced("sum", node, apply("exp", binary(SUB, data, most)))
    found = binary(ADD, shaped(apply("log", total), total.shape), reshape(most, total.shape))
    return [whole(node, found)]


def power_pooled(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return for each channel the root of a sum of powers over space."""
    data, power = node[0], node.number("p", 2)
    powers = apply("_power_scalar", apply("abs", data), scalar=power)
    if data.ndim > 2:
        powers = apply("sum", powers, axis=tuple(range(2, data.ndim)), keepdims=True)
    return [apply("_power_scalar", powers, scalar=1 / power)]


def extreme(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the place of an extreme value. The last of several is the first from behind."""
    axis, keepdims = node.axis(0), bool(node.integer("keepdims", 1))
    last = bool(node.integer("select_last_index", 0))
    data = apply("reverse", node[0], axis=axis) if last else node[0]
    found = apply(node.kind.lower(), data, axis=axis, keepdims=keepdims)
    found = apply("_rminus_scalar", found, scalar=data.shape[axis] - 1) if last else found
    return [found if keepdims or data.ndim > 1 else shaped(found, ())]


def top(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return the greatest or least elements, and their places, which are whole numbers."""
    values, places = outputs(
        "topk",
        node[0],
        axis=node.integer("axis", -1),
        k=node.integers("k", 1)[0],
        ret_typ="both",
        is_ascend=not node.integer("largest", 1),
    )
    return [values, places.of_type(np.dtype(np.int64))]


def softmax(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Normalise along one dimension or, before version 13, along all from one on."""
    name = "softmax" if node.kind == "Softmax" else "log_softmax"
    data = node[0]
    if node.opset >= 13:
        return [apply(name, data, axis=node.axis(-1))]
    axis = node.axis(1)
    flat = reshape(data, (prod(data.shape[:axis]), prod(data.shape[axis:])))
    return [reshape(apply(name, flat, axis=1), data.shape)]


def hardmax(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Return one at the first greatest element along a dimension, zero elsewhere."""
    axis, data = node.axis(-1 if node.opset >= 13 else 1), node[0]
    if node.opset < 13 and axis != data.ndim - 1:
        raise UnsupportedNodeError("Hardmax along several dimensions")
    best = apply("argmax", data, axis=axis, keepdims=True)
    at = [f"i{d}" for d in range(data.ndim)]
    there = ", ".join("0" if d == axis else variable for d, variable in enumerate(at))
    sized = ", ".join(f"{v}={e}" for v, e in zip(at, data.shape, strict=True))
    return [described(f"def hardmax(a):\n    return lambda {sized}: a[{there}] == {at[axis]}", best)]


def product(node: OnnxNode) -> Sequence[OnnxOperand]:
    return [matrix_product(node[0], node[1])]


def matrix_product(lhs: OnnxOperand, rhs: OnnxOperand) -> OnnxOperand:
    """Multiply matrices, vectors or batches of matrices, whose other dimensions are stretched."""
    if lhs.ndim == 1 and rhs.ndim == 1:
        return shaped(apply("dot", lhs, rhs), ())
    if not lhs.ndim or not rhs.ndim:
        raise UnsupportedNodeError("tensor without dimensions")
    if rhs.ndim <= 2:
        return apply("dot", lhs, rhs)
    if lhs.ndim == rhs.ndim and lhs.shape[:-2] == rhs.shape[:-2]:
        return apply("batch_dot", lhs, rhs)
    batch = broadcast(lhs.shape[:-2], rhs.shape[:-2])
    names = [f"n{d}" for d in range(len(batch))]
    left, right = (
        ["0" if e == 1 and b != 1 else v for e, b, v in _aligned(each.shape[:-2], batch, names)]
        for each in (lhs, rhs)
    )
    rows = ["r"] if lhs.ndim > 1 else []
    output = ", ".join([*names, *rows, "c"])
    text = (
        f"def matmul(a, b):\n    return lambda {output}: "
        f"Sum(lambda k: a[{', '.join([*left, *rows, 'k'])}] * b[{', '.join([*right, 'k', 'c'])}])"
    )
    return described(text, lhs, rhs)


def _aligned(own: Sequence[int], whole: Sequence[int], names: Sequence[str]) -> list[tuple[int, int, str]]:
    offset = len(whole) - len(own)
    return list(zip(own, whole[offset:], names[offset:], strict=True))


def gemm(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Multiply, scale and add. With the weight transposed it is a fully connected layer."""
    flags = {"transpose_a": bool(node.integer("transA", 0)), "transpose_b": bool(node.integer("transB", 0))}
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if node[0].ndim != 2 or node[1].ndim != 2:
        raise UnsupportedNodeError(f"Gemm of {node[0].shape} and {node[1].shape}")
    columns = node[1].shape[0 if flags["transpose_b"] else 1]
    biased = node.has(2) and node[2].shape == (columns,)
    plain = flags == {"transpose_a": False, "transpose_b": True} and alpha == beta == 1
    if plain and (biased or not node.has(2)):
        return [apply("FullyConnected", *node.given, num_hidden=columns, no_bias=not biased)]
    product = scaled(apply("dot", node[0], node[1], **flags), alpha)
    return [binary(ADD, product, scaled(node[2], beta)) if node.has(2) else product]


def einsum(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Sum products over the letters that the output does not have."""
    equation = node.text("equation", "").replace(" ", "")
    given, arrow, wanted = equation.partition("->")
    if "" in given.split(","):
        raise UnsupportedNodeError(f"Einsum with the equation {equation!r:.80}")
    found = apply("einsum", *node.given, subscripts=equation)
    kept = wanted if arrow else [each for each in given if each.isalpha() and given.count(each) == 1]
    return [found if kept or "." in equation else shaped(found, ())]


def lp_normalization(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Divide by the norm. A norm of zero gives zeros, as ONNX demands; MXNet would divide by it."""
    length = apply("norm", node[0], axis=node.integer("axis", -1), ord=node.integer("p", 2), keepdims=True)
    safe = apply("elemwise_add", length, apply("_equal_scalar", length, scalar=0))
    return [binary(DIV, node[0], safe)]


def layer_normalization(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Over all dimensions from `axis` on, taken for one; the statistics are computed apart."""
    data, axis = node[0], node.axis(-1)
    epsilon = node.number("epsilon", 1e-5)
    outer, features = data.shape[:axis], prod(data.shape[axis:])
    flat = reshape(data, (*outer, features)) if outer else reshape(data, (1, features))
    scale = reshape(stretched(node[1], data.shape[axis:]), (features,))
    offset = (
        reshape(stretched(node[2], data.shape[axis:]), (features,))
        if node.has(2)
        else constant(np.zeros(features), np.float32)
    )
    found = reshape(apply("LayerNorm", flat, scale, offset, axis=-1, eps=epsilon), data.shape)
    if node.outputs == 1:
        return [found]
    mean = apply("mean", flat, axis=-1, keepdims=True)
    centred = apply("square", binary(SUB, flat, mean))
    variance = apply("mean", centred, axis=-1, keepdims=True)
    spread = apply("rsqrt", apply("_plus_scalar", variance, scalar=epsilon))
    statistics = (*outer, *(1 for _ in data.shape[axis:]))
    return [found, reshape(mean, statistics), reshape(spread, statistics)][: node.outputs]


def root_mean_square(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Divide by the root of the mean square over all dimensions from `axis` on, and scale."""
    data, axis = node[0], node.axis(-1)
    axes = tuple(range(axis, data.ndim))
    square = apply("mean", apply("square", data), axis=axes, keepdims=True)
    spread = apply("rsqrt", apply("_plus_scalar", square, scalar=node.number("epsilon", 1e-5)))
    return [binary(MUL, binary(MUL, data, spread), node[1])]


def mean_variance(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Subtract the mean along some dimensions and divide by the deviation."""
    axes = node.integers("axes", None, (0, 2, 3))
    centred = binary(SUB, node[0], apply("mean", node[0], axis=axes, keepdims=True))
    variance = apply("mean", apply("square", centred), axis=axes, keepdims=True)
    deviation = apply("_plus_scalar", apply("sqrt", variance), scalar=1e-9)
    return [binary(DIV, centred, deviation)]


def attention(node: OnnxNode) -> Sequence[OnnxOperand]:
    """Weigh values by the softmax of scaled products of queries and keys, with a mask if there is one."""
    if node.outputs > 1 or any(node.has(position) for position in (4, 5, 6)):
        raise UnsupportedNodeError("Attention with past keys, or with several outputs")
    if node.number("softcap", 0):
        raise UnsupportedNodeError("Attention with softcap")
    other = sorted(set(node.attributes) - ATTENTION)
    if other:
        raise UnsupportedNodeError(f"Attention with {', '.join(other)}")
    query, key, value = (
        _heads(node[k], node.integer("q_num_heads" if k == 0 else "kv_num_heads", 0)) for k in range(3)
    )
    if node.has(3) and node[3].shape[-1] != key.shape[2]:
        raise UnsupportedNodeError("Attention with a mask of fewer columns than keys")
    if query.shape[1] != key.shape[1]:
        raise UnsupportedNodeError("Attention with fewer heads of keys than of queries")
    scale = node.number("scale", query.shape[-1] ** -0.5)
    products = scaled(matrix_product(query, transposed(key, (0, 1, 3, 2))), scale)
    mask = node[3] if node.has(3) else None
    causal = bool(node.integer("is_causal", 0))
    if mask is not None and mask.dtype.kind != "b":
        products, mask = binary(ADD, products, mask), None
    weights = _hidden(apply("softmax", _hidden(products, mask, causal, -3e38), axis=-1), mask, causal, 0.0)
    found = matrix_product(weights, value)
    if node[0].ndim == 4:
        return [found]
    batch, _, length, _ = found.shape
    return [reshape(transposed(found, (0, 2, 1, 3)), (batch, length, -1))]


def _hidden(products: OnnxOperand, mask: OnnxOperand | None, causal: bool, value: float) -> OnnxOperand:
    """Put a value where a mask of truth values is not set, and where a key comes after the query."""
    found = products
    if mask is not None:
        found = elementwise("masked", f"where({{1}} != 0, {{0}}, {value})", found, mask)
    if causal:
        text = f"def causal(a):\n    return lambda n, h, i, j: where(j <= i, a[n, h, i, j], {value})"
        found = described(text, found)
    return found


def _heads(data: OnnxOperand, heads: int) -> OnnxOperand:
    """Return `[batch, heads, length, features]`."""
    if data.ndim == 4:
        return data
    if data.ndim != 3 or heads <= 0 or data.shape[2] % heads:
        raise UnsupportedNodeError(f"Attention of {data.shape} with {heads} heads")
    batch, length, width = data.shape
    return transposed(reshape(data, (batch, length, heads, width // heads)), (0, 2, 1, 3))


ADAPTERS: Mapping[str, Adapter] = {
    **dict.fromkeys((*REDUCTIONS, *BEFORE, "ReduceLogSum"), reduction),
    "ReduceLogSumExp": log_sum_exp,
    "GlobalLpPool": power_pooled,
    "ArgMax": extreme,
    "ArgMin": extreme,
    "TopK": top,
    "Softmax": softmax,
    "LogSoftmax": softmax,
    "Hardmax": hardmax,
    "MatMul": product,
    "Gemm": gemm,
    "Einsum": einsum,
    "Attention": attention,
    "LpNormalization": lp_normalization,
    "LayerNormalization": layer_normalization,
    "RMSNormalization": root_mean_square,
    "MeanVarianceNormalization": mean_variance,
}
