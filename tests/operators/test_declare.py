"""Operators that users describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tofu
from tofu import Opaque, Sum
from tofu.errors import DataError, DescriptionError, OperatorError, ShapeError


@tofu.op
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])


CONV1D = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""
SHAPES = {"data": (4, 3, 12), "filters": (3, 6, 3)}


def test_bind() -> None:
    bound = tofu.parse(CONV1D).bind(SHAPES)
    assert bound.output_shapes == ((4, 6, 10),)
    assert bound.extents == {"b": 4, "co": 6, "x": 10, "ci": 3, "dx": 3}
    assert not bound.elementwise
    kinds = {strategy.variable: (strategy.kind, strategy.reducer) for strategy in bound.strategies}
    assert kinds["x"] == ("concat", None)
    assert kinds["ci"] == ("reduce", "Sum")
    halo = next(strategy for strategy in bound.strategies if strategy.variable == "x")
    assert halo.input_regions(worker=0, workers=2) == {
        "data": ((0, 4), (0, 3), (0, 7)),
        "filters": ((0, 3), (0, 6), (0, 3)),
    }
    assert halo.output_regions(worker=1, workers=2) == (((0, 4), (0, 6), (5, 10)),)


def test_compute_agrees_with_interpret_and_numpy() -> None:
    rng = np.random.default_rng(0)
    tensors = {name: rng.integers(-4, 5, shape).astype(np.float32) for name, shape in SHAPES.items()}
    bound = conv1d.bind(SHAPES)
    (computed,) = bound.compute(tensors)
    assert computed.dtype == np.float32
    windows = np.lib.stride_tricks.sliding_window_view(tensors["data"], 3, axis=2)
    np.testing.assert_array_equal(computed, np.einsum("bcxd,cod->box", windows, tensors["filters"]))
    np.testing.assert_array_equal(computed, bound.interpret(tensors)[0])


def test_equality_and_text() -> None:
    assert conv1d == tofu.parse(CONV1D) == tofu.parse(str(conv1d))
    assert conv1d != tofu.parse(CONV1D.replace("x + dx", "dx + x"))
    assert hash(conv1d) == hash(tofu.parse(CONV1D))
    assert str(conv1d).startswith("def conv1d(data, filters):\n    return lambda b, co, x: Sum(")


def test_attributes_are_keyword_only_parameters() -> None:
    pool = tofu.parse(
        "def pool(data, *, size, scale=1.0):\n"
        "    return lambda x=data.shape[0] // size: Max(lambda d=size: data[x * size + d]) * scale"
    )
    (result,) = pool.bind({"data": (6,)}, size=3, scale="2").compute({"data": np.arange(6.0)})
    np.testing.assert_array_equal(result, [4, 10])
    with pytest.raises(OperatorError, match="pool needs a value for size"):
        pool.bind({"data": (6,)})
    with pytest.raises(OperatorError, match="no attribute 'sice'; did you mean 'size'"):
        pool.bind({"data": (6,)}, sice=2)


def test_several_stages_look_like_one_operator() -> None:
    centred = tofu.parse(
        "def centred(data):\n"
        "    mean = lambda c: Sum(lambda n: data[n, c]) / data.shape[0]\n"
        "    return lambda n, c: data[n, c] - mean[c]"
    )
    bound = centred.bind({"data": (4, 3)})
    assert bound.output_shapes == ((4, 3),)
    regions = {s.variable: s.input_regions(worker=0, workers=3) for s in bound.strategies}
    assert regions == {"n": {"data": ((0, 4), (0, 3))}, "c": {"data": ((0, 4), (0, 1))}}
    data = np.random.default_rng(1).normal(size=(4, 3))
    (result,) = bound.compute({"data": data})
    np.testing.assert_allclose(result, data - data.mean(0), atol=1e-15)
    np.testing.assert_allclose(result, bound.interpret({"data": data})[0], atol=1e-15)


def test_several_outputs() -> None:
    both = tofu.parse("def both(a):\n    return (lambda i: a[i] + 1, lambda i: a[i] * 2)")
    assert both.outputs({}) == ("output_0", "output_1")
    more, twice = both.bind({"a": (3,)}).compute({"a": np.arange(3.0)})
    np.testing.assert_array_equal(more, [1, 2, 3])
    np.testing.assert_array_equal(twice, [0, 2, 4])


def test_words_of_the_language_are_never_called() -> None:
    for word in (Sum, tofu.Max, tofu.Min, tofu.Prod, tofu.Reducer, Opaque):
        with pytest.raises(DescriptionError, match="inside a description"):
            word(lambda i: i)


def test_errors_of_a_decorated_function_point_into_its_file() -> None:
    with pytest.raises(DescriptionError, match=r"test_declare\.py:\d+:\d+: .*wrong"):

        @tofu.op
        def broken(data):
            return lambda i: wrong[i]  # noqa: F821


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_load(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "conv1d.tdl"
    path.write_text(CONV1D, encoding=encoding)
    assert tofu.load(path) == tofu.load(str(path)) == conv1d


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"def f(a):\n    return lambda i: b[i]\n", r"wrong\.tdl:2:22: unknown tensor 'b'"),
        (b"def f(a):\n# \xff\n", r"wrong\.tdl:2: byte 0xff is not UTF-8"),
        (b"#" * 2**16 + b"\n", r"wrong\.tdl is not a description: it is larger than 64 KiB"),
        (b"def f(a): return lambda i: a[i]\ndef f(a): return lambda i: a[i]", r"wrong\.tdl:2:1: two desc"),
    ],
)
def test_files_that_are_no_description(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "wrong.tdl"
    path.write_bytes(content)
    with pytest.raises(DescriptionError, match=message):
        tofu.load(path)


@pytest.mark.parametrize("path", ["", "absent.tdl", "folder", "null\0character"])
def test_files_that_cannot_be_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DescriptionError, match="cannot be read: "):
        tofu.load(f"{tmp_path}/{path}")


def test_a_decorated_function_whose_source_python_does_not_keep() -> None:
    names: dict[str, Any] = {}
    exec("def typed(a):\n    return lambda i: a[i]", names)  # as at a prompt
    with pytest.raises(DescriptionError, match=r"source of 'typed' is not available.*tofu\.parse"):
        tofu.op(names["typed"])


def test_the_source_of_another_function_is_not_taken() -> None:
    """From Python 3.13 on, the text of `python -c` is found for all that `exec` makes."""
    names: dict[str, Any] = {}

    def other(a: Any) -> Any:
        return lambda i: a[i]

    for line in (1, other.__code__.co_firstlineno):
        text = "\n" * (line - 1) + "def typed(a):\n    return lambda i: a[i]"
        exec(compile(text, __file__, "exec"), names)
        with pytest.raises(DescriptionError, match=r"source of 'typed' is not available"):
            tofu.op(names["typed"])


def test_an_operator_whose_attributes_have_no_default_prints() -> None:
    text = "def f(a, *, n):\n    return lambda i: a[i] * n\n"
    assert str(tofu.parse(text)) == text


def test_shapes_and_arrays_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"conv1d needs the shape of filters; .* data"):
        conv1d.bind({"data": (4, 3, 12)})
    with pytest.raises(ShapeError, match="does not take a tensor 'weight', only data, filters"):
        conv1d.bind({**SHAPES, "weight": (1,)})
    bound = conv1d.bind(SHAPES)
    with pytest.raises(ShapeError, match="tensor filters is missing"):
        bound.compute({"data": np.zeros((4, 3, 12))})
    with pytest.raises(ShapeError, match=r"data of shape \(4, 3, 12\), but the array has shape \(4, 3, 11\)"):
        bound.compute({"data": np.zeros((4, 3, 11)), "filters": np.zeros((3, 6, 3))})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.full((4, 3, 12), "x"), "holds values of type <U1; give integers or"),
        (np.full((4, 3, 12), None), "holds values of type object"),
        (np.full((4, 3, 12), 1j), "holds values of type complex128"),
        ([[1.0], [1.0, 2.0]], "is not an array: .* inhomogeneous"),
    ],
)
def test_arrays_hold_numbers(data: Any, message: str) -> None:
    bound: Any = conv1d.bind(SHAPES)
    arrays = {"data": data, "filters": np.zeros((3, 6, 3))}
    for run in (bound.compute, bound.interpret):
        with pytest.raises(tofu.DataError, match=f"conv1d.*: tensor 'data' {message}"):
            run(arrays)


def test_shapes_are_given_by_name() -> None:
    operator = tofu.parse(CONV1D)
    with pytest.raises(
        ShapeError, match=r"conv1d: shapes must be listed by tensor, as .*, found \(4, 3, 12\)"
    ):
        operator.bind((4, 3, 12))
    with pytest.raises(ShapeError, match="conv1d: the shape of data is an array; give the array's"):
        operator.bind({name: np.zeros(shape) for name, shape in SHAPES.items()})


@pytest.mark.parametrize("text", [None, print, b"def f(a): return lambda i: a[i]"])
def test_a_description_is_text(text: Any) -> None:
    with pytest.raises(
        DescriptionError, match=r"a description must be text, found .*use tofu.op for a function"
    ):
        tofu.parse(text)


@pytest.mark.parametrize("name", ["self", "shapes", "operator"])
def test_attributes_may_have_the_names_of_positional_arguments(name: str) -> None:
    scaled = tofu.parse(f"def f(a, *, {name}):\n    return lambda i: a[i] * {name}")
    (found,) = scaled.bind({"a": (2,)}, **{name: 3}).compute({"a": np.ones(2)})
    assert found.tolist() == [3, 3]
    assert tofu.sym.apply(scaled, tofu.sym.Variable("x"), **{name: 3}).attr(name) == "3"


@pytest.mark.parametrize("name", ["training", "name", "attr"])
def test_attributes_with_the_names_of_keyword_arguments_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match=f"attribute '{name}', which is an argument of tofu.sym.apply"):
        tofu.parse(f"def f(a, *, {name}):\n    return lambda i: a[i] * {name}")


def test_more_variables_than_arrays_have_dimensions_are_refused() -> None:
    names = [f"i{number}" for number in range(40)]
    text = f"def f(a):\n    return lambda {', '.join(f'{n}=1' for n in names)}: a[0] + {' + '.join(names)}"
    with pytest.raises(ShapeError, match="f has 40 index variables, and arrays have at most 32 dimensions"):
        tofu.parse(text).bind({"a": (4,)})


def test_structured_arrays_are_refused() -> None:
    bound = tofu.parse("def f(a):\n    return lambda i: a[i]").bind({"a": (4,)})
    with pytest.raises(DataError, match="'a' holds values of type"):
        bound.compute({"a": np.zeros(4, [("x", int)])})


def test_a_file_of_several_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "layers.tdl"
    path.write_text(
        "def one(a):\n    return lambda i: a[i]\n\ndef two(a):\n    return lambda i: 2 * one(a)[i]\n"
    )
    assert tofu.load(path).name == "two"
    assert tofu.load(path, name="one").name == "one"
    with pytest.raises(OperatorError, match="has no description 'three'; it has one, two"):
        tofu.load(path, name="three")
