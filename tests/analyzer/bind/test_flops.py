"""Counted operations against running the description as Python on numbers that count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.bind.analysis import analyze
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.bind.flops import count_operations
from tofu.analyzer.bind.staged_bound import bind as bind_staged
from tofu.errors import ShapeError
from tofu.tdl import ast

from ..random_operators import random_case

SHAPES = {"a": (4, 3), "b": (3, 5)}


class Counted:
    """A tensor's element, or what was computed from some: every operation on it is counted."""

    operations = 0

    @classmethod
    def operate(cls, *_: object) -> Counted:
        cls.operations += 1
        return cls()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = operate
    __floordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __lt__ = __gt__ = operate
    __le__ = __ge__ = operate


class Tensor:
    """A tensor whose elements are all alike."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __getitem__(self, indices: object) -> Counted:
        return Counted()


def run(bound: Bound) -> int:
    """The number of operations of a run over the whole iteration space."""

    def settings(function: Callable[..., Any]) -> Iterator[dict[str, int]]:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        for values in product(*(range(bound.extents[name]) for name in names)):
            yield dict(zip(names, values, strict=True))

    def reduce(body: Callable[..., Any]) -> Counted:
        total = Counted()
        for at in settings(body):
            total = total.operate(body(**at))
        return total

    def choose(of_numbers: Callable[..., int]) -> Callable[..., Any]:
        """A function that is counted, except inside an index."""

        def chosen(*values: Any) -> Any:
            counted = any(isinstance(value, Counted) for value in values)
            return Counted.operate() if counted else of_numbers(*values)

        return chosen

    names = dict.fromkeys(("Sum", "Max", "Min", "Prod"), reduce)
    names |= dict.fromkeys(("exp", "where"), Counted.operate)
    names |= {"maximum": choose(max), "minimum": choose(min)}
    names |= {"pad": lambda element, value: element}
    exec(bound.description.source, names)
    outputs = names[bound.description.name](*(Tensor(shape) for shape in bound.shapes.values()))
    Counted.operations = 0
    for output in outputs if isinstance(outputs, tuple) else (outputs,):
        for at in settings(output):
            output(**at)
    return Counted.operations


@pytest.mark.parametrize(
    ("output", "formula"),
    [
        ("lambda i, j: Sum(lambda k: a[i, k] * b[k, j])", "2*i*j*k"),
        ("lambda i, k: a[i, k]", "0"),
        ("lambda i, k: -a[i, k] + 2 * 3", "2*i*k"),
        ("lambda i, k: exp(maximum(a[i, k], 0)) / a.shape[0]", "3*i*k"),
        ("lambda i, k: where(a[i, k] > 0, a[i, k] ** 2, 1 / a[i, k])", "4*i*k"),
        ("lambda i, k: where(k == 2, a[i, k], 0)", "i*k"),
        ("lambda i=6, k=2: (i - k) * 2 + i % 3", "0"),
        ("lambda i, k: a[i, k] * (k - i)", "i*k"),
        ("lambda i: Max(lambda k: a[i, k]) - Sum(lambda k: a[i, k] * a[i, k])", "3*i*k + i"),
        ("lambda i: Sum(lambda k: a[i, k] * Prod(lambda j: b[k, j]))", "i*j*k + 2*i*k"),
        ("lambda i=4: Sum(lambda k=3: k)", "i*k"),
        ("lambda i, k: a[i, k] * b[(i * 2 + k) % 3, 2 * k // 2]", "i*k"),
        ("lambda i, k: pad(a[i - 1, k], a[i, k] * 2) + 1", "2*i*k"),
        ("(lambda i, k: a[i, k] + 1, lambda i: Sum(lambda k: a[i, k]))", "2*i*k"),
        ("lambda: Sum(lambda i, k: a[i, k])", "i*k"),
    ],
)
def test_operations(bind: Callable[..., Bound], output: str, formula: str) -> None:
    shapes = {name: shape for name, shape in SHAPES.items() if f"{name}[" in output or f"{name}." in output}
    bound = bind(f"def f({', '.join(shapes)}):\n    return {output}", shapes)
    assert str(bound.analysis.flops) == formula
    assert bound.flops == run(bound)
    extents = {name: extent for name, extent in bound.extents.items() if name in formula}
    assert eval(formula, {}, extents) == bound.flops


def test_logic_and_comparisons_count(bind: Callable[..., Bound]) -> None:
    text = "def f(a):\n    return lambda i: where(not a[i] > 0 and a[i] != 2, 1, 0)"
    assert str(bind(text, {"a": (3,)}).analysis.flops) == "5*i"


def test_a_reducer_of_ones_own_counts_what_it_computes(bind: Callable[..., Bound]) -> None:
    text = """
def lse(a):
    add = Reducer(lambda u, v: maximum(u, v) + log1p(exp(-abs(u - v))), -inf)
    return lambda i: add(lambda k: a[i, k])
"""
    assert str(bind(text, {"a": (3, 4)}).analysis.flops) == "7*i*k"


def test_random_operators() -> None:
    random = Random(3)
    for _ in range(60):
        case = random_case(random, 4)
        bound = analyze(tdl.parse(case.text)).bind(case.shapes)
        assert bound.flops == run(bound), case.text
        touched = sum(int(np.prod(shape)) for shape in bound.output_shapes)
        for tensor in case.shapes:
            read = case.elements_read(tensor, {name: (0, extent) for name, extent in case.extents.items()})
            if len(read) and not bound.looseness:
                touched += int((read.max(axis=0) + 1 - read.min(axis=0)).prod())
        if not bound.looseness:
            assert bound.bytes_touched == 4 * touched, case.text


def test_a_sum_deeper_than_the_stack() -> None:
    description = tdl.parse("def f(a):\n    return lambda i: a[i]")
    (output,) = description.outputs
    body = output.body
    for _ in range(3000):
        body = ast.Binary("+", body, output.body)
    deep = replace(description, outputs=(replace(output, body=body),))
    count = count_operations(deep, ("i",))
    assert count is not None
    assert count.at((5,)) == 5 * 3000


def test_boxes(bind: Callable[..., Bound]) -> None:
    bound = bind("def f(a, b):\n    return lambda i, j: Sum(lambda k: a[i, k] * b[k, j])", SHAPES)
    boxes = bound.split(("j",), (2,))
    assert bound.flops_of(boxes).tolist() == [2 * 4 * 2 * 3, 2 * 4 * 3 * 3]
    assert bound.elements_of(boxes).tolist() == [12 + 3 * 2 + 4 * 2, 12 + 3 * 3 + 4 * 3]
    assert bound.bytes_touched == 4 * (12 + 15 + 20)
    empty = bound.full_box[None].copy()
    empty[0, 2] = (3, 1)
    assert bound.flops_of(empty).tolist() == [0]
    assert bound.elements_of(empty).tolist() == [20]
    assert bound.flops_of(boxes[:0]).shape == bound.elements_of(boxes[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("output", "formula", "touched"),
    [
        ("lambda i: Sum(lambda k=3: a[i + k, 0])", "2*i + k - 1", 2 * 10 + 2),
        ("lambda i, j=4: a[i, 0] * j", "i*j + i", 60),
        ("lambda i: a[a[i, 0], 1] + a[i, 0]", "3*i", 36),
        ("lambda i: a[i, 0] + a[i, 3]", "5*i", 60),
        (
            "lambda i=12: pad(a[i + 1], 0) + pad(a[i - 1], 0)",
            "i + Min(a.shape[0], Max(i - 1, i + 1))",
            24,
        ),
        ("lambda i=20: pad(a[i + 1], 0)", "i + Min(a.shape[0], i + 1) - 1", 31),
        ("lambda i=20: pad(a[i - 1], 0)", "i + Min(a.shape[0], i - 1)", 32),
        ("lambda i=a.shape[1], j=2: i * j", "i*j", 10),
        ("lambda i: a[a.shape[0] - 1 - i, 2]", "2*i", 24),
    ],
)
def test_elements(bind: Callable[..., Bound], output: str, formula: str, touched: int) -> None:
    bound = bind(f"def f(a):\n    return {output}", {"a": (12,) if "pad" in output else (12, 5)})
    assert str(bound.analysis.elements_touched) == formula
    assert bound.elements_of(bound.full_box[None]).tolist() == [touched]
    assert bound.bytes_touched == 4 * touched


STAGED = """
def f(a):
    half = lambda i: a[i] * 0.5 + 1
    return lambda i=3: Sum(lambda k=2: half[i + k + 2])
"""


def test_stages_are_summed() -> None:
    bound = bind_staged(tdl.parse(STAGED), {"a": (9,)})
    assert bound.flops == 2 * 9 + 3 * 2
    assert bound.bytes_touched == 4 * (9 + 9 + 4 + 3)
    boxes = bound.split(("i",), (3,))
    assert bound.flops_of(boxes).tolist() == [2 * 2 + 2] * 3
    assert bound.elements_of(boxes).tolist() == [2 + 2 + 2 + 1] * 3


def test_an_opaque_function_hides_its_operations() -> None:
    text = "def f(m):\n    g = Opaque()\n    return lambda b, i, j: g(m[b, :, :])[i, j] + 1"
    bound = bind_staged(tdl.parse(text), {"m": (4, 3, 3)})
    assert isinstance(bound, Bound)
    assert bound.analysis.flops is None
    assert bound.flops is None
    assert bound.flops_of(bound.full_box[None]) is None
    assert bound.bytes_touched == 4 * 2 * 36
    staged = text.replace("return", "h =") + "\n    return lambda b, i, j: 2 * h[b, i, j]"
    through = bind_staged(tdl.parse(staged), {"m": (4, 3, 3)})
    assert through.flops is None
    assert through.flops_of(through.full_box[None]) is None


def test_more_operations_than_can_be_counted_in_bulk(bind: Callable[..., Bound]) -> None:
    bound = bind("def f(a):\n    return lambda i: Sum(lambda j, k=2**20: a[i, j] * k)", {"a": (2**20, 2**22)})
    assert bound.flops == 2**63
    with pytest.raises(ShapeError, match=r"f: 9223372036854775808 operations exceed 2\*\*62"):
        bound.flops_of(bound.full_box[None])


def test_boxes_that_share_the_output_share_its_operations(bind):
    text = "def f(a):\n    return lambda i, k: -a[i, k] + Sum(lambda j: exp(a[i, j]))"
    bound = bind(text, {"a": (6, 5)})
    assert bound.flops_of(bound.full_box[None]).tolist() == [bound.flops]
    assert bound.flops_of(bound.split(("i",), (3,))).tolist() == [bound.flops // 3] * 3
