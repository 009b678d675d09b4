"""Boxes cut where conditions on indices change, and by residues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tofu import tdl
from tofu.operators.derive import derive
from tofu.operators.derive.nodes.ir import Apply, Load, walk
from tofu.operators.derive.pieces.cutting import MOST_PARTS, Axis, Taken
from tofu.operators.derive.pieces.pieces import BoxPiece, pieces
from tofu.operators.stages.stage import derived

Shapes = dict[str, tuple[int, ...]]

CONCATENATION = (
    "def f(a, b):\n    return lambda i=5, j=3: pad(a[i, j], 0) + pad(b[i - 2, j], 0)",
    {"a": (2, 3), "b": (3, 3)},
)
TRANSPOSED_CONVOLUTION = (
    "def f(g, w):\n    return lambda n, x=7, c=3: Sum(lambda f, k=3: where((x - k + 1) % 2 == 0, "
    "pad(g[n, f, (x - k + 1) // 2], 0), 0) * w[f, c, k])",
    {"g": (2, 4, 4), "w": (4, 3, 3)},
)
SHUFFLE = "def f(g):\n    return lambda n, i=12, y: Sum(lambda q=4: pad(g[n, 4 * i - 12 * q + q, y], 0))"
CUT: dict[str, tuple[str, Shapes, int]] = {
    "nothing to cut": ("def f(a):\n    return lambda i: where(a[i] > 0, a[i], i)", {"a": (4,)}, 1),
    "concatenation": (*CONCATENATION, 2),
    "overlapping": (
        "def f(a, b):\n    return lambda i=9: pad(a[i - 1], 0) + pad(b[6 - i], 1) * 2",
        {"a": (5,), "b": (4,)},
        5,
    ),
    "slices": (
        "def f(a, b, c):\n    return lambda i=3, j=4: where(i == 0, a[j], 0) + where(i == 1, b[j], 0) "
        "+ where(i == 2, c[j], 0)",
        {"a": (4,), "b": (4,), "c": (4,)},
        3,
    ),
    "shuffle": (SHUFFLE, {"g": (2, 12, 3)}, 4),
    "shuffle of pairs": (SHUFFLE.replace("+ q", "+ 2 * q"), {"g": (2, 12, 3)}, 6),
    "shuffle that counts": (SHUFFLE.replace("pad(", "2 + pad("), {"g": (2, 12, 3)}, 4),
    "largest of a shuffle": (SHUFFLE.replace("Sum", "Max"), {"g": (2, 12, 3)}, 4),
    "frame": ("def f(a):\n    return lambda i=6, j=5: pad(a[i - 1, j - 1], 7)", {"a": (4, 3)}, 9),
    "comparisons": (
        "def f(a):\n    return lambda i: where(2 * i > 5 and i != 6, a[i], -i) + (3 - i >= 1)",
        {"a": (9,)},
        4,
    ),
    "reshape": ("def f(a):\n    return lambda i=12: a[i // 4, i % 4]", {"a": (3, 4)}, 1),
    "reshape of many": ("def f(a):\n    return lambda i=180: a[i // 20, i % 20]", {"a": (9, 20)}, 1),
    "rotation": ("def f(a):\n    return lambda i=a.shape[0]: a[(i + 30) % a.shape[0]]", {"a": (100,)}, 2),
    "reversed rotation": ("def f(a):\n    return lambda i=90: a[(30 - i) % 91]", {"a": (91,)}, 2),
    "groups": (
        "def f(a, w):\n    return lambda n, f, x: "
        "Sum(lambda c, k: a[n, (f // 3) * 2 + c, x + k] * w[f, c, k])",
        {"a": (2, 10, 6), "w": (15, 2, 3)},
        1,
    ),
    "statistics of groups": (
        "def f(a, m):\n    return lambda n, c, x: a[n, c, x] - m[n, c // 4]",
        {"a": (2, 24, 3), "m": (2, 6)},
        1,
    ),
    "digits of digits": (
        "def f(a):\n    return lambda c=48, x=2: a[c // 12, (c % 12) // 4, c % 4, x]",
        {"a": (4, 3, 4, 2)},
        1,
    ),
    "falling digits": (
        "def f(a):\n    return lambda c=40, x=2: a[(39 - c) // 8, (39 - c) % 8, x]",
        {"a": (5, 8, 2)},
        1,
    ),
    "digits in a sum": (
        "def f(a):\n    return lambda i: Sum(lambda k=66: a[i, k // 11, k % 11])",
        {"a": (3, 6, 11)},
        1,
    ),
    "rotation in a sum": (
        "def f(a, b):\n    return lambda i: Sum(lambda k: a[i, k] * b[(k + 70) % 130])",
        {"a": (3, 130), "b": (130,)},
        1,
    ),
    "upsampling": (
        "def f(a):\n    return lambda y=6, x=5: a[y // 2, x // 3] * (y % 2 + 1)",
        {"a": (3, 2)},
        3,
    ),
    "rotation of one of two": (
        "def f(a):\n    return lambda i: a[i] * a[(i + 7) % a.shape[0]]",
        {"a": (100,)},
        2,
    ),
    "rotation within groups": (
        "def f(a):\n    return lambda i: a[i // 4 * 4 + (i + 1) % 4]",
        {"a": (100,)},
        4,
    ),
    "windows of a rotation": (
        "def f(a):\n    return lambda i: a[(i + 90) % 100 // 4] + ((i + 90) % 100 % 4 == 1) + a[i]",
        {"a": (100,)},
        9,
    ),
    "replicated borders": (
        "def f(a):\n    return lambda i=10, j=9: a[minimum(maximum(i - 2, 0), 5), minimum(j, 6)]",
        {"a": (6, 7)},
        6,
    ),
    "reflected border": ("def f(a):\n    return lambda i=10: a[5 - abs(5 - abs(i - 2))]", {"a": (6,)}, 3),
    "neighbours when resizing": (
        "def f(a):\n    return lambda i=20: a[i // 2] + a[minimum(i // 2 + 1, a.shape[0] - 1)]",
        {"a": (10,)},
        4,
    ),
    "a bend of two variables": (
        "def f(a):\n    return lambda i=6, j=3: a[minimum(i + j, 6)]",
        {"a": (7,)},
        1,
    ),
    "a sum at the border of a window": (
        "def f(a, w):\n    return lambda j=4:"
        " Sum(lambda i=9, d=3: where(j == 0 and i + d <= 1, a[i] * w[d], 0))",
        {"a": (9,), "w": (3,)},
        2,
    ),
    "transposed convolution": (*TRANSPOSED_CONVOLUTION, 2),
    "pooling's gradient": (
        "def f(g):\n    return lambda n, x=8: Sum(lambda k=3: "
        "where((x - k) % 3 == 0, pad(g[n, (x - k) // 3], 0), 0))",
        {"g": (2, 3)},
        3,
    ),
    "maximum by residues": (
        "def f(a):\n    return lambda i=4: Max(lambda k=6: a[i, k // 2] - k % 2)",
        {"a": (4, 3)},
        1,
    ),
    "a sum that must not be repeated": (
        "def f(a):\n    return lambda i, j=5: where(j < 2, a[i, j], Sum(lambda k: a[i, k]))",
        {"a": (3, 6)},
        1,
    ),
    "zero divided by": (
        "def f(a):\n    return lambda i: where(i > 0, a[i] + 6 / (i + 0 ** i), 0)",
        {"a": (3,)},
        2,
    ),
    "two outputs": (
        "def f(a):\n    return (lambda i, j: where(j < 2, a[i, j], 1), "
        "lambda i, j: where(i < 1, 2, a[i, j]))",
        {"a": (3, 4)},
        4,
    ),
}


def cut(text: str, shapes: Shapes) -> tuple[BoxPiece, ...]:
    bound = derived(tdl.parse(text)).bind(shapes)
    return pieces(bound, tuple((0, extent) for extent in bound.extents.values()))


@pytest.mark.parametrize("case", CUT)
def test_pieces_compute_the_whole(case: str, check_kernel: Any) -> None:
    text, shapes, _ = CUT[case]
    rng = np.random.default_rng(3)
    tensors = {name: rng.integers(-4, 5, shape).astype(np.float64) for name, shape in shapes.items()}
    check_kernel(derived(tdl.parse(text)).bind(shapes), derive, tensors, boxes=12)


@pytest.mark.parametrize("case", CUT)
def test_number_of_pieces(case: str) -> None:
    text, shapes, count = CUT[case]
    assert len(cut(text, shapes)) == count


def test_pieces_of_a_concatenation_are_copies() -> None:
    assert all(isinstance(piece.lowered.outputs[0].value, Load) for piece in cut(*CONCATENATION))


def test_pieces_of_a_shuffle_are_copies() -> None:
    assert all(isinstance(piece.lowered.outputs[0].value, Load) for piece in cut(SHUFFLE, {"g": (2, 12, 3)}))


def test_a_strided_gradient_has_neither_conditions_nor_quotients() -> None:
    functions = {
        node.function
        for piece in cut(*TRANSPOSED_CONVOLUTION)
        for node in walk(piece.lowered.outputs[0].value)
        if isinstance(node, Apply)
    }
    assert functions == {"*"}


def test_a_grouped_convolution_is_one_product_of_matrices_for_each_group() -> None:
    text, shapes, _ = CUT["groups"]
    (piece,) = cut(text, shapes)
    assert piece.lowered.outputs[0].variables == ("n", "f/3", "f%3", "x")
    assert piece.taken["f"] == Taken(0, (Axis("f/3", 3, 5), Axis("f%3", 1, 3)))


def test_a_cut_box_starts_and_ends_within_a_group() -> None:
    bound = derived(tdl.parse(CUT["statistics of groups"][0])).bind(CUT["statistics of groups"][1])
    found = [piece.taken["c"] for piece in pieces(bound, ((0, 2), (3, 23), (0, 3)))]
    assert found == [
        Taken(3, (Axis("c", 1, 1),)),
        Taken(4, (Axis("c/4", 4, 4), Axis("c%4", 1, 4))),
        Taken(20, (Axis("c", 1, 3),)),
    ]


def test_too_many_residues_are_left_alone() -> None:
    text = f"def f(a):\n    return lambda i=1000, j=5: a[(i + j) // {MOST_PARTS + 1}]"
    assert len(cut(text, {"a": (20,)})) == 1


@pytest.mark.parametrize("extent", [1, 31, 32, 33, 62, 63, 64, 65, 70])
def test_reductions_by_residues_need_few_axes(extent: int, check_kernel: Any) -> None:
    """A kernel has an axis for each variable, and arrays of NumPy have at most 64."""
    index = f"(i + k) % {extent}"
    text = (
        f"def f(a):\n    return lambda i={extent}: Sum(lambda k={extent}: a[{index}] * (k % {extent} // 2))"
    )
    tensors = {"a": np.arange(extent, dtype=np.float64)}
    bound = derived(tdl.parse(text)).bind({"a": (extent,)})
    check_kernel(bound, derive, tensors, boxes=2)
    box = tuple((0, extent) for extent in bound.extents.values())
    assert all(len(piece.lowered.variables) <= 4 for piece in pieces(bound, box))
