"""Bound descriptions: the paper's Figure 3, caching, element-wise operators, bad workers."""

from __future__ import annotations

import numpy as np
import pytest

from tofu.errors import DescriptionError, ShapeError

CONV1D = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""
SHAPES = {"data": (4, 3, 12), "filters": (3, 6, 3)}


def test_figure_3(bind):
    bound = bind(CONV1D, SHAPES)
    assert bound.output_shapes == ((4, 6, 10),)
    assert list(bound.extents.items()) == [("b", 4), ("co", 6), ("x", 10), ("ci", 3), ("dx", 3)]
    assert not bound.elementwise
    assert bound.tight
    assert bound.reads == {"data", "filters"}
    assert [(s.variable, s.kind, s.reducer) for s in bound.strategies] == [
        ("b", "concat", None),
        ("co", "concat", None),
        ("x", "concat", None),
        ("ci", "reduce", "Sum"),
        ("dx", "reduce", "Sum"),
    ]
    assert bound.refusals == ()


@pytest.mark.parametrize(
    ("variable", "worker", "data", "filters", "output"),
    [
        ("b", 0, ((0, 2), (0, 3), (0, 12)), ((0, 3), (0, 6), (0, 3)), ((0, 2), (0, 6), (0, 10))),
        ("b", 1, ((2, 4), (0, 3), (0, 12)), ((0, 3), (0, 6), (0, 3)), ((2, 4), (0, 6), (0, 10))),
        ("co", 1, ((0, 4), (0, 3), (0, 12)), ((0, 3), (3, 6), (0, 3)), ((0, 4), (3, 6), (0, 10))),
        ("x", 0, ((0, 4), (0, 3), (0, 7)), ((0, 3), (0, 6), (0, 3)), ((0, 4), (0, 6), (0, 5))),
        ("x", 1, ((0, 4), (0, 3), (5, 12)), ((0, 3), (0, 6), (0, 3)), ((0, 4), (0, 6), (5, 10))),
        ("ci", 0, ((0, 4), (0, 1), (0, 12)), ((0, 1), (0, 6), (0, 3)), ((0, 4), (0, 6), (0, 10))),
        ("dx", 1, ((0, 4), (0, 3), (1, 12)), ((0, 3), (0, 6), (1, 3)), ((0, 4), (0, 6), (0, 10))),
    ],
)
def test_figure_3_regions(bind, variable, worker, data, filters, output):
    bound = bind(CONV1D, SHAPES)
    strategy = next(s for s in bound.strategies if s.variable == variable)
    assert strategy.input_regions(worker=worker, workers=2) == {"data": data, "filters": filters}
    assert strategy.output_regions(worker=worker, workers=2) == (output,)


def test_regions_are_python_integers(bind):
    regions = bind(CONV1D, SHAPES).strategies[0].input_regions(worker=0, workers=2)
    assert {type(end) for region in regions.values() for interval in region for end in interval} == {int}


def test_more_workers_than_the_extent(bind):
    strategy = bind(CONV1D, SHAPES).strategies[0]
    message = (
        "^conv1d: 'b' has extent 4, too small for 5 workers; split another variable or use at most 4 workers$"
    )
    with pytest.raises(ShapeError, match=message):
        strategy.input_regions(worker=0, workers=5)
    assert strategy.input_regions(worker=3, workers=4)["data"][0] == (3, 4)


@pytest.mark.parametrize("worker", [-1, 2])
def test_a_worker_that_does_not_exist(bind, worker):
    strategy = bind(CONV1D, SHAPES).strategies[0]
    with pytest.raises(ShapeError, match=f"^conv1d: worker {worker} of 2: numbers go from 0 to 1$"):
        strategy.output_regions(worker=worker, workers=2)


def test_equal_shapes_give_the_same_object(bind):
    assert bind(CONV1D, SHAPES) is bind(CONV1D, {name: list(shape) for name, shape in SHAPES.items()})
    assert bind(CONV1D, SHAPES) is not bind(CONV1D, SHAPES | {"data": (5, 3, 12)})


def test_the_same_tree_with_another_kind_of_number_is_another_description(bind):
    double = "def f(a):\n    return lambda i: a[i] * {}"
    whole, real = bind(double.format("2"), {"a": (3,)}), bind(double.format("2.0"), {"a": (3,)})
    values = {"a": np.arange(3)}
    assert whole.interpret(values)[0].dtype == np.int64
    assert real.interpret(values)[0].dtype == np.float64


def test_split_by_several_steps_nests_and_an_unsplit_step_repeats(bind):
    bound = bind(CONV1D, SHAPES)
    boxes = bound.split(("b", None, "b"), (2, 2, 2))
    first = bound.variables.index("b")
    assert boxes[:, first].tolist() == [[0, 1], [1, 2]] * 2 + [[2, 3], [3, 4]] * 2


def test_an_empty_box_reads_nothing(bind):
    bound = bind(CONV1D, SHAPES)
    boxes = np.repeat(bound.full_box[None], 2, axis=0)
    boxes[0, bound.variables.index("dx")] = (2, 2)
    regions = bound.input_regions(boxes)
    assert not regions["data"][0].any()
    assert not regions["filters"][0].any()
    assert regions["filters"][1].tolist() == [[0, 3], [0, 6], [0, 3]]


def test_an_access_outside_of_an_empty_reduction_is_still_read(bind):
    bound = bind("def f(a):\n    return lambda i: a[i, 0] + Sum(lambda j: a[i, j])", {"a": (4, 6)})
    boxes = bound.full_box[None].copy()
    boxes[0, 1] = (3, 3)
    assert bound.input_regions(boxes)["a"].tolist() == [[[0, 4], [0, 1]]]


def test_no_boxes(bind):
    bound = bind(CONV1D, SHAPES)
    none = bound.full_box[None][:0]
    assert bound.input_regions(none)["data"].shape == (0, 3, 2)


@pytest.mark.parametrize(
    ("body", "elementwise", "in_place"),
    [
        ("lambda i, j: tanh(a[i, j]) * b[i, j]", True, {"a", "b"}),
        ("(lambda i, j: a[i, j], lambda i, j: b[i, j] + 1)", True, {"a", "b"}),
        ("lambda i, j: a[i, j] * b[0, 0]", False, {"a"}),
        ("lambda i, j: a[i, j] + a[j, i] + b[i, j]", False, {"b"}),
        ("lambda i, j: pad(a[i, j], 0) + b[i, j + 1]", False, {"a"}),
        ("lambda i: Sum(lambda j: a[i, j] + b[i, j])", False, set()),
        ("lambda i, j, k=2: a[i, j] + b[i, j]", False, set()),
        ("lambda i, j: i * a.shape[0] + b[i, j]", True, {"b"}),
    ],
)
def test_elementwise_and_in_place(bind, body, elementwise, in_place):
    bound = bind(f"def f(a, b):\n    return {body}", {"a": (4, 4), "b": (4, 4)})
    assert bound.elementwise is elementwise
    assert bound.in_place == in_place


def test_a_tensor_used_for_its_shape_alone_is_not_read(bind):
    bound = bind("def f(a, b):\n    return lambda i=b.shape[1], j: a[j] * i", {"a": (3,), "b": (2, 6)})
    assert bound.output_shapes == ((6, 3),)
    assert bound.reads == {"a"}
    assert bound.strategies[0].input_regions(worker=1, workers=2)["b"] == ((0, 0), (0, 0))


def test_several_outputs_share_variables(bind):
    text = "def f(a):\n    return lambda i: Sum(lambda j: a[i, j]), lambda j: Sum(lambda i: a[i, j])"
    bound = bind(text, {"a": (4, 6)})
    assert bound.output_shapes == ((4,), (6,))
    assert bound.strategies == ()
    text = "def f(a):\n    return lambda i, j: a[i, j], lambda j, i: 2 * a[i, j]"
    strategy = bind(text, {"a": (4, 6)}).strategies[0]
    assert strategy.output_regions(worker=1, workers=2) == (((2, 4), (0, 6)), ((0, 6), (2, 4)))


def test_data_dependent_index_needs_the_whole_dimension(bind):
    text = "def embed(data, weight):\n    return lambda b, j: weight[data[b], j]"
    bound = bind(text, {"data": (6,), "weight": (10, 8)})
    first, second = bound.strategies
    assert first.input_regions(worker=1, workers=2) == {"data": ((3, 6),), "weight": ((0, 10), (0, 8))}
    assert second.input_regions(worker=1, workers=2) == {"data": ((0, 6),), "weight": ((0, 10), (4, 8))}
    assert not bound.tight


def test_names_that_sympy_knows_are_harmless(bind):
    text = "def op(N, S):\n    return lambda I, E: Sum(lambda floor=2, oo: N[I + floor, oo] * S[E, oo // 2])"
    bound = bind(text, {"N": (9, 4), "S": (5, 2)})
    assert bound.extents == {"I": 8, "E": 5, "floor": 2, "oo": 4}


def test_opaque_functions_split_along_the_batch_alone(bind):
    text = """
def batch_cholesky(batch_mat):
    cholesky = Opaque()
    return lambda b, i, j: cholesky(batch_mat[b, :, :])[i, j]
"""
    bound = bind(text, {"batch_mat": (4, 3, 3)})
    assert bound.output_shapes == ((4, 3, 3),)
    assert [s.variable for s in bound.strategies] == ["b"]
    assert bound.strategies[0].input_regions(worker=0, workers=2)["batch_mat"] == ((0, 2), (0, 3), (0, 3))
    assert {r.variable: r.reason for r in bound.refusals} == {
        "i": "it indexes the result of an opaque function",
        "j": "it indexes the result of an opaque function",
    }
    matrices = np.stack([np.eye(3) * (k + 1) for k in range(4)])
    (result,) = bound.interpret({"batch_mat": matrices}, opaque={"cholesky": np.linalg.cholesky})
    np.testing.assert_allclose(result, np.sqrt(matrices))


@pytest.mark.parametrize("index", ["i * j", "i * i", "i // j"])
def test_products_of_variables_are_not_indices(bind, index):
    with pytest.raises(DescriptionError, match="affine"):
        bind(f"def f(a):\n    return lambda i=2, j=2: a[{index}]", {"a": (9,)})


@pytest.mark.parametrize(("attribute", "message"), [(0, "division by zero"), (0.5, "integer")])
def test_attributes_that_spoil_an_index(bind, attribute, message):
    text = "def f(a, *, step):\n    return lambda i=2: a[i // step]"
    with pytest.raises(DescriptionError, match=message) as caught:
        bind(text, {"a": (9,)}, step=attribute)
    assert "^" in str(caught.value)


def test_what_a_bound_says_of_itself(bind):
    bound = bind(CONV1D, SHAPES)
    assert repr(bound) == "<conv1d bound to data=(4, 3, 12), filters=(3, 6, 3)>"
    assert bound.variables == ("b", "co", "x", "ci", "dx")
    assert bound.full_box.tolist() == [[0, 4], [0, 6], [0, 10], [0, 3], [0, 3]]
    assert bound.split((), ()).tolist() == [bound.full_box.tolist()]
    assert bound.kind("b") == "concat"
    assert bound.reducer("b") is None
    assert bound.reducer("ci") == "Sum"
    assert bound.in_place == set()
    assert bound.looseness == ()


def test_refusals_point_into_the_text(bind):
    text = "def f(a, b):\n    return lambda i: b[i] + Max(lambda k, m=1: a[i, k] * m)"
    bound = bind(text, {"a": (3, 4), "b": (3,)})
    found = {r.variable: (text[slice(*r.span)], r.reason) for r in bound.refusals}
    assert found == {
        "k": ("Max(lambda k, m=1: a[i, k] * m)", "its Max is inside '+', with which it does not commute"),
        "m": ("Max(lambda k, m=1: a[i, k] * m)", "its Max is inside '+', with which it does not commute"),
    }
    single = bind("def f(a):\n    return lambda i, j: a[i, j]", {"a": (1, 4)})
    (refusal,) = single.refusals
    assert (refusal.variable, refusal.reason) == ("i", "its extent is 1")


def test_accesses_are_told_apart_by_what_encloses_them(bind):
    text = "def f(a):\n    return lambda i: a[i, 0] + Sum(lambda j: pad(a[i, j], 0) * a[i, j]) + a[i, 0]"
    accesses = bind(text, {"a": (3, 4)}).analysis.accesses
    assert [(access.padded, access.enclosing) for access in accesses] == [
        (False, ("i",)),
        (True, ("i", "j")),
        (False, ("i", "j")),
    ]
    assert [text[slice(*access.span)] for access in accesses] == ["a[i, 0]", "a[i, j]", "a[i, j]"]


def test_variables_are_listed_in_the_order_of_the_text(bind):
    text = (
        "def f(a, b):\n    return (lambda i, j: Sum(lambda k: a[i, k] * b[k, j]) + Sum(lambda m: a[m, 0]),"
        " lambda j, i: Max(lambda n: b[n, j]) + i)"
    )
    bound = bind(text, {"a": (4, 3), "b": (3, 5)})
    assert list(bound.extents.items()) == [("i", 4), ("j", 5), ("k", 3), ("m", 4), ("n", 3)]
    assert bound.output_shapes == ((4, 5), (5, 4))
    assert [(s.variable, s.needs_offset) for s in bound.strategies] == [("i", True), ("j", False)]
    assert {r.variable: r.reason for r in bound.refusals}[
        "k"
    ] == "its Sum is inside '+', with which it does not commute"
    outside = bind("def f(a):\n    return lambda i: Sum(lambda k: a[i, k]), lambda i: a[i, 0]", {"a": (4, 3)})
    assert [r.reason for r in outside.refusals] == ["output 1 does not reduce over it"]


def test_dimensions_whose_extents_matter(bind):
    """Those of tensors that are read, and those that are mentioned."""
    text = "def f(a, b, c):\n    return lambda i: a[0, i] * b.shape[2] + c.shape[0] * b.shape[1]"
    bound = bind(text, {"a": (2, 3), "b": (4, 5, 6), "c": (7,)})
    assert bound.analysis.axes == (("a", 0), ("a", 1), ("b", 1), ("b", 2), ("c", 0))
