"""Every construct of the language, from text to results: parse, bind, split, interpret, compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tofu
from tofu import tdl
from tofu.analyzer.indices.region import to_region
from tofu.operators.operator import Operator

from .conftest import kernel_call

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Construct:
    """A text, shapes for it, what NumPy says the result is, and the strategies it must have.

    `strategies` maps a variable to its kind, with a `+` where the kernel must know the offset. `integers`
    bounds the values of tensors that hold indices.
    """

    text: str
    shapes: Mapping[str, Shape]
    expected: Callable[..., Array | tuple[Array, ...]]
    strategies: Mapping[str, str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)
    tolerance: float = 0


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def normalised(x: Array, gamma: Array) -> Array:
    mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
    return (x - mean) / np.sqrt(variance + 0.001) * gamma[:, None]


def windows(x: Array, size: int, step: int = 1) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, size, axis=-1)[..., ::step, :]


CONSTRUCTS = {
    "attributes": Construct(
        "def f(a, *, scale, shift=(1, 2), flag=True):\n"
        "    return lambda i: a[i] * scale + shift[1] if flag else a[i]",
        {"a": (6,)},
        lambda a: a * 3 + 2,
        {"i": "concat"},
        {"scale": 3},
    ),
    "explicit extents": Construct(
        "def f(a, *, size=(2,)):\n"
        "    return lambda i=a.shape[0] // size[0]: Max(lambda d=size[0]: a[i * size[0] + d])",
        {"a": (9,)},
        lambda a: a[:8].reshape(4, 2).max(1),
        {"i": "concat", "d": "reduce"},
    ),
    "pad": Construct(
        "def f(a):\n    return lambda i=a.shape[0]: pad(a[i - 1], 0) + pad(a[i + 1], 7)",
        {"a": (6,)},
        lambda a: np.append(0, a[:-1]) + np.append(a[1:], 7),
        {"i": "concat"},
    ),
    "strides": Construct(
        "def f(a, w):\n    return lambda n, i: Sum(lambda d: a[n, 2 * i + d] * w[d])",
        {"a": (4, 11), "w": (3,)},
        lambda a, w: windows(a, 3, 2) @ w,
        {"n": "concat", "i": "concat", "d": "reduce"},
    ),
    "dilation": Construct(
        "def f(a, w):\n    return lambda i: Sum(lambda d: a[i + 3 * d] * w[d])",
        {"a": (12,), "w": (3,)},
        lambda a, w: windows(a, 7)[:, ::3] @ w,
        {"i": "concat", "d": "reduce"},
    ),
    "reversed indices": Construct(
        "def f(a):\n    return lambda i=a.shape[0]: a[a.shape[0] - 1 - i]",
        {"a": (7,)},
        lambda a: a[::-1],
        {"i": "concat"},
    ),
    "floor-divided indices": Construct(
        "def f(a):\n    return lambda i=2 * a.shape[0], j=9: a[i // 2] + a[j % 3]",
        {"a": (4,)},
        lambda a: np.repeat(a, 2)[:, None] + np.tile(a[:3], 3),
        {"i": "concat", "j": "concat"},
    ),
    "several outputs": Construct(
        "def f(a):\n    return lambda i: Sum(lambda k: a[i, k]), lambda i: Sum(lambda k: 2 * a[i, k])",
        {"a": (4, 5)},
        lambda a: (a.sum(1), 2 * a.sum(1)),
        {"i": "concat", "k": "reduce"},
    ),
    "comparisons and where": Construct(
        "def f(a, b):\n"
        "    return lambda i: where(a[i] > 0 and not b[i] == 1, a[i], -b[i]) + (1 if a[i] <= b[i] else 0)",
        {"a": (9,), "b": (9,)},
        lambda a, b: np.where((a > 0) & (b != 1), a, -b) + (a <= b),
        {"i": "concat"},
    ),
    "indices used as values": Construct(
        "def f(a):\n    return lambda i, j: a[i, j] * i + j",
        {"a": (5, 4)},
        lambda a: a * np.arange(5)[:, None] + np.arange(4),
        {"i": "concat+", "j": "concat+"},
    ),
    "one-hot": Construct(
        "def f(label, *, depth):\n    return lambda b, k=depth: label[b] == k",
        {"label": (6,)},
        lambda label: (label[:, None] == np.arange(4)).astype(float),
        {"b": "concat", "k": "concat+"},
        {"depth": 4},
        {"label": 4},
    ),
    "arange": Construct(
        "def f(*, start, step=2):\n    return lambda i=5: start + step * i",
        {},
        lambda: 10 + 2 * np.arange(5),
        {"i": "concat+"},
        {"start": 10},
    ),
    "data-dependent indices": Construct(
        "def f(table, row):\n    return lambda b, j: table[row[b], j]",
        {"table": (7, 4), "row": (6,)},
        lambda table, row: table[row.astype(int)],
        {"b": "concat", "j": "concat"},
        integers={"row": 7},
    ),
    "the same as a one-hot sum": Construct(
        "def f(table, row):\n    return lambda b, j: Sum(lambda v: where(row[b] == v, table[v, j], 0))",
        {"table": (7, 4), "row": (6,)},
        lambda table, row: table[row.astype(int)],
        {"b": "concat", "j": "concat", "v": "reduce+"},
        integers={"row": 7},
    ),
    "reductions inside expressions": Construct(
        "def f(x):\n"
        "    return lambda b, j: exp(x[b, j] - Max(lambda k: x[b, k]))"
        " / Sum(lambda m: exp(x[b, m] - Max(lambda n: x[b, n])))",
        {"x": (4, 5)},
        softmax,
        {"b": "concat", "j": "concat"},
        tolerance=1e-6,
    ),
    "stages": Construct(
        "def f(x):\n"
        "    top = lambda b: Max(lambda k: x[b, k])\n"
        "    e = lambda b, j: exp(x[b, j] - top[b])\n"
        "    return lambda b, j: e[b, j] / Sum(lambda k: e[b, k])",
        {"x": (4, 5)},
        softmax,
        {"b": "concat", "j": "concat"},
        tolerance=1e-6,
    ),
    "batch normalisation": Construct(
        "def f(x, gamma, *, eps=0.001):\n"
        "    mean = lambda c: Sum(lambda n, i: x[n, c, i]) / (x.shape[0] * x.shape[2])\n"
        "    var = lambda c: Sum(lambda n, i: square(x[n, c, i] - mean[c])) / (x.shape[0] * x.shape[2])\n"
        "    return lambda n, c, i: (x[n, c, i] - mean[c]) * rsqrt(var[c] + eps) * gamma[c]",
        {"x": (4, 3, 5), "gamma": (3,)},
        normalised,
        {"n": "concat", "c": "concat", "i": "concat"},
        tolerance=1e-5,
    ),
    "a mean by the whole extent": Construct(
        "def f(x):\n    return lambda c: Sum(lambda n: x[n, c]) / x.shape[0]",
        {"x": (8, 3)},
        lambda x: x.mean(0),
        {"c": "concat", "n": "reduce"},
    ),
    "no dimensions": Construct(
        "def f(a, b):\n    return lambda: b[()] * Sum(lambda i: a[i])",
        {"a": (6,), "b": ()},
        lambda a, b: b * a.sum(),
        {"i": "reduce"},
    ),
    "any rank": Construct(
        "def f(a, bias):\n    return lambda n, *i: a[n, *i] + bias[n]",
        {"a": (4, 2, 3), "bias": (4,)},
        lambda a, bias: a + bias[:, None, None],
        {"n": "concat", "i0": "concat", "i1": "concat"},
    ),
    "two starred variables": Construct(
        "def f(a, b):\n    return lambda *i, *j: Sum(lambda k: a[*i, k] * b[k, *j])",
        {"a": (2, 4, 3), "b": (3, 5)},
        lambda a, b: np.tensordot(a, b, 1),
        {"i0": "concat", "i1": "concat", "j0": "concat", "k": "reduce"},
    ),
    "a reduction over no dimensions": Construct(
        "def f(a, b):\n    return lambda *i: b[*i] + Sum(lambda *k: a[*i, *k] ** 2)",
        {"a": (4, 3), "b": (4, 3)},
        lambda a, b: b + a**2,
        {"i0": "concat", "i1": "concat"},
    ),
    "a custom reducer": Construct(
        "def f(x):\n"
        "    LogSumExp = Reducer(lambda a, b: maximum(a, b) + log1p(exp(-abs(a - b))), -inf)\n"
        "    return lambda b: LogSumExp(lambda k: x[b, k])",
        {"x": (4, 7)},
        lambda x: np.log(np.exp(x).sum(1)),
        {"b": "concat", "k": "reduce"},
        tolerance=1e-6,
    ),
    "a custom reducer inside an expression": Construct(
        "def f(x):\n"
        "    Either = Reducer(lambda p, q: p + q - p * q, 0)\n"
        "    return lambda b: 1 - Either(lambda j, k: x[b, j] * x[b, k] > 20)",
        {"x": (4, 3)},
        lambda x: 1.0 - (x[:, :, None] * x[:, None, :] > 20).any((1, 2)),
        {"b": "concat"},
    ),
}


@pytest.fixture(params=CONSTRUCTS)
def construct(request: pytest.FixtureRequest) -> Construct:
    return CONSTRUCTS[request.param]


def tensors_of(construct: Construct) -> dict[str, Array]:
    random = np.random.default_rng(3)
    return {
        name: random.integers(
            0 if name in construct.integers else -4, construct.integers.get(name, 6), shape
        ).astype("float32")
        for name, shape in construct.shapes.items()
    }


def bound_to(construct: Construct, operator: Operator) -> Any:
    return operator.bind(construct.shapes, **construct.attributes)


def test_text(construct: Construct) -> None:
    operator = tofu.parse(construct.text)
    assert tofu.parse(str(operator)) == operator
    assert tdl.format(tdl.parse(str(operator))) == str(operator)


def test_strategies(construct: Construct) -> None:
    bound = bound_to(construct, tofu.parse(construct.text))
    found = {s.variable: s.kind + "+" * s.needs_offset for s in bound.strategies}
    assert found == construct.strategies
    assert {r.variable for r in bound.refusals} == set(bound.variables) - set(found)


def test_results(construct: Construct) -> None:
    bound = bound_to(construct, tofu.parse(construct.text))
    tensors = tensors_of(construct)
    expected = construct.expected(*tensors.values())
    expected = expected if isinstance(expected, tuple) else (expected,)
    tolerance = construct.tolerance
    for results in (bound.interpret(tensors), bound.compute(tensors)):
        for result, reference in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, reference, tolerance, tolerance)


@pytest.mark.parametrize("workers", [2, 3])
def test_every_strategy_gives_the_same_result(construct: Construct, workers: int) -> None:
    bound = bound_to(construct, tofu.parse(construct.text))
    tensors = tensors_of(construct)
    if getattr(bound, "stages", None):
        tensors, bound = last_stage(bound, tensors)
    whole = bound.interpret(tensors)
    for strategy in bound.strategies:
        parts = []
        for box in bound.split((strategy.variable,), (workers,)):
            call = kernel_call(bound, box, tensors, "float64")
            bound.prepare(call)()
            parts.append(call.outputs)
        for output, reference in enumerate(whole):
            pieces = [part[output] for part in parts]
            if strategy.kind == "concat":
                binders = [binder.name for binder in bound.description.outputs[output].variables]
                result = np.concatenate(pieces, binders.index(strategy.variable))
            else:
                assert strategy.reducer is not None
                result = pieces[0]
                for piece in pieces[1:]:
                    tdl.combiner(strategy.reducer)(result, piece, result)
            np.testing.assert_allclose(result, reference, 1e-12, 1e-12, err_msg=strategy.variable)


def last_stage(bound: Any, tensors: dict[str, Array]) -> tuple[dict[str, Array], Any]:
    """The last stage of a binding, and what it reads."""
    known = dict(tensors)
    for stage in bound.parts[:-1]:
        part = stage.bind({name: known[name].shape for name in stage.inputs})
        known.update(zip(stage.produces, part.interpret({n: known[n] for n in stage.inputs}), strict=True))
    last = bound.parts[-1]
    needed = {name: known[name] for name in last.inputs}
    return needed, last.bind({name: array.shape for name, array in needed.items()})


def test_a_table_read_by_data_is_read_whole_and_one_by_a_one_hot_sum_in_part() -> None:
    gathered = bound_to(c := CONSTRUCTS["data-dependent indices"], tofu.parse(c.text))
    summed = bound_to(c := CONSTRUCTS["the same as a one-hot sum"], tofu.parse(c.text))
    assert gathered.strategies[0].input_regions(worker=1, workers=2)["table"] == ((0, 7), (0, 4))
    split = next(s for s in summed.strategies if s.variable == "v")
    assert split.input_regions(worker=1, workers=2)["table"] == ((3, 7), (0, 4))


def test_names_of_sympy_of_python_and_of_functions() -> None:
    text = (
        "def f(S):\n"
        "    return lambda N, I=2, E=3: "
        "S[N] * floor(I / 2) + Sum(lambda floor=2, class=2: S[floor + class]) + E"
    )
    bound: Any = tofu.parse(text).bind({"S": (4,)})
    assert bound.output_shapes == ((4, 2, 3),)
    (result,) = bound.compute({"S": np.arange(4.0)})
    np.testing.assert_array_equal(result, bound.interpret({"S": np.arange(4.0)})[0])
    assert result[3, 1, 2] == 3 * 0 + (0 + 1 + 1 + 2) + 2


def test_a_custom_reducer_trains_and_splits() -> None:
    text = (
        "def smooth(x):\n"
        "    LogSumExp = Reducer(lambda a, b: maximum(a, b) + log1p(exp(-abs(a - b))), -inf)\n"
        "    return lambda b: LogSumExp(lambda k: x[b, k])"
    )
    data = np.random.default_rng(0).standard_normal((2, 64))
    weight = data[0] / 2
    trained = [trained_weight(tofu.parse(text), data, weight, workers) for workers in (1, 2, 4)]
    e = np.exp(data * weight)
    slope = (e / e.sum(1, keepdims=True) * data * np.log(e.sum(1))[:, None]).sum(0) / 2
    np.testing.assert_allclose(trained[0], weight - 0.5 * slope, 1e-4, 1e-5)
    for other in trained[1:]:
        np.testing.assert_allclose(other, trained[0], 1e-5, 1e-6)


def trained_weight(operator: Operator, data: Array, weight: Array, workers: int) -> Array:
    """A weight after one step of gradient descent on the squares of the operator's results."""
    from tofu.dataflow.training import training_graph
    from tofu.runtime.executor import Executor

    x = tofu.sym.Variable("data")
    w = tofu.sym.Variable("weight", shape=(64,))
    scaled = tofu.sym.apply(
        tofu.parse("def scaled(x, w):\n    return lambda b, k: x[b, k] * w[k]"), x, w, name="scaled"
    )
    net = tofu.sym.LinearRegressionOutput(
        tofu.sym.apply(operator, scaled, name="smooth"), tofu.sym.Variable("label"), name="fit"
    )
    graph = training_graph(net, {"data": (2, 64), "label": (2,)}, "sgd")
    plan = tofu.partition(graph, workers=workers, keep=False)
    assert ("k" in plan.strategies["smooth"]) == (workers == 4)
    with Executor(tofu.lower(graph, plan)) as executor:
        executor.write("data", data.astype("float32"))
        executor.write("weight", weight.astype("float32"))
        executor.write("label", np.zeros(2, "float32"))
        executor.write("learning_rate", [0.5])
        executor.run()
        result: Array = executor.read("weight")
    return result


def test_regions_of_partial_boxes_hold_for_parts() -> None:
    """Parts of a description are computed from exactly what the whole box reads."""
    construct = CONSTRUCTS["a custom reducer"]
    bound = bound_to(construct, tofu.parse(construct.text.replace("x[b, k]", "x[b, k + 2]")))
    regions = bound.strategies[1].input_regions(worker=1, workers=2)
    assert regions["x"] == ((0, 4), (4, 7))
    assert to_region(bound.full_box) == ((0, 4), (0, 5))
