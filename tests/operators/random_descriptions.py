"""Random descriptions with automatic stages, scans, calls, clamped indices, starred variables and choices.

The text is a random expression. Some of its elements become calls: of a scan, of an operator of the library,
or of a product of two tensors of any rank. Others get a neighbour added, with a clamped index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import tofu
from tests.analyzer.random_expressions import EXTENTS, TENSORS, random_expression
from tofu.errors import ShapeError
from tofu.operators.operator import Operator

SCAN = "def scan(x):\n    return lambda t=x.shape[0], *j: Sum(lambda s: where(s <= t, x[s, *j], 0))\n"
PRODUCT = "def product(x, y):\n    return lambda *i, *j: Sum(lambda r: x[*i, r] * y[r, *j])\n"
PRODUCTS = {"x": ("z", "y"), "b": ("x", "c")}
"""By tensor, two others whose product has its shape."""
KINDS = ("scan", "scan", "product", "library", "clamp", "", "", "", "", "")


@dataclass(frozen=True)
class Drawn:
    """A random description whose tensors agree."""

    operator: Operator
    shapes: Mapping[str, tuple[int, ...]]
    attributes: Mapping[str, str]
    features: frozenset[str]
    """The words `scan`, `product`, `library`, `clamp`, `choice` and `stage` that apply."""


def random_description(random: Random) -> Drawn:
    """Draw an operator until its tensors agree, which some are drawn not to do."""
    while True:
        drawn = _drawn(random)
        with suppress(ShapeError):
            drawn.operator.bind(drawn.shapes, **drawn.attributes)
            return drawn


def _drawn(random: Random) -> Drawn:
    text, shapes = random_expression(random)
    drawn = set(shapes)
    used: set[str] = set()

    def call(match: re.Match[str]) -> str:
        element, tensor, indices = match[0], match[1], match[2]
        kind = random.choice(KINDS)
        padded = match.string[: match.start()].endswith("pad(")
        if tensor not in drawn or not kind or (padded and kind in ("product", "clamp")):
            return element
        if kind == "product" and tensor not in PRODUCTS:
            return element
        used.add(kind)
        match kind:
            case "scan":
                return f"scan({tensor})[{indices}]"
            case "library":
                slices = ", ".join(":" * len(shapes[tensor]))
                return f"{random.choice(('softmax', 'silu'))}({tensor}[{slices}])[{indices}]"
            case "clamp":
                neighbour = re.sub(r"\b([a-z])\b", r"maximum(\1 - 1, 0)", indices)
                return f"({element} + {tensor}[{neighbour}])"
            case _:
                for factor in PRODUCTS[tensor]:
                    shapes.setdefault(factor, tuple(EXTENTS[name] for name in TENSORS[factor]))
                return f"({element} + product({', '.join(PRODUCTS[tensor])})[{indices}])"

    text = re.sub(r"\b(\w)\[([^\[\]]*)\]", call, text)
    text = re.sub(r"def f\(.*\)", f"def f({', '.join(shapes)})", text)
    attributes = {}
    if random.random() < 0.4:
        used.add("choice")
        text = _with_choice(text)
        attributes["mode"] = random.choice(("one", "two"))
    operator = tofu.parse(SCAN + PRODUCT + text)
    assert operator.written is not None
    stages = {stage.name for stage in operator.written.stages}
    if any(name.startswith(("sum_", "max_", "min_", "prod_")) for name in stages):
        used.add("stage")
    return Drawn(operator, shapes, attributes, frozenset(used))


def _with_choice(text: str) -> str:
    """Return the text with another result if `mode` is "two"."""
    head, _, body = text.rpartition("    return ")
    variables, _, value = body.partition(": ")
    other = value.replace("Sum(", "Max(").replace("tanh(", "sqrt(")
    chosen = f'{variables}: ({value}) if mode == "one" else ({other}) if mode == "two" else 0'
    return f"{head.replace('):', ', *, mode=' + chr(34) + 'one' + chr(34) + '):', 1)}    return {chosen}"
