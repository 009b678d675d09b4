"""The results of a generated kernel, construct by construct, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.cuda import generate
from tofu.operators.stages.stage import Stage, derived
from tofu.tdl.functions import FUNCTIONS

from .comparison import compare

DESCRIPTIONS = {
    "pad_with_value": (
        "def f(a):\n    return lambda i=4, j=4: pad(a[2 * i - 1, j + 1], a[i, 0] * 10)",
        {"a": (5, 4)},
    ),
    "floor_semantics": (
        "def f(a):\n    return lambda i, j: (i - 3) // 2 * 100 + (i - 3) % 4"
        " + (j - 2) // -2 * 7 + (1 - j) % -3 + a[i, j] // 0.75",
        {"a": (7, 5)},
    ),
    "real_remainder": ("def f(a, b):\n    return lambda i, j: a[i, j] % b[i, j]", {"a": (6, 5), "b": (6, 5)}),
    "quotient_in_index": (
        "def f(a):\n    return lambda i=9, j=4: pad(a[(i - 4) // 3, (5 * i + j) % 4], -1) + a[i // 4, 3 - j]",
        {"a": (3, 4)},
    ),
    "extents_in_indices": (
        "def f(a):\n    return lambda i, j: a[a.shape[0] - 1 - i, j] + a[i, -(j + 1 - a.shape[1])]"
        " + pad(a[i - a.shape[0] ** 2 + 9, j % a.shape[1]], -1)",
        {"a": (3, 4)},
    ),
    "functions_of_extents_in_indices": (
        "def f(a):\n    return lambda i=2 * a.shape[0]:"
        " pad(a[i - maximum(a.shape[0], 2)], 0) + a[(i + minimum(a.shape[0], 7)) // 3]",
        {"a": (5,)},
    ),
    "bent_indices": (
        "def f(a):\n    return lambda i=a.shape[0] + 4, j=a.shape[1] + 4:"
        " a[minimum(maximum(i - 2, 0), a.shape[0] - 1), a.shape[1] - 1 - abs(a.shape[1] - 1 - abs(j - 2))]"
        " + a[minimum(i // 2 + 1, a.shape[0] - 1), abs(3 - j) % a.shape[1]]"
        " * pad(a[minimum(i, 9 - i), j], 3)",
        {"a": (5, 4)},
    ),
    "nested_reducers": (
        "def f(x):\n    return lambda i, j: exp(x[i, j] - Max(lambda k: x[i, k]))"
        " / Sum(lambda k: exp(x[i, k] - Max(lambda l: x[i, l])))",
        {"x": (3, 35)},
    ),
    "dependent_inner_reducer": (
        "def f(a, b):\n    return lambda i: Sum(lambda k, l: a[i, k]"
        " * Min(lambda m: b[k, m] - a[i, l]) * Prod(lambda n: b[0, n] / 2))",
        {"a": (3, 5), "b": (5, 4)},
    ),
    "several_outputs": (
        "def f(a, b):\n    return (\n        lambda i, j: a[i, j] + b[j],\n"
        "        lambda i, j: a[i, j] * b[j],\n"
        "        lambda j: Sum(lambda i: a[i, j]) + j,\n        lambda: Max(lambda i, j: a[i, j]),\n    )",
        {"a": (4, 6), "b": (6,)},
    ),
    "logic": (
        "def f(a, b):\n    return lambda i: where(not (a[i] > 0) or a[i] == b[i] and i < 3,"
        " -(a[i] < b[i]), a[i] ** 3 + b[i] ** -2)",
        {"a": (40,), "b": (40,)},
    ),
    "constants": (
        "def f(a):\n    return lambda i: where(a[i] > 0.1, inf, 1e300)"
        " + a.shape[0] / 3 - 2.5 * (-0.1) + 7 // 2",
        {"a": (9,)},
    ),
    "unread": ("def f(a):\n    return lambda i=a.shape[0], j=a.shape[1]: i * a.shape[1] + j", {"a": (3, 5)}),
    "data_dependent": (
        "def f(d, w):\n    return lambda i, j: w[d[i], j] + pad(w[d[i] - 2, j], -5)"
        " + Sum(lambda k: w[d[k], k % 3])",
        {"d": (6,), "w": (8, 4)},
    ),
    "custom_reducer": (
        "def f(a):\n    hypotenuse = Reducer(lambda l, r: sqrt(l * l + r * r), 0)\n"
        "    return lambda i: hypotenuse(lambda j, k: a[i, j, k])",
        {"a": (3, 4, 20)},
    ),
    "idle_threads_of_a_custom_reducer": (
        "def f(a):\n    Soft = Reducer(lambda l, r: maximum(l, r) + log1p(exp(-abs(l - r))), -inf)\n"
        "    return lambda i: Soft(lambda j, k: a[i, j, k])",
        {"a": (2, 3, 5)},
    ),
    "huge_factors": (
        "def f(a):\n    return lambda i: i * 5000000000 + a[(i * 4000000000) // 4000000000]",
        {"a": (6,)},
    ),
    "names_of_c": (
        "def double(float, auto):\n    return lambda register, int: float[register, int] * auto[int]",
        {"float": (2, 3), "auto": (3,)},
    ),
    "scalar_tensor": ("def f(a, s):\n    return lambda i: a[i] * s[()]", {"a": (5,), "s": ()}),
}


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, np.nan, np.inf, -np.inf, 12.0, -7.0, -1e-6]
PAIRS = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)


def stage_of(text: str) -> Stage:
    return derived(tdl.parse(text))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constructs(machine: Any, dtype: str) -> None:
    stages = {name: stage_of(entry[0]) for name, entry in DESCRIPTIONS.items()}
    types = {name: dict.fromkeys(stage.inputs, dtype) for name, stage in stages.items()}
    outputs = {name: [dtype] * len(stage.produces) for name, stage in stages.items()}
    kernels = {
        name: generate(stage.description, types[name], outputs[name]) for name, stage in stages.items()
    }
    computer = machine(list(kernels.values()))
    for name, stage in stages.items():
        bound = stage.bind(DESCRIPTIONS[name][1])
        compare(computer, bound, kernels[name], types[name], outputs[name], boxes=3)


def test_every_scalar_function(machine: Any) -> None:
    stages, kernels = [], []
    for function in FUNCTIONS.values():
        arguments = ", ".join(f"{name}[i]" for name in "abc"[: function.arity])
        header = ", ".join("abc"[: function.arity])
        text = f"def f_{function.name}({header}):\n    return lambda i: {function.name}({arguments})"
        stage = stage_of(text)
        for dtype in ("float32", "float64"):
            types = dict.fromkeys(stage.inputs, dtype)
            stages.append((stage, types, [dtype]))
            kernels.append(generate(stage.description, types, [dtype]))
    computer = machine(kernels)
    rng = np.random.default_rng(3)
    tensors = {
        name: np.concatenate([row, rng.uniform(-4, 4, 60)]) for name, row in zip("ab", PAIRS, strict=True)
    }
    tensors["c"] = rng.permutation(tensors["a"])
    for (stage, types, outputs), kernel in zip(stages, kernels, strict=True):
        bound = stage.bind({name: tensors[name].shape for name in stage.inputs})
        values = {name: tensors[name].astype(types[name]).astype(float) for name in stage.inputs}
        if stage.name == "f_power":  # the interpreter's power(-inf, 0.5) is nan, C's is not
            values["a"][np.isneginf(values["a"])] = -3.25
        compare(computer, bound, kernel, types, outputs, tensors=values, boxes=1)


@pytest.mark.parametrize("operator", ["//", "%"])
def test_quotients_of_special_values(machine: Any, operator: str) -> None:
    stage = stage_of(f"def f(a, b):\n    return lambda i: a[i] {operator} b[i]")
    types = dict.fromkeys("ab", "float64")
    kernel = generate(stage.description, types, ["float64"])
    tensors = dict(zip("ab", PAIRS, strict=True))
    bound = stage.bind({name: row.shape for name, row in tensors.items()})
    compare(machine([kernel]), bound, kernel, types, ["float64"], tensors=tensors, boxes=1)


@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_mixed_types(machine: Any, storage: str) -> None:
    stage = stage_of(
        "def f(a, w, d):\n    return (lambda i: Sum(lambda k: a[i, k] * w[d[k], k]), lambda k: d[k] // 2)"
    )
    types = {"a": storage, "w": "float32", "d": "int64"}
    outputs = [storage, "int32"]
    kernel = generate(stage.description, types, outputs)
    computer = machine([kernel])
    bound = stage.bind({"a": (5, 80), "w": (9, 80), "d": (80,)})
    compare(computer, bound, kernel, types, outputs, boxes=5)


def test_integers_are_exact(machine: Any) -> None:
    stage = stage_of(
        "def f(a, b):\n    return lambda i: Sum(lambda k: a[i, k] * b[k] // 3 % 7)"
        " + Max(lambda k: a[i, k]) * 10 ** 12"
    )
    types = {"a": "int64", "b": "int32"}
    kernel = generate(stage.description, types, ["int64"])
    computer = machine([kernel])
    rng = np.random.default_rng(1)
    tensors = {"a": rng.integers(-1000, 1000, (4, 50)), "b": rng.integers(-9, 9, 50)}
    compare(computer, stage.bind({"a": (4, 50), "b": (50,)}), kernel, types, ["int64"], tensors=tensors)


def test_empty_outer_loop_reads_nothing(machine: Any) -> None:
    """The inner sum does not vary with the outer one, which is empty: it must not be hoisted unguarded."""
    stage = stage_of(
        "def f(a, b, c):\n    return lambda i: c[i]"
        " + Sum(lambda k: a[k] * Sum(lambda m: b[i, m] * Sum(lambda n: b[i, n])))"
    )
    types = dict.fromkeys("abc", "float32")
    kernel = generate(stage.description, types, ["float32"])
    computer = machine([kernel])
    bound = stage.bind({"a": (0,), "b": (3, 4), "c": (3,)})
    assert bound.input_regions(bound.full_box[None])["b"].tolist() == [[[0, 0], [0, 0]]]
    compare(computer, bound, kernel, types, ["float32"], boxes=1)
