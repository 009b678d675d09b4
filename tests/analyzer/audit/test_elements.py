"""The oracle: index expressions run through one by one, and the elements they lead to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tofu import tdl
from tofu.analyzer.audit.elements import Subject, elements_read, sites
from tofu.analyzer.audit.reference import intermediate
from tofu.analyzer.bind.bound import Bound
from tofu.analyzer.bind.staged_bound import bind as bind_stages
from tofu.analyzer.specialize.specialize import specialize
from tofu.errors import ShapeError
from tofu.tdl.arrays import Evaluation
from tofu.tdl.ast import Element

Bind = Callable[..., Bound]
LIST = np.array([2, 0, 4, 1])
TABLE = np.arange(12).reshape(3, 4) * 10
ROW, COLUMN = np.arange(3)[:, None], np.arange(4)

INDICES = {
    "7": 7,
    "i + 2 * j": ROW + 2 * COLUMN,
    "i - j": ROW - COLUMN,
    "(j - i) // 2": (COLUMN - ROW) // 2,
    "(j - i) % 3": (COLUMN - ROW) % 3,
    "j / 2": COLUMN / 2,
    "j ** i": COLUMN**ROW,
    "-j": -COLUMN,
    "not j": COLUMN == 0,
    "i < j": ROW < COLUMN,
    "i <= j": ROW <= COLUMN,
    "i > j": ROW > COLUMN,
    "i >= j": ROW >= COLUMN,
    "i == j": ROW == COLUMN,
    "i != j": ROW != COLUMN,
    "i and j": (ROW > 0) & (COLUMN > 0),
    "i or j": (ROW > 0) | (COLUMN > 0),
    "maximum(i, j)": np.maximum(ROW, COLUMN),
    "where(i > j, i, -j)": np.where(ROW > COLUMN, ROW, -COLUMN),
    "t.shape[0] - j": 4 - COLUMN,
    "m.shape[0] + m.shape[1]": 7,
    "t[j] + 1": LIST[COLUMN] + 1,
    "t[j // 2 + i]": LIST[COLUMN // 2 + ROW],
    "pad(t[j - 1], 7)": np.array([7, 2, 0, 4]),
    "pad(t[j + 1], -i)": np.where(COLUMN < 3, LIST[(COLUMN + 1) % 4], -ROW),
    "pad(m[i - 1, j + 2], 5)": np.where((ROW > 0) & (COLUMN < 2), TABLE[ROW - 1, (COLUMN + 2) % 4], 5),
    "pad(m[i + 2, j - 1], 5)": np.where((ROW < 1) & (COLUMN > 0), TABLE[(ROW + 2) % 3, COLUMN - 1], 5),
}


def body(text: str) -> tdl.ast.Index:
    """The syntax tree of an index; the rest of the description only uses every name."""
    whole = tdl.parse(f"def op(t, m):\n    return lambda i=3, j=4: ({text}) + 0 * (t[0] + m[0, 0])")
    return whole.outputs[0].body.left  # type: ignore[union-attr]


@pytest.mark.parametrize("text", INDICES)
def test_indices_are_what_arithmetic_says(text: str) -> None:
    tensors = {"t": LIST, "m": TABLE}
    run = Evaluation(tensors, {n: a.shape for n, a in tensors.items()}, {})
    with np.errstate(all="ignore"):
        found = run.value(body(text), {"i": ROW, "j": COLUMN})
    assert (np.broadcast_to(found, (3, 4)) == INDICES[text]).all()


def test_what_is_no_index_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"^the extent of 'k' is not known$"):
        Evaluation({}, {}, {}).value(body("Sum(lambda k=2: k)"), {"i": ROW, "j": COLUMN})


def test_every_read_is_found_with_the_variables_around_it() -> None:
    text = "def op(x, at):\n"
    text += "    return lambda i, j=2: Sum(lambda k: pad(x[i, at[k]], 0)) * Max(lambda l=2: at[l] + j)"
    found = {(site.element.tensor, site.outer, site.inner) for site in sites(tdl.parse(text))}
    assert found == {("x", ("i", "j"), ("k",)), ("at", ("i", "j"), ("k",)), ("at", ("i", "j"), ("l",))}
    assert all(isinstance(site[0], Element) for site in sites(tdl.parse(text)))


def read(subject: Subject, box: list[list[int]], **tensors: np.ndarray) -> dict[str, list[object]]:
    return {
        name: mask.astype(int).tolist()
        for name, mask in elements_read(subject, np.array(box), tensors).items()
    }


def test_elements_of_a_box(bind: Bind) -> None:
    bound = bind(
        "def op(x, s):\n    return lambda i=3, j=2: pad(x[2 * i - 1, 1 - j], 0) * s[()]",
        {"x": (4, 2), "s": ()},
    )
    assert read(bound, [[0, 3], [0, 2]]) == {"x": [[0, 0], [1, 1], [0, 0], [1, 1]], "s": 1}
    assert read(bound, [[0, 2], [1, 2]]) == {"x": [[0, 0], [1, 0], [0, 0], [0, 0]], "s": 1}
    assert read(bound, [[0, 1], [0, 2]]) == {"x": [[0, 0]] * 4, "s": 1}
    assert read(bound, [[1, 1], [0, 2]]) == {"x": [[0, 0]] * 4, "s": 0}


def test_elements_that_data_leads_to(bind: Bind) -> None:
    bound = bind("def op(x, at):\n    return lambda i: x[at[i]]", {"x": (4,), "at": (3,)})
    assert read(bound, [[1, 3]], at=np.array([0.0, 3.0, 2.0])) == {"x": [0, 0, 1, 1], "at": [0, 1, 1]}


def test_whole_dimensions_of_opaque_functions(bind: Bind) -> None:
    text = "def op(x):\n    inverse = Opaque()\n    return lambda b, i, j: inverse(x[b, :, :])[i, j]"
    bound = bind(text, {"x": (2, 2, 2)})
    assert read(bound, [[1, 2], [0, 1], [0, 1]]) == {"x": [[[0, 0], [0, 0]], [[1, 1], [1, 1]]]}


STAGES = """
def op(a, b, unused):
    once = lambda i=4: a[i] + a[i + 1] + unused.shape[0]
    other = lambda i=4: once[i] * b[3 - i]
    return lambda i=3: other[i] + once[i + 1]
"""
SHAPES = {"a": (5,), "b": (4,), "unused": (2,)}


def test_elements_read_through_stages() -> None:
    bound = bind_stages(tdl.parse(STAGES), SHAPES)
    assert read(bound, [[0, 1]], a=np.zeros(5), b=np.zeros(4), unused=np.zeros(2)) == {
        "a": [1, 1, 1, 0, 0],
        "b": [0, 0, 0, 1],
        "unused": [0, 0],
    }


def test_a_stage_that_attributes_switch_off_reads_nothing() -> None:
    text = """
def op(x, y, *, both=0):
    twice = lambda i: 2 * y[i]
    return lambda i: x[i] + (twice[i] if both else 0)
"""
    for both in (0, 1):
        description = specialize(tdl.parse(text), {"both": both}, {"x": 1, "y": 1})
        bound = bind_stages(description, {"x": (3,), "y": (3,)})
        assert read(bound, [[1, 3]], x=np.zeros(3), y=np.zeros(3)) == {"x": [0, 1, 1], "y": [0, both, both]}


def test_what_stages_produce() -> None:
    bound = bind_stages(tdl.parse(STAGES), SHAPES)
    produced = intermediate(bound, {"a": np.arange(5.0), "b": np.arange(4.0), "unused": np.zeros(2)})
    assert {name: array.tolist() for name, array in produced.items()} == {
        "once": [3, 5, 7, 9],
        "other": [9, 10, 7, 0],
    }


def test_too_much_to_run_through_is_said(bind: Bind) -> None:
    bound = bind("def op(x):\n    return lambda i: Sum(lambda k: x[i, k])", {"x": (2**13, 2**12)})
    message = "op: 33554432 index values are too many to run through one by one; audit smaller shapes"
    with pytest.raises(ShapeError) as caught:
        elements_read(bound, bound.full_box, {})
    assert str(caught.value) == message
