"""ATen's normalisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .call import AtenCall, TensorValue, UnsupportedCallError, at, bound, literal, variables
from .converter import Converter


def _over_last(
    call: AtenCall, data: TensorValue, count: int, *, centred: bool, epsilon: float
) -> TensorValue:
    """Normalise over the last dimensions, then scale and shift their elements."""
    names = variables(data.rank)
    outer, inner = names[: data.rank - count], names[data.rank - count :]
    everywhere, features = at("data", names), prod(data.shape[data.rank - count :])
    tensors = {"data": data}
    centre = f"({everywhere} - {at('mean', outer)})" if centred else everywhere
    stages = []
    if centred:
        stages.append(f"mean = lambda {bound(outer)}: Sum(lambda {bound(inner)}: {everywhere}) / {features}")
    squares = f"Sum(lambda {bound(inner)}: square({centre})) / {features}"
    stages.append(f"var = lambda {bound(outer)}: {squares}")
    body = f"{centre} * rsqrt({at('var', outer)} + {literal(epsilon)})"
    if call.has("weight"):
        tensors["weight"] = call.tensor("weight")
        body += f" * {at('weight', inner)}"
    if call.has("bias"):
        tensors["bias"] = call.tensor("bias")
        body += f" + {at('bias', inner)}"
    return call.described(tensors, f"lambda {bound(names)}: {body}", stages=stages)


def layer_norm(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Apply the library's operator if it is over one dimension, with weight and bias."""
    data, count = call.tensor("input"), len(call.get("normalized_shape"))
    epsilon = call.get("eps", 1e-5)
    if count == 1 and call.has("weight") and call.has("bias"):
        found = call.library("LayerNorm", data, call.tensor("weight"), call.tensor("bias"), eps=epsilon)
    else:
        found = _over_last(call, data, count, centred=True, epsilon=epsilon)
    return found if len(call.results) == 1 else (found, None, None)


def rms_norm(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """PyTorch's default epsilon is the spacing of float32 at 1."""
    epsilon = call.get("eps", 1.1920928955078125e-07)
    count = len(call.get("normalized_shape"))
    found = _over_last(call, call.tensor("input"), count, centred=False, epsilon=epsilon)
    return found if len(call.results) == 1 else (found, None)


def group_norm(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Channels in groups; the statistics are those of a sample's group."""
    data = call.tensor("input")
    groups = call.get("num_groups", call.get("group"))
    channels = data.shape[1]
    size = channels // groups
    space = variables(data.rank - 2, "x")
    element = at("data", ["n", f"g * {size} + c", *space])
    count = size * prod(data.shape[2:])
    inner = ", ".join([f"c={size}", *space])
    own = f"[n, c // {size}]"
    stages = [
        f"mean = lambda n, g={groups}: Sum(lambda {inner}: {element}) / {count}",
        f"var = lambda n, g={groups}: Sum(lambda {inner}: square({element} - mean[n, g])) / {count}",
    ]
    tensors = {"data": data}
    names = ["n", "c", *space]
    body = f"({at('data', names)} - mean{own}) * rsqrt(var{own} + {literal(call.get('eps', 1e-5))})"
    if call.has("weight"):
        tensors["weight"] = call.tensor("weight")
        body += " * weight[c]"
    if call.has("bias"):
        tensors["bias"] = call.tensor("bias")
        body += " + bias[c]"
    found = call.described(tensors, f"lambda {bound(names)}: {body}", stages=stages)
    return found if len(call.results) == 1 else (found, None, None)


def instance_norm(call: AtenCall) -> TensorValue:
    """Normalise each channel of each sample."""
    data = call.tensor("input")
    if not call.get("use_input_stats", True):
        return _fixed_statistics(call, data)
    if call.has("running_mean"):
        raise UnsupportedCallError(f"{call.target} with running statistics in training")
    space = variables(data.rank - 2, "x")
    count = prod(data.shape[2:])
    element = at("data", ["n", "c", *space])
    inner = bound(space)
    stages = [
        f"mean = lambda n, c: Sum(lambda {inner}: {element}) / {count}",
        f"var = lambda n, c: Sum(lambda {inner}: square({element} - mean[n, c])) / {count}",
    ]
    tensors = {"data": data}
    body = f"({element} - mean[n, c]) * rsqrt(var[n, c] + {literal(call.get('eps', 1e-5))})"
    for name, sign in (("weight", "*"), ("bias", "+")):
        if call.has(name):
            tensors[name] = call.tensor(name)
            body += f" {sign} {name}[c]"
    return call.described(tensors, f"lambda {bound(['n', 'c', *space])}: {body}", stages=stages)


def batch_norm(call: AtenCall) -> TensorValue | Sequence[TensorValue | None]:
    """Apply the library's operator, which updates running statistics in training as PyTorch does. The
    statistics that it returns are the states, which later calls update further. Statistics that are not
    updated are read like other tensors.
    """
    data = call.tensor("input")
    training = call.get("training", call.target.endswith("functional"))
    outputs = len(call.results)
    if not training:
        return _with_nothing(_fixed_statistics(call, data), outputs)
    if not call.has("running_mean"):
        return _with_nothing(_own_statistics(call, data), outputs)
    scale, offset = _scale_and_offset(call, data)
    states = call.tensor("running_mean"), call.tensor("running_var")
    found = call.library(
        "BatchNorm",
        data,
        scale,
        offset,
        *states,
        eps=call.get("eps"),
        momentum=1 - call.get("momentum"),
        fix_gamma=False,
        unbiased=True,
    )
    if not call.target.endswith("functional"):
        return _with_nothing(found, outputs)
    return (found, *[None] * (outputs - 3), *states)


def _with_nothing(found: TensorValue, outputs: int) -> TensorValue | Sequence[TensorValue | None]:
    return found if outputs == 1 else (found, *[None] * (outputs - 1))


def _scale_and_offset(call: AtenCall, data: TensorValue) -> tuple[TensorValue, TensorValue]:
    """Return weight and bias; constants if there are none."""
    from .installed import installed

    torch = installed()
    channels = data.shape[1]
    weight = call.tensor("weight") if call.has("weight") else call.constant(torch.ones(channels))
    bias = call.tensor("bias") if call.has("bias") else call.constant(torch.zeros(channels))
    return weight, bias


def _affine(call: AtenCall, tensors: dict[str, TensorValue], normalised: str) -> str:
    for name, sign in (("weight", "*"), ("bias", "+")):
        if call.has(name):
            tensors[name] = call.tensor(name)
            normalised += f" {sign} {name}[c]"
    return normalised


def _fixed_statistics(call: AtenCall, data: TensorValue) -> TensorValue:
    names = ["n", "c", *variables(data.rank - 2, "x")]
    tensors = {"data": data, "mean": call.tensor("running_mean"), "var": call.tensor("running_var")}
    body = f"({at('data', names)} - mean[c]) * rsqrt(var[c] + {literal(call.get('eps'))})"
    return call.described(tensors, f"lambda {bound(names)}: {_affine(call, tensors, body)}")


def _own_statistics(call: AtenCall, data: TensorValue) -> TensorValue:
    space = variables(data.rank - 2, "x")
    names, inner = ["n", "c", *space], bound(["n", *space])
    element, count = at("data", names), data.shape[0] * prod(data.shape[2:])
    stages = [
        f"mean = lambda c: Sum(lambda {inner}: {element}) / {count}",
        f"var = lambda c: Sum(lambda {inner}: square({element} - mean[c])) / {count}",
    ]
    tensors = {"data": data}
    body = f"({element} - mean[c]) * rsqrt(var[c] + {literal(call.get('eps'))})"
    return call.described(tensors, f"lambda {bound(names)}: {_affine(call, tensors, body)}", stages=stages)


BATCH_NORMS = (
    "batch_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_batch_norm_with_update_functional",
    "_batch_norm_no_update",
    "cudnn_batch_norm",
)

CONVERTERS: Mapping[str, Converter] = {
    "layer_norm": layer_norm,
    "native_layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "_fused_rms_norm": rms_norm,
    "group_norm": group_norm,
    "native_group_norm": group_norm,
    "instance_norm": instance_norm,
    **dict.fromkeys(BATCH_NORMS, batch_norm),
}
