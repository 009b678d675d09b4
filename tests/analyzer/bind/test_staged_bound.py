"""Descriptions with stages seen as one operator."""

from __future__ import annotations

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.bind.staged_bound import StagedBound, bind
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import ShapeError

SOFTMAX = """
def softmax(x):
    top = lambda b: Max(lambda c: x[b, c])
    exps = lambda b, c: exp(x[b, c] - top[b])
    total = lambda b: Sum(lambda c: exps[b, c])
    return lambda b, c: exps[b, c] / total[b]
"""
BLUR_TWICE = """
def blur(a, b):
    once = lambda i: Sum(lambda d=3: a[i + d])
    return lambda i=once.shape[0] - 1: Sum(lambda k: (once[i] - once[i + 1]) * b[k])
"""


def test_without_stages_it_is_a_plain_bound():
    assert type(bind(tdl.parse("def f(a):\n    return lambda i: a[i]"), {"a": (3,)})) is Bound


def test_softmax():
    bound = bind(tdl.parse(SOFTMAX), {"x": (6, 5)})
    assert isinstance(bound, StagedBound)
    assert bound.output_shapes == ((6, 5),)
    assert bound.extents == {"b": 6, "c": 5}
    assert bound.reads == {"x"}
    assert bound.tight
    assert not bound.elementwise
    rows, columns = bound.strategies
    assert rows.input_regions(worker=1, workers=3) == {"x": ((2, 4), (0, 5))}
    assert columns.input_regions(worker=1, workers=2) == {"x": ((0, 6), (0, 5))}
    assert columns.output_regions(worker=1, workers=2) == (((0, 6), (2, 5)),)
    x = np.random.default_rng(0).normal(size=(6, 5))
    (result,) = bound.interpret({"x": x})
    np.testing.assert_allclose(result, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))


def test_regions_are_composed_through_stages():
    bound = bind(tdl.parse(BLUR_TWICE), {"a": (12,), "b": (4,)})
    assert bound.output_shapes == ((9,),)
    assert [(s.variable, s.kind) for s in bound.strategies] == [("i", "concat"), ("k", "reduce")]
    along_i, along_k = bound.strategies
    assert along_i.input_regions(worker=0, workers=3) == {"a": ((0, 6),), "b": ((0, 4),)}
    assert along_i.input_regions(worker=2, workers=3) == {"a": ((6, 12),), "b": ((0, 4),)}
    assert along_k.input_regions(worker=1, workers=2) == {"a": ((0, 12),), "b": ((2, 4),)}
    assert bound.kind("k") == "reduce"
    assert bound.reducer("k") == "Sum"


@pytest.mark.parametrize("workers", range(2, 10))
def test_composed_regions_suffice(workers):
    bound = bind(tdl.parse(BLUR_TWICE), {"a": (12,), "b": (4,)})
    tensors = {"a": np.arange(12) ** 2, "b": np.arange(4)}
    (whole,) = bound.interpret(tensors)
    for worker in range(workers):
        regions = bound.strategies[0].input_regions(worker=worker, workers=workers)
        ((lower, upper),) = bound.strategies[0].output_regions(worker=worker, workers=workers)[0]
        spoiled = {name: np.full_like(tensor, 10**6) for name, tensor in tensors.items()}
        for name, ((start, stop),) in regions.items():
            spoiled[name][start:stop] = tensors[name][start:stop]
        np.testing.assert_array_equal(bound.interpret(spoiled)[0][lower:upper], whole[lower:upper])


def test_a_stage_read_in_part_is_computed_in_part():
    text = "def f(a):\n    half = lambda i: a[i] * 0.5\n    return lambda i=3: half[i + 2]"
    bound = bind(tdl.parse(text), {"a": (9,)})
    assert bound.input_regions(bound.full_box[None])["a"].tolist() == [[[2, 5]]]
    assert bound.output_shapes == ((3,),)


def test_an_empty_box_reads_nothing():
    bound = bind(tdl.parse(BLUR_TWICE), {"a": (12,), "b": (4,)})
    boxes = bound.full_box[None].copy()
    boxes[0, 0] = (5, 5)
    assert not bound.input_regions(boxes)["a"].any()


def test_stages_of_equal_variables_may_have_different_extents():
    text = "def f(a, b):\n    twice = lambda i: 2 * a[i]\n    return lambda i: b[i] + twice[0]"
    bound = bind(tdl.parse(text), {"a": (3,), "b": (5,)})
    assert bound.extents == {"i": 5}
    assert bound.interpret({"a": np.arange(3) + 1, "b": np.arange(5)})[0].tolist() == [2, 3, 4, 5, 6]


def test_errors_name_the_stage():
    with pytest.raises(ShapeError, match="softmax_top: x has shape"):
        bind(tdl.parse(SOFTMAX), {"x": (6,)})
    with pytest.raises(ShapeError, match="it does not take a tensor 'top', only x"):
        bind(tdl.parse(SOFTMAX), {"x": (6, 5), "top": (6,)})


def test_what_a_staged_bound_says_of_itself():
    bound = bind(tdl.parse(BLUR_TWICE), {"a": (12,), "b": (4,)})
    assert repr(bound) == "<blur bound to a=(12,), b=(4,), 2 stages>"
    assert bound.variables == ("i", "k")
    assert list(bound.extents.items()) == [("i", 9), ("k", 4), ("d", 3)]
    assert list(bound.stages) == ["once"]
    assert bound.last.description.name == "blur"
    assert bound.full_box.tolist() == [[0, 9], [0, 4]]
    assert bound.refusals == ()
    assert bound.kind("d") is None
    assert bound.reducer("i") is None
    assert bound.elements_of(bound.full_box[None]).dtype == np.int64
    assert bound.tight
    assert bound.looseness == ()
    assert bound.split(("i",), (3,))[:, 0].tolist() == [[0, 3], [3, 6], [6, 9]]
    assert [boxes.tolist() for boxes in bound.output_regions(bound.full_box[None])] == [[[[0, 9]]]]


@pytest.mark.parametrize(
    ("first", "second", "tight", "loose"),
    [
        ("lambda i: a[i]", "lambda i: h[i]", True, []),
        ("lambda i: a[i]", "lambda i=3: h[i]", False, []),
        ("lambda i=6: a[2 * i]", "lambda i: h[i]", False, ["a"]),
        ("lambda i: a[i]", "lambda i=6: h[2 * i]", False, ["h"]),
        ("lambda i=4: a[i]", "lambda i=4: h[i] + a[i + 8]", False, []),
        ("lambda i=4: a[i]", "lambda i=4: h[i] + a[i]", True, []),
    ],
)
def test_tightness_through_stages(first, second, tight, loose):
    bound = bind(tdl.parse(f"def f(a):\n    h = {first}\n    return {second}"), {"a": (12,)})
    assert bound.tight is tight
    assert [looseness.tensor for looseness in bound.looseness] == loose


def test_tensors_read_by_several_stages_and_by_none():
    text = """
def f(a, b, c):
    h = lambda i: a[i] * 2
    return lambda i=c.shape[0]: h[i] + a[i + 2] + b[0]
"""
    bound = bind(tdl.parse(text), {"a": (9,), "b": (5,), "c": (4,)})
    assert bound.reads == {"a", "b"}
    boxes = bound.split(("i",), (2,))
    regions = {name: boxes.tolist() for name, boxes in bound.input_regions(boxes).items()}
    assert regions == {"a": [[[0, 4]], [[2, 6]]], "b": [[[0, 1]]] * 2, "c": [[[0, 0]]] * 2}
    assert {part.dtype for part in bound.input_regions(boxes).values()} == {np.dtype(np.int64)}
    assert bound.elementwise is False


def test_elementwise_stages_are_elementwise_together():
    text = "def f(a, b):\n    h = lambda i: a[i] * 2\n    return lambda i: h[i] + b[i]"
    assert bind(tdl.parse(text), {"a": (5,), "b": (5,)}).elementwise


@pytest.mark.parametrize(
    "last",
    ["a[i] if 2 > n else stage[()]", "stage[()] if n > 2 else a[i]", "a[i] * (1 if n == 1 else stage[()])"],
)
def test_a_stage_that_attributes_switch_off_reads_nothing(last: str):
    text = f"def f(a, b, *, n=1):\n    stage = lambda: Sum(lambda k: b[k])\n    return lambda i: {last}"
    bound = bind(specialize(tdl.parse(text), {"n": 1}, {"a": 1, "b": 1}), {"a": (4,), "b": (3,)})
    assert isinstance(bound, StagedBound)
    (strategy,) = bound.strategies
    assert strategy.input_regions(worker=1, workers=2) == {"a": ((2, 4),), "b": ((0, 0),)}
    assert bound.flops_of(bound.full_box[None]) is not None
    assert bound.elements_of(bound.full_box[None]).tolist() == [8]
    assert bound.tight


def test_opaque_functions_of_a_stage_and_of_the_last_one():
    text = """
def f(x):
    first = Opaque()
    second = Opaque()
    once = lambda b, i: first(x[b, :])[i]
    return lambda b, i: second(once[b, :])[i]
"""
    bound = bind(tdl.parse(text), {"x": (2, 3)})
    x = np.arange(6.0).reshape(2, 3)
    (result,) = bound.interpret({"x": x}, {"first": np.cumsum, "second": np.flip})
    assert (result == np.cumsum(x, axis=1)[:, ::-1]).all()


def test_counts_of_boxes_are_integers():
    bound = bind(tdl.parse(SOFTMAX), {"x": (6, 5)})
    boxes = bound.split(("b",), (3,))
    for counts in (bound.flops_of(boxes), bound.elements_of(boxes)):
        assert counts.dtype == np.int64
        assert counts.shape == (3,)
