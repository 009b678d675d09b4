"""ATen's losses. Those over classes read labels as whole numbers, or as probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from .call import (
    AtenCall,
    TensorValue,
    UnsupportedCallError,
    at,
    bound,
    elementwise,
    literal,
    variables,
)
from .converter import Converter

NONE, MEAN, SUM = range(3)


def reduced(call: AtenCall, data: TensorValue, divisor: TensorValue | None = None) -> TensorValue:
    """Return the elements, their sum, or their mean: the sum divided by a number of elements."""
    reduction = call.get("reduction", MEAN)
    if reduction == NONE:
        return data
    names = variables(data.rank)
    if not data.rank:
        return data if divisor is None else elementwise(call, "{0} / {1}", data, divisor, shape=())
    total = f"Sum(lambda {bound(names)}: {at('data', names)})"
    if reduction == SUM:
        return call.described({"data": data}, f"lambda one=1: {total}", shape=())
    if divisor is None:
        return call.described({"data": data}, f"lambda one=1: {total} / {prod(data.shape)}", shape=())
    stages = [f"total = lambda one=1: {total}"]
    tensors = {"data": data, "divisor": divisor}
    return call.described(tensors, "lambda one: total[one] / divisor[one]", stages=stages, shape=())


def _step(call: AtenCall, step: str) -> str:
    """Return the step of elements that are reduced next, nothing if they are the result."""
    return "" if call.get("reduction", MEAN) == NONE else step


def _difference(body: str) -> Converter:
    def convert(call: AtenCall) -> TensorValue:
        prediction, target = call.operand("self"), call.operand("target")
        shapes = [operand.shape for operand in (prediction, target) if isinstance(operand, TensorValue)]
        shape = max(shapes, key=prod)
        width = call.get("beta", call.get("delta", 1.0))
        operands = (prediction, target) if "{2}" not in body else (prediction, target, width)
        return reduced(call, elementwise(call, body, *operands, shape=shape, step=_step(call, "terms")))

    return convert


def binary_cross_entropy(call: AtenCall) -> TensorValue:
    """Logarithms are bounded from below by -100, as in PyTorch."""
    body = "-({1} * maximum(log({0}), -100) + (1 - {1}) * maximum(log(1 - {0}), -100))"
    return _weighted(call, body, "self", "target")


def binary_cross_entropy_with_logits(call: AtenCall) -> TensorValue:
    if call.has("pos_weight"):
        body = "(1 - {1}) * {0} + (1 + ({2} - 1) * {1}) * softplus(-{0})"
        return _weighted(call, body, "self", "target", "pos_weight")
    return _weighted(call, "softplus({0}) - {0} * {1}", "self", "target")


def _weighted(call: AtenCall, body: str, *keys: str) -> TensorValue:
    """Return the loss whose terms are computed from the arguments of these names, and from weights."""
    if call.has("weight"):
        body = f"{{{len(keys)}}} * ({body})"
        keys = (*keys, "weight")
    shape = np.broadcast_shapes(*(call.arguments[key].shape for key in keys))
    operands = map(call.operand, keys)
    return reduced(call, elementwise(call, body, *operands, shape=shape, step=_step(call, "terms")))


def cross_entropy(call: AtenCall) -> TensorValue:
    """Take the logarithm of a softmax over classes, then the loss of each sample."""
    data, target = call.tensor("self"), call.tensor("target")
    classes = 1 if data.rank > 1 else 0
    logarithms = call.library("log_softmax", data, axis=classes, shape=data.shape, step="log_softmax")
    smoothing = call.get("label_smoothing", 0.0)
    if target.shape == data.shape and target.kind == "float":
        return _of_probabilities(call, logarithms, target, smoothing)
    return _picked(call, logarithms, target, smoothing)


def _of_probabilities(
    call: AtenCall, data: TensorValue, target: TensorValue, smoothing: float
) -> TensorValue:
    """Return the cross entropy of probabilities; a mean is over samples."""
    names = ["n", "c", *variables(data.rank - 2, "x")] if data.rank > 1 else ["c"]
    kept = [name for name in names if name != "c"]
    probability = at("target", names)
    count = data.shape[1 if data.rank > 1 else 0]
    if smoothing:
        probability = f"({probability} * {literal(1 - smoothing)} + {literal(smoothing / count)})"
    tensors = {"data": data, "target": target}
    term = f"{at('data', names)} * {probability}"
    if call.has("weight"):
        tensors["weight"] = call.tensor("weight")
        term += " * weight[c]"
    shape = tuple(extent for name, extent in zip(names, data.shape, strict=True) if name != "c")
    text = f"lambda {bound(kept)}: -Sum(lambda c: {term})"
    return reduced(call, call.described(tensors, text, shape=shape, step=_step(call, "terms")))


def negative_log_likelihood(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    found = _picked(call, call.tensor("self"), call.tensor("target"), 0.0)
    return found if len(call.results) == 1 else (found, None)


def _picked(call: AtenCall, data: TensorValue, target: TensorValue, smoothing: float) -> TensorValue:
    """Return the negative elements at the labels. A label that is ignored adds nothing, and does not count
    in a mean, in which each sample has the weight of its class.
    """
    names = ["n", "c", *variables(data.rank - 2, "x")] if data.rank > 1 else ["c"]
    kept = [name for name in names if name != "c"]
    shape = tuple(extent for name, extent in zip(names, data.shape, strict=True) if name != "c")
    label, ignored = at("target", kept), literal(call.get("ignore_index", -100))
    tensors = {"data": data, "target": target}
    weight = ""
    if call.has("weight"):
        tensors["weight"] = call.tensor("weight")
        weight = " * weight[c]"
    picked = f"where({label} == c and {label} != {ignored}, {at('data', names)}{weight}, 0)"
    stages = [f"picked = lambda {bound(kept)}: Sum(lambda c: {picked})"]
    result = f"-{at('picked', kept)}"
    if smoothing:
        count = data.shape[names.index("c")]
        everything = f"where({label} != {ignored}, {at('data', names)}{weight}, 0)"
        stages.append(f"every = lambda {bound(kept)}: Sum(lambda c: {everything})")
        chosen, rest = literal(smoothing - 1), literal(smoothing / count)
        result = f"{chosen} * {at('picked', kept)} - {rest} * {at('every', kept)}"
    terms = call.described(
        tensors, f"lambda {bound(kept)}: {result}", stages=stages, shape=shape, step=_step(call, "terms")
    )
    if call.get("reduction", MEAN) != MEAN:
        return reduced(call, terms)
    return reduced(call, terms, _counted(call, tensors, kept, label, ignored, data.shape[names.index("c")]))


def _counted(
    call: AtenCall,
    tensors: Mapping[str, TensorValue],
    kept: Sequence[str],
    label: str,
    ignored: str,
    classes: int,
) -> TensorValue:
    """Return the number of labels that are not ignored, or the sum of the weights of their classes."""
    given = {key: tensor for key, tensor in tensors.items() if key != "data"}
    if "weight" in given:
        item = f"where({label} == c and {label} != {ignored}, weight[c], 0)"
        inner = ", ".join([*kept, f"c={classes}"])
    else:
        item, inner = f"where({label} != {ignored}, 1, 0)", ", ".join(kept)
    body = f"Sum(lambda {inner}: {item})" if inner else item
    return call.described(given, f"lambda one=1: {body}", shape=(), step="count")


def kl_divergence(call: AtenCall) -> TensorValue:
    if call.get("log_target", False):
        body = "exp({1}) * ({1} - {0})"
    else:
        body = "{1} * (log(where({1} != 0, {1}, 1)) - {0})"
    return _weighted(call, body, "self", "target")


def multilabel_margin(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Compare the score of each label of a sample with those of all other classes. Labels end at a -1."""
    data, target = call.tensor("self"), call.tensor("target")
    rows = ["n"] if data.rank > 1 else []
    classes, outer, where = data.shape[-1] if data.rank else 1, bound(rows), (*rows, "j")
    label, is_label = at("target", where), at("is_label", where)
    stages = [
        f"is_label = lambda {', '.join([*rows, f'j={classes}'])}: "
        f"Min(lambda k: where(k > j or {at('target', [*rows, 'k'])} >= 0, 1, 0))",
        f"named = lambda {', '.join([*rows, f'i={classes}'])}: "
        f"Max(lambda j: where({is_label} != 0 and {label} == i, 1, 0))",
    ]
    score, other = at("data", [*rows, f"maximum({label}, 0)"]), at("data", [*rows, "i"])
    term = f"where({is_label} != 0 and {at('named', [*rows, 'i'])} == 0, relu(1 - {score} + {other}), 0)"
    loss = call.described(
        {"data": data, "target": target},
        f"lambda {outer}: Sum(lambda j={classes}, i={classes}: {term}) / {classes}",
        stages=stages,
        shape=data.shape[:-1],
        step=_step(call, "terms"),
    )
    found = reduced(call, loss)
    return found if len(call.results) == 1 else (found, None)


def dropout(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Apply the library's dropout, whose random numbers are not PyTorch's."""
    data = call.tensor("input")
    if "alpha" in call.target and call.get("train", True) and call.get("p", 0.5):
        raise UnsupportedCallError(f"{call.target} in training, which draws what it puts in place")
    probability = call.get("p", 0.5)
    if not call.get("train", True) or not probability:
        found = data
    elif probability >= 1:
        raise UnsupportedCallError(f"{call.target} of everything")
    else:
        found = call.library("Dropout", data, p=probability)
    return found if len(call.results) == 1 else (found, None)


def feature_dropout(call: AtenCall) -> TensorValue:
    """Drop whole channels of samples: ones of a channel each are dropped, and multiply the data."""
    data, probability = call.tensor("input"), call.get("p", 0.5)
    if not call.get("train", True) or not probability:
        return data
    shape = (*data.shape[:2], *(1,) * (data.rank - 2))
    ones = TensorValue(call.apply("_ones", shape=shape, step="ones"), shape, "float")
    kept = call.library("Dropout", ones, p=probability, shape=shape, step="kept")
    return elementwise(call, "{0} * {1}", data, kept)


SMOOTH = "where(abs({0} - {1}) < {2}, 0.5 * square({0} - {1}) / {2}, abs({0} - {1}) - 0.5 * {2})"
HUBER = "where(abs({0} - {1}) < {2}, 0.5 * square({0} - {1}), {2} * (abs({0} - {1}) - 0.5 * {2}))"

CONVERTERS: Mapping[str, Converter] = {
    "mse_loss": _difference("square({0} - {1})"),
    "l1_loss": _difference("abs({0} - {1})"),
    "smooth_l1_loss": _difference(SMOOTH),
    "huber_loss": _difference(HUBER),
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "kl_div": kl_divergence,
    "cross_entropy_loss": cross_entropy,
    **dict.fromkeys(("multilabel_margin_loss", "multilabel_margin_loss_forward"), multilabel_margin),
    **dict.fromkeys(
        ("nll_loss", "nll_loss_nd", "nll_loss2d", "nll_loss_forward", "nll_loss2d_forward"),
        negative_log_likelihood,
    ),
    "dropout": dropout,
    "native_dropout": dropout,
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout"), dropout),
    "feature_dropout": feature_dropout,
}
