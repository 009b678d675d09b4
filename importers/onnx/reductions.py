"""ONNX nodes that reduce, order or normalise along dimensions, and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .elementwise import binary
from .node import Adapter, Array, OnnxNode, UnsupportedNodeError, apply, outputs, ranked, reshape

REDUCTIONS = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceProd": "prod",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceL2": "norm",
}
BEFORE = {"ReduceL1": "abs", "ReduceSumSquare": "square", "ReduceLogSumExp": "exp"}
"""The function of elements that each node sums."""


def reduced(name: str, node: OnnxNode, data: Array) -> Array:
    if 0 in data.shape:
        raise UnsupportedNodeError("tensor without elements")
    axes = node.integers("axes", 1)
    if not axes and node.integer("noop_with_empty_axes", 0):
        return data
    keepdims = bool(node.integer("keepdims", 1))
    if not keepdims and (not axes or len(axes) == data.ndim):
        return apply(name, data, axis=axes).reshape(())
    return apply(name, data, axis=axes, keepdims=keepdims)


def reduction(node: OnnxNode) -> Sequence[Array]:
    if node.kind in REDUCTIONS:
        if (
            node.kind == "ReduceL2"
            and not node.integers("axes", 1)
            and node.integer("noop_with_empty_axes", 0)
        ):
            return [apply("abs", node[0])]
        return [reduced(REDUCTIONS[node.kind], node, node[0])]
    data = apply(BEFORE[node.kind], node[0]) if node.kind in BEFORE else node[0]
    total = reduced("sum", node, data)
    return [apply("log", np.atleast_1d(total)).reshape(total.shape) if "Log" in node.kind else total]


def extreme(node: OnnxNode) -> Sequence[Array]:
    """Return the place of an extreme value. The last of several is the first from behind."""
    axis, keepdims = node.integer("axis", 0) % node[0].ndim, bool(node.integer("keepdims", 1))
    last = bool(node.integer("select_last_index", 0))
    data = apply("reverse", node[0], axis=axis) if last else node[0]
    found = apply(node.kind.lower(), data, axis=axis, keepdims=keepdims)
    return [apply("_rminus_scalar", found, scalar=data.shape[axis] - 1) if last else found]


def top(node: OnnxNode) -> Sequence[Array]:
    return outputs(
        "topk",
        node[0],
        axis=node.integer("axis", -1),
        k=node.integers("k", 1)[0],
        ret_typ="both",
        is_ascend=not node.integer("largest", 1),
    )


def softmax(node: OnnxNode) -> Sequence[Array]:
    name = "softmax" if node.kind == "Softmax" else "log_softmax"
    return [apply(name, node[0], axis=node.integer("axis", -1))]


def product(node: OnnxNode) -> Sequence[Array]:
    """Matrices, vectors or batches of matrices, which are stretched to each other first."""
    lhs, rhs = node[0], node[1]
    if lhs.ndim == 1 and rhs.ndim == 1:
        return [apply("dot", lhs, rhs).reshape(())]
    left = lhs[None] if lhs.ndim == 1 else lhs
    right = rhs[:, None] if rhs.ndim == 1 else rhs
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*batch, *([lhs.shape[-2]] if lhs.ndim > 1 else []), *([rhs.shape[-1]] if rhs.ndim > 1 else []))
    if not batch:
        return [reshape(apply("dot", left, right), shape)]
    stretched = [
        apply("broadcast_to", ranked(each, len(batch) + 2), shape=(*batch, *each.shape[-2:]))
        for each in (left, right)
    ]
    return [reshape(apply("batch_dot", *stretched), shape)]


def gemm(node: OnnxNode) -> Sequence[Array]:
    flags = {"transpose_a": bool(node.integer("transA", 0)), "transpose_b": bool(node.integer("transB", 0))}
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if not node.has(2):
        return [apply("linalg_gemm2", node[0], node[1], alpha=alpha, **flags)]
    rows = node[0].shape[1 if flags["transpose_a"] else 0]
    columns = node[1].shape[0 if flags["transpose_b"] else 1]
    added = apply("broadcast_to", ranked(node[2], 2), shape=(rows, columns))
    return [apply("linalg_gemm", node[0], node[1], added, alpha=alpha, beta=beta, **flags)]


def lp_normalization(node: OnnxNode) -> Sequence[Array]:
    """Divide by the norm. A norm of zero gives zeros, as ONNX demands; MXNet would divide by it."""
    length = apply("norm", node[0], axis=node.integer("axis", -1), ord=node.integer("p", 2), keepdims=True)
    safe = apply("elemwise_add", length, apply("_equal_scalar", length, scalar=0))
    return [binary("broadcast_div", node[0], safe)]


def layer_normalization(node: OnnxNode) -> Sequence[Array]:
    """Over all dimensions from `axis` on, taken for one; the statistics are computed apart."""
    data = node[0]
    axis = node.integer("axis", -1) % data.ndim
    epsilon = node.number("epsilon", 1e-5)
    outer, inner = data.shape[:axis], data.shape[axis:]
    flat = reshape(data, (*outer, -1)) if outer else data.reshape(1, -1)
    features = flat.shape[-1]
    offset = node[2].reshape(features) if node.has(2) else np.zeros(features, data.dtype)
    found = apply("LayerNorm", flat, node[1].reshape(features), offset, axis=-1, eps=epsilon)
    mean = apply("mean", flat, axis=-1, keepdims=True)
    centred = apply("square", binary("broadcast_sub", flat, mean))
    variance = apply("mean", centred, axis=-1, keepdims=True)
    spread = apply("rsqrt", apply("_plus_scalar", variance, scalar=epsilon))
    statistics = [each.reshape(*outer, *(1 for _ in inner)) for each in (mean, spread)]
    return [found.reshape(data.shape), *statistics][: node.outputs]


ADAPTERS: Mapping[str, Adapter] = {
    **dict.fromkeys((*REDUCTIONS, *BEFORE, "ReduceLogSum"), reduction),
    "ArgMax": extreme,
    "ArgMin": extreme,
    "TopK": top,
    "Softmax": softmax,
    "LogSoftmax": softmax,
    "MatMul": product,
    "Gemm": gemm,
    "LpNormalization": lp_normalization,
    "LayerNormalization": layer_normalization,
}
