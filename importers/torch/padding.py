"""ATen operators that pad tensors, or cut them if padding is negative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .call import AtenCall, TensorValue, as_element, at, bound, literal, variables
from .converter import Converter


def _bent(mode: str, place: str, extent: int) -> str:
    """Return the index inside the tensor that padding reads at a place that may be outside."""
    if mode == "replicate":
        return f"minimum(maximum({place}, 0), {extent - 1})"
    if mode == "circular":
        return f"({place} + {extent}) % {extent}"
    return f"{extent - 1} - abs({extent - 1} - abs({place}))"


def padded(
    call: AtenCall, data: TensorValue, pads: Sequence[int], mode: str, value: float, step: str = ""
) -> TensorValue:
    """Pad dimensions, the last one first: before and after it. Negative padding cuts."""
    if mode == "circular" and min(pads) < 0:
        cuts = [min(width, 0) for width in pads]
        data = padded(call, data, cuts, "constant", 0, "cut")
        pads = [width - less for width, less in zip(pads, cuts, strict=True)]
    names = variables(data.rank)
    before, after = [0] * data.rank, [0] * data.rank
    for pair in range(len(pads) // 2):
        before[-1 - pair], after[-1 - pair] = pads[2 * pair], pads[2 * pair + 1]
    shape = tuple(extent + b + a for extent, b, a in zip(data.shape, before, after, strict=True))
    if shape == data.shape and not any(before):
        return data
    places = [name if not b else f"{name} - {b}" for name, b in zip(names, before, strict=True)]
    if mode != "constant":
        places = [
            _bent(mode, place, extent) if b or a else place
            for place, extent, b, a in zip(places, data.shape, before, after, strict=True)
        ]
    element = at("data", places)
    if mode == "constant" and any(p > 0 for p in pads):
        element = f"pad({element}, {literal(value)})"
    text = f"lambda {bound(names, shape)}: {element}"
    return call.described({"data": data}, text, shape=shape, kind=data.kind, step=step)


def pad(call: AtenCall) -> TensorValue:
    mode = {"pad": call.get("mode", "constant"), "constant_pad_nd": "constant"}.get(call.target[5:], "")
    mode = mode or call.target[5:].partition("_")[0].replace("reflection", "reflect").replace(
        "replication", "replicate"
    )
    pads = call.get("pad", call.get("padding"))
    data = call.tensor("self")
    return padded(call, data, pads, mode, as_element(call.get("value", 0), data.kind))


CONVERTERS: Mapping[str, Converter] = {
    "pad": pad,
    "constant_pad_nd": pad,
    **dict.fromkeys((f"{kind}_pad{d}d" for kind in ("reflection", "replication") for d in (1, 2, 3)), pad),
}
