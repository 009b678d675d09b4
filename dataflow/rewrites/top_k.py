"""Exchange the largest elements of each worker's gradient, and keep the others for the next iteration.

Workers have M[r], of n elements in row-major order, of which k are exchanged.

    M[r]      = error[r] + local[r]
    key[r]    = floor(2^30 * abs(M[r]) / max(abs(M[r])))
    taken[r]  = the k elements with the largest keys; of equal keys the first ones
    index[r]  = the places of those, in ascending order      exchanged: k
    value[r]  = the elements there                           exchanged: k
    error[r]  = M[r] without the elements that were taken    a state of each worker, zero at first
    gradient  = the sum over r of value[r] at index[r]       by everyone who holds the gradient

The k-th largest key is found by its three digits of ten bits, the highest first. For each digit it is counted
how many of the elements that agree in all higher digits have each value. Places are counted within blocks
of about the square root of n, and over blocks.
"""

from __future__ import annotations

from math import ceil, isqrt, prod

from ...analyzer.indices.region import Shape
from ...errors import GraphError
from ..element_types import MIXED
from .casts import with_error
from .edit import GraphEdit
from .encoders import TopK
from .stages import stage_of, stages_of

MOST = 1 << 24
"""The most elements of a gradient: their places are exact in float32."""

DIGITS = 3
BASE = 1 << 10
"""The values of a digit; the highest digit of the largest element alone is `BASE`."""

ABOVE = 1 << 20
"""Stands for the digits of an element whose key is larger than the one that is searched; -1 if smaller."""

START = f"""
def start(data):
    largest = lambda replica: Max(lambda c, b: abs(data[replica, c, b]))
    return lambda replica, c, b: where(
        largest[replica] > 0, abs(data[replica, c, b]) / largest[replica] * {BASE}, 0)
"""
ALL = "def wanted(data, *, k):\n    return lambda replica=data.shape[0]: k"
CUT = f"""
def cut(digits, wanted):
    count = lambda replica, v={BASE + 1}: Sum(lambda c, b: where(floor(digits[replica, c, b]) == v, 1, 0))
    above = lambda replica, v={BASE + 1}: Sum(lambda u: where(u > v, count[replica, u], 0))
    return lambda replica: Sum(lambda v: v * (
        above[replica, v] < wanted[replica] and above[replica, v] + count[replica, v] >= wanted[replica]))
"""
WANTED = f"""
def still_wanted(digits, wanted, cut):
    return lambda replica: wanted[replica] - Sum(lambda c, b: where(
        floor(digits[replica, c, b]) > cut[replica] and digits[replica, c, b] < {ABOVE}, 1, 0))
"""
NARROW = f"""
def narrowed(digits, cut):
    return lambda replica, c, b: where(
        floor(digits[replica, c, b]) == cut[replica],
        (digits[replica, c, b] - floor(digits[replica, c, b])) * {BASE},
        where(floor(digits[replica, c, b]) > cut[replica], {ABOVE}, -1))
"""
EQUAL = f"""
def equal(digits):
    return lambda replica, c, b: digits[replica, c, b] >= 0 and digits[replica, c, b] < {ABOVE}
"""
PLACE = """
def place(flags):
    size = lambda replica, c: Sum(lambda b: flags[replica, c, b])
    before = lambda replica, c=flags.shape[1]: Sum(lambda d: where(d < c, size[replica, d], 0))
    within = lambda replica, c, b=flags.shape[2]: Sum(lambda a: where(a <= b, flags[replica, c, a], 0))
    return lambda replica, c, b: before[replica, c] + within[replica, c, b]
"""
TAKEN = f"""
def taken(digits, equal, place, wanted):
    return lambda replica, c, b: digits[replica, c, b] == {ABOVE} or (
        equal[replica, c, b] > 0 and place[replica, c, b] <= wanted[replica])
"""
SLOT = """
def slot(taken, place):
    return lambda replica, c, b: where(taken[replica, c, b] > 0, place[replica, c, b] - 1, -1)
"""
ORDER = """
def order(data):
    return lambda replica=data.shape[0], c=data.shape[1], b=data.shape[2]: c * data.shape[2] + b
"""
CHOSEN = """
def chosen(slot, data, *, k):
    return lambda replica, s=k: Sum(lambda c, b: where(slot[replica, c, b] == s, data[replica, c, b], 0))
"""


def exchange_largest(edit: GraphEdit, local: int, encoder: TopK, variable: str, name: str) -> int:
    """Return the gradient, with this name, that is the sum of the elements that workers exchange.

    Raises GraphError for a gradient with fewer elements, with too many, or in 16 bits.
    """
    tensor = edit.tensors[local]
    shape, dtype = tensor.shape[1:], tensor.dtype
    k = _count(encoder, shape, dtype, variable)
    corrected, error = with_error(edit, local, variable, name)

    def add(made: str, text: str, given: dict[str, int], **attributes: int) -> int:
        """Add the operations of a description, and return the tensor of that name that they make."""
        stages = stages_of(
            text, {each: edit.tensors[index].shape for each, index in given.items()}, **attributes
        )
        names = {part: f"{part}({made})" for stage in stages for part in stage.produces}
        return edit.apply_all({**names, "output_0": made}, stages, given, dtype=dtype)

    block = isqrt(prod(shape) - 1) + 1
    flat = add(f"flat({name})", _flat_text(shape, block), {"data": corrected})
    digits = add(f"digits({name})", START, {"data": flat})
    wanted = add(f"wanted({name})", ALL, {"data": flat}, k=k)
    for digit in range(DIGITS):
        cut = add(f"cut_{digit}({name})", CUT, {"digits": digits, "wanted": wanted})
        given = {"digits": digits, "wanted": wanted, "cut": cut}
        wanted = add(f"wanted_{digit}({name})", WANTED, given)
        digits = add(f"digits_{digit}({name})", NARROW, {"digits": digits, "cut": cut})
    equal = add(f"equal({name})", EQUAL, {"digits": digits})
    place = add(f"place(equal({name}))", PLACE, {"flags": equal})
    given = {"digits": digits, "equal": equal, "place": place, "wanted": wanted}
    taken = add(f"taken({name})", TAKEN, given)
    place = add(f"place(taken({name}))", PLACE, {"flags": taken})
    slot = add(f"slot({name})", SLOT, {"taken": taken, "place": place})
    given = {"data": corrected, "taken": taken}
    shapes = {each: edit.tensors[index].shape for each, index in given.items()}
    edit.overwrite(error, stage_of(_kept_text(shape, block), shapes), given)
    order = add(f"order({name})", ORDER, {"data": flat})
    index = add(f"index({name})", CHOSEN, {"slot": slot, "data": order}, k=k)
    value = add(f"value({name})", CHOSEN, {"slot": slot, "data": flat}, k=k)
    return add(name, _sum_text(shape), {"index": index, "value": value})


def _count(encoder: TopK, shape: Shape, dtype: str, variable: str) -> int:
    """Return how many elements of a gradient are exchanged."""
    size = prod(shape)
    if dtype in MIXED:
        raise GraphError(
            f"the gradient of {variable!r} is in {dtype}, in which places of elements are not exact; "
            "store the graph in float32"
        )
    if size > MOST:
        raise GraphError(
            f"the gradient of {variable!r} has {size:,} elements, but places are exact up to {MOST:,}; cut "
            "the variable, or choose another encoder"
        )
    k = encoder.elements if isinstance(encoder.elements, int) else ceil(encoder.elements * size)
    if k > size:
        raise GraphError(
            f"the gradient of {variable!r} has {size:,} elements, so {k:,} of them cannot be exchanged; "
            "choose a share, or fewer"
        )
    return k


def _names(shape: Shape) -> list[str]:
    return [f"i{axis}" for axis in range(len(shape))]


def _steps(shape: Shape) -> list[int]:
    """Return by how much the place in row-major order grows along each dimension."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _flat_text(shape: Shape, block: int) -> str:
    """Return the description of all elements in row-major order, in blocks of which the last has zeros."""
    place = f"(c * {block} + b)"
    reads = [
        f"{place} // {step}" + (f" % {extent}" if axis else "")
        for axis, (step, extent) in enumerate(zip(_steps(shape), shape, strict=True))
    ]
    blocks = -(-prod(shape) // block)
    return (
        "def flat(data):\n"
        f"    return lambda replica, c={blocks}, b={block}: pad(data[{', '.join(['replica', *reads])}], 0)\n"
    )


def _kept_text(shape: Shape, block: int) -> str:
    """Return the description of the elements that were not taken."""
    place = " + ".join(f"{name} * {step}" for name, step in zip(_names(shape), _steps(shape), strict=True))
    names = ", ".join(["replica", *_names(shape)])
    return (
        "def kept(data, taken):\n"
        f"    return lambda {names}: where(\n"
        f"        taken[replica, ({place}) // {block}, ({place}) % {block}] > 0, 0, data[{names}])\n"
    )


def _sum_text(shape: Shape) -> str:
    """Return the description of the sum of values at their places."""
    binders = ", ".join(f"{name}={extent}" for name, extent in zip(_names(shape), shape, strict=True))
    equal: list[str] = []
    for name, step, extent in zip(_names(shape), _steps(shape), shape, strict=True):
        around = f" - floor(index[replica, s] / {step * extent}) * {extent}" if equal else ""
        equal.append(f"floor(index[replica, s] / {step}){around} == {name}")
    return (
        "def sum_of_values(index, value):\n"
        f"    return lambda {binders}: Sum(lambda replica, s: where(\n"
        f"        {' and '.join(equal)}, value[replica, s], 0))\n"
    )
