"""Complex numbers: real and imaginary parts side by side, in a last dimension of two that the symbol has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .call import (
    AtenCall,
    TensorValue,
    UnsupportedCallError,
    at,
    bound,
    elementwise,
    literal,
    stretched,
    variables,
)
from .constants import view_as_real
from .converter import Converter
from .installed import installed
from .moves import selected
from .products import multiplied

BY_PARTS = frozenset((
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as",
    "permute", "transpose", "t", "numpy_T", "movedim", "expand", "expand_as", "repeat", "slice",
    "select", "narrow", "cat", "stack", "flip", "roll", "index", "index_select", "split",
    "split_with_sizes", "chunk", "unbind", "clone", "alias", "contiguous", "detach", "sum", "mean",
    "neg", "constant_pad_nd", "pad", "copy", "slice_scatter", "select_scatter", "diagonal",
    "diagonal_scatter", "tril", "triu", "cumsum", "where", "masked_fill", "gather", "unfold",
))  # fmt: skip
"""Operators that do the same to real and imaginary parts."""

PROMOTED = frozenset(("self", "other", "src", "tensors", "value"))
"""Arguments of these operators that become parts of results: real numbers have no imaginary part there."""


def of_complex(target: str, converter: Converter | None) -> Converter:
    """Return the converter of a call that reads or makes complex numbers.

    Raises UnsupportedCallError if there is none.
    """
    name = target.removeprefix("aten.").partition(".")[0]
    if name in CONVERTERS:
        return CONVERTERS[name]
    if name in BY_PARTS and converter is not None:
        return _by_parts(converter)
    raise UnsupportedCallError(f"{target} of complex numbers")


def is_complex(value: object) -> bool:
    if isinstance(value, TensorValue):
        return value.kind == "complex"
    return isinstance(value, installed().Tensor) and value.is_complex()


def viewed_as_real(call: AtenCall, value: Any) -> TensorValue:
    """Return complex numbers as the real ones that hold them."""
    if isinstance(value, TensorValue):
        return TensorValue(value.symbol, (*value.shape, 2), "float")
    return call.constant(view_as_real(value))


def _complex(held: TensorValue) -> TensorValue:
    return TensorValue(held.symbol, held.shape[:-1], "complex")


def _part(call: AtenCall, value: Any, number: int, promoted: bool = False) -> Any:
    """Return the real or imaginary parts of complex numbers in an argument, and others as they are. If it is
    `promoted`, the imaginary parts of real numbers are zeros.
    """
    if isinstance(value, tuple | list):
        return [_part(call, each, number, promoted) for each in value]
    if promoted and isinstance(value, complex | float | int):
        return value.imag if number else value.real
    if not is_complex(value):
        return installed().zeros(value.shape) if promoted and number and value is not None else value
    held = viewed_as_real(call, value)
    return selected(call, held, held.rank - 1, number, "real" if not number else "imag")


def _joined(call: AtenCall, real: TensorValue, imaginary: TensorValue) -> TensorValue:
    shape, names = real.shape, variables(real.rank)
    body = f"where(p == 0, {at('real', names)}, {at('imaginary', names)})"
    text = f"lambda {bound([*names, 'p'], (*shape, 2))}: {body}"
    return call.described({"real": real, "imaginary": imaginary}, text, shape=shape, kind="complex")


def _by_parts(converter: Converter) -> Converter:
    def convert(call: AtenCall) -> Sequence[TensorValue]:
        parts = []
        for number in range(2):
            arguments = {
                key: _part(call, value, number, key in PROMOTED) for key, value in call.arguments.items()
            }
            results = tuple(dataclasses.replace(each, kind="float") for each in call.results)
            found = converter(dataclasses.replace(call, arguments=arguments, results=results))
            parts.append([found] if isinstance(found, TensorValue) else found)
        return [_joined(call, *pair) for pair in zip(*parts, strict=True)]

    return convert


def _as_complex(call: AtenCall) -> TensorValue:
    return _complex(call.tensor("self"))


def _as_real(call: AtenCall) -> TensorValue:
    return viewed_as_real(call, call.arguments["self"])


def _one_part(number: int) -> Converter:
    return lambda call: _part(call, call.arguments["self"], number)


def _cast(call: AtenCall) -> TensorValue:
    """Return real numbers as complex ones, or complex ones as they are."""
    data = call.tensor("self")
    if data.kind == "complex":
        return data
    names = variables(data.rank)
    text = f"lambda {bound([*names, 'p'], (*data.shape, 2))}: where(p == 0, {at('data', names)}, 0)"
    return call.described({"data": data}, text, kind="complex")


def _from_parts(call: AtenCall) -> TensorValue:
    return _joined(call, call.tensor("real"), call.tensor("imag"))


def _from_angle(call: AtenCall) -> TensorValue:
    size, angle = call.tensor("abs"), call.tensor("angle")
    names = variables(len(call.result.shape))
    a, b = (stretched(n, x.shape, call.result.shape, names) for n, x in (("size", size), ("angle", angle)))
    text = f"lambda {bound([*names, 'p'], (*call.result.shape, 2))}: {a} * where(p == 0, cos({b}), sin({b}))"
    return call.described({"size": size, "angle": angle}, text, kind="complex")


Parts = tuple[str, str]
"""The real and the imaginary part of a number as texts; nothing for the imaginary part of a real number."""


def _arithmetic(combined: Callable[[Parts, Parts], Parts]) -> Callable[[AtenCall], TensorValue]:
    """Combine numbers at the same place, some of which may be real."""

    def convert(call: AtenCall) -> TensorValue:
        call.only(alpha=1)
        shape, tensors = call.result.shape, {}
        names, parts = variables(len(shape)), []
        for key, letter in (("self", "a"), ("other", "b")):
            given = call.arguments[key]
            if isinstance(given, complex | float | int):
                parts.append((literal(given.real), literal(given.imag) if given.imag else ""))
                continue
            tensors[letter] = viewed_as_real(call, given) if is_complex(given) else call.tensor(key)
            own = tensors[letter].shape[: -1 if is_complex(given) else None]
            read = stretched(letter, own, shape, names)
            opened = f"{read[:-1]}, " if own else f"{letter}["
            parts.append((f"{opened}0]", f"{opened}1]") if is_complex(given) else (read, ""))
        real, imaginary = combined(*parts)
        text = f"lambda {bound([*names, 'p'], (*shape, 2))}: where(p == 0, {real}, {imaginary})"
        return call.described(tensors, text, kind="complex")

    return convert


def _product(a: Parts, b: Parts) -> Parts:
    if not (a[1] and b[1]):
        (real, imaginary), factor = (a, b[0]) if a[1] else (b, a[0])
        return f"{real} * {factor}", f"{imaginary} * {factor}"
    return f"{a[0]} * {b[0]} - {a[1]} * {b[1]}", f"{a[0]} * {b[1]} + {a[1]} * {b[0]}"


def _total(sign: str) -> Callable[[Parts, Parts], Parts]:
    return lambda a, b: (f"{a[0]} {sign} {b[0]}", f"{a[1] or 0} {sign} {b[1] or 0}")


def _quotient(a: Parts, b: Parts) -> Parts:
    if not b[1]:
        return f"{a[0]} / {b[0]}", f"{a[1]} / {b[0]}"
    size = f"(square({b[0]}) + square({b[1]}))"
    real, imaginary = _product((a[0], a[1] or "0"), (b[0], f"(-{b[1]})"))
    return f"({real}) / {size}", f"({imaginary}) / {size}"


def _products(call: AtenCall) -> TensorValue:
    """Multiply matrices by parts; those that are real have no imaginary part."""
    first, second = call.arguments["self"], call.arguments["mat2" if call.has("mat2") else "other"]
    pairs = [
        [call.as_tensor(_part(call, each, number)) for number in range(1 + is_complex(each))]
        for each in (first, second)
    ]
    found = [
        [multiplied(call, left, right, f"product{x}{y}") for y, right in enumerate(pairs[1])]
        for x, left in enumerate(pairs[0])
    ]
    shape = found[0][0].shape
    if len(pairs[0]) == len(pairs[1]):
        real = elementwise(
            call, "{0} - {1}", found[0][0], found[1][1], shape=shape, kind="float", step="real"
        )
        imaginary = elementwise(
            call, "{0} + {1}", found[0][1], found[1][0], shape=shape, kind="float", step="imag"
        )
        return _joined(call, real, imaginary)
    return _joined(call, found[0][0], found[1][0] if len(pairs[0]) > 1 else found[0][1])


def _reciprocal(call: AtenCall) -> TensorValue:
    arguments = {"self": 1, "other": call.arguments["self"]}
    return _arithmetic(_quotient)(dataclasses.replace(call, arguments=arguments))


def _exponential(call: AtenCall) -> TensorValue:
    held = _as_real(call)
    names = variables(held.rank)
    real, imaginary = (at("data", [*names[:-1], part]) for part in ("0", "1"))
    text = f"exp({real}) * where({names[-1]} == 0, cos({imaginary}), sin({imaginary}))"
    return call.described({"data": held}, f"lambda {bound(names, held.shape)}: {text}", kind="complex")


def _conjugate(call: AtenCall) -> TensorValue:
    held = _as_real(call)
    names = variables(held.rank)
    element = at("data", names)
    text = f"lambda {bound(names, held.shape)}: where({names[-1]} == 0, {element}, -{element})"
    return call.described({"data": held}, text, kind="complex")


def _size(call: AtenCall) -> TensorValue:
    """Return absolute values. That of zero has a gradient of zero."""
    held = _as_real(call)
    names = variables(held.rank - 1)
    total = f"(square({at('data', [*names, '0'])}) + square({at('data', [*names, '1'])}))"
    body = f"where({total} == 0, 0, sqrt(where({total} == 0, 1, {total})))"
    return call.described({"data": held}, f"lambda {bound(names, held.shape[:-1])}: {body}")


def _transform(call: AtenCall) -> TensorValue:
    """Transform one dimension after the other: real numbers in the last one first, or last of all."""
    *axes, last = (axis % len(call.result.shape) for axis in call.get("dim"))
    scale, kind = call.get("normalization"), call.target.rpartition("_")[2]
    data = call.tensor("self")
    if kind == "r2c":
        data = _along(call, data, last, scale, "_fft_r2c", call.get("onesided"))
        kind, steps = "c2c", axes
        direction = True
    else:
        steps, direction = ([*axes, last] if kind == "c2c" else axes), call.get("forward", False)
    for axis in steps:
        data = _along(call, data, axis, scale, "_fft_c2c", direction)
    return _along(call, data, last, scale, "_fft_c2r", call.get("last_dim_size")) if kind == "c2r" else data


def _along(
    call: AtenCall, data: TensorValue, axis: int, scale: int, transform: str, setting: Any
) -> TensorValue:
    """Transform one dimension by a matrix: what PyTorch makes of the identity."""
    torch = installed()
    extent = data.shape[axis]
    inner, names = ["t"], variables(data.rank)
    units = torch.eye(extent)
    if data.kind == "complex":
        inner.append("q")
        units = torch.view_as_complex(torch.eye(2 * extent).reshape(2 * extent, extent, 2))
    found = getattr(torch.ops.aten, transform).default(units, [1], scale, setting)
    outer, count = ["k"], found.shape[1]
    if found.is_complex():
        outer.append("p")
        found = torch.view_as_real(found)
    weights = call.constant(found.reshape(extent, *[2] * (len(inner) - 1), *found.shape[1:]).contiguous())
    read = at("data", [*names[:axis], "t", *names[axis + 1 :], *inner[1:]])
    binders = [*names[:axis], "k", *names[axis + 1 :], *outer[1:]]
    product = f"Sum(lambda {', '.join(inner)}: {read} * {at('weights', [*inner, *outer])})"
    return call.described(
        {"data": data, "weights": weights},
        f"lambda {bound(binders)}: {product}",
        shape=(*data.shape[:axis], count, *data.shape[axis + 1 :]),
        kind="complex" if len(outer) > 1 else "float",
        step=f"axis{axis}",
    )


CONVERTERS: Mapping[str, Converter] = {
    "view_as_complex": _as_complex,
    "view_as_real": _as_real,
    "real": _one_part(0),
    "imag": _one_part(1),
    **dict.fromkeys(("_to_copy", "to", "resolve_conj"), _cast),
    "complex": _from_parts,
    "polar": _from_angle,
    "mul": _arithmetic(_product),
    "add": _arithmetic(_total("+")),
    "sub": _arithmetic(_total("-")),
    "rsub": _arithmetic(lambda a, b: _total("-")(b, a)),
    "div": _arithmetic(_quotient),
    "reciprocal": _reciprocal,
    "exp": _exponential,
    **dict.fromkeys(("_conj", "conj", "conj_physical", "_conj_physical"), _conjugate),
    **dict.fromkeys(("mm", "bmm", "matmul"), _products),
    "abs": _size,
    **dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), _transform),
}
"""By the name of an ATen operator, the function that describes a call of it with complex numbers."""
