"""Drawings as files: well formed, to the edge of their boxes, and PNG where matplotlib is installed."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tofu.analyzer.indices.region import split, whole
from tofu.errors import TofuError
from tofu.operators.declare import parse
from tofu.reports.drawing.curve import memory_drawing
from tofu.reports.drawing.file import write_drawing
from tofu.reports.drawing.marks import Area, Drawing, Label, Lines, Rectangle
from tofu.reports.drawing.operator import operator_drawing
from tofu.reports.drawing.svg import inline, standalone
from tofu.reports.drawing.tensor import _band, caption, tensor_drawing
from tofu.reports.drawing.tiles import plane

SVG = "{http://www.w3.org/2000/svg}"
CONV1D = """
def conv1d(data, filters):
    return lambda b, co, x: Sum(lambda ci, dx: data[b, ci, x + dx] * filters[ci, co, dx])
"""


def conv1d_drawing(workers: int = 2) -> Drawing:
    bound = parse(CONV1D).bind({"data": (4, 3, 12), "filters": (3, 6, 3)})
    return operator_drawing("conv1d", bound.strategies, workers)


def texts(drawing: Drawing) -> list[str]:
    return [mark.text for mark in drawing.marks if isinstance(mark, Label)]


def test_figure_two() -> None:
    said = texts(conv1d_drawing())
    assert "b split over 2 workers: outputs are concatenated" in said
    assert "ci split over 2 workers: outputs are reduced by Sum" in said
    assert said.count("partial values, reduced by Sum") == 2
    assert "halo: 1 along 2" in said


def test_the_picture_in_the_documentation_is_up_to_date() -> None:
    """Where it is not, docs/report.md has the command that draws it, with `-v b -v x -v ci`."""
    bound = parse(CONV1D).bind({"data": (4, 3, 12), "filters": (3, 6, 3)})
    chosen = [strategy for strategy in bound.strategies if strategy.variable in ("b", "x", "ci")]
    picture = Path(__file__).parents[3] / "docs" / "pictures" / "conv1d.svg"
    assert picture.read_text(encoding="utf-8") == standalone(operator_drawing("conv1d", chosen, 2))


def test_a_variable_with_too_few_values_says_so() -> None:
    assert "its extent is 3, too small for 4 workers" in texts(conv1d_drawing(workers=4))


def test_a_strategy_without_pictures_takes_little_room() -> None:
    bound = parse(CONV1D).bind({"data": (4, 3, 12), "filters": (3, 6, 3)})
    strategies = {strategy.variable: strategy for strategy in bound.strategies}
    alone = operator_drawing("conv1d", [strategies["x"]], 4).height
    assert 0 < operator_drawing("conv1d", [strategies["x"], strategies["ci"]], 4).height - alone < 80


def test_strategies_of_several_stages_stand_under_their_names() -> None:
    centred = parse("""
def centred(data):
    mean = lambda c: Sum(lambda n: data[n, c]) / data.shape[0]
    return lambda n, c: data[n, c] - mean[c]
""")
    shapes = {"data": (4, 6)}
    mean, rest = centred.stages({}, shapes)
    strategies = [*mean.bind(shapes).strategies, *rest.bind({**shapes, "mean": (6,)}).strategies]
    said = [text for text in texts(operator_drawing("centred", strategies, 2)) if "centred" in text]
    assert said == ["centred", "centred_mean", "centred"]


def test_long_names_and_shapes_do_not_overlap() -> None:
    bound = parse("""
def long(activations_of_the_previous_layer, weights_of_this_very_layer):
    return lambda i, j, *k: activations_of_the_previous_layer[i, j, *k] + weights_of_this_very_layer[i, j, *k]
""").bind(
        dict.fromkeys(
            ("activations_of_the_previous_layer", "weights_of_this_very_layer"),
            (1024, 1024, 1024, 1024, 1024, 1024),
        )
    )
    drawing = operator_drawing("long", bound.strategies, 2)
    labels = [mark for mark in drawing.marks if isinstance(mark, Label) and mark.anchor == "start"]
    assert len({label.x for label in labels}) == 3
    for label in labels:
        right = [other.x for other in labels if other.y == label.y and other.x > label.x]
        assert label.x + label.width < min(right, default=drawing.width)


def test_marks_stay_inside() -> None:
    drawing = conv1d_drawing(workers=3)
    for mark in drawing.marks:
        if isinstance(mark, Rectangle):
            assert mark.x >= 0
            assert mark.x + mark.width <= drawing.width
            assert mark.y + mark.height <= drawing.height


def test_svg_is_well_formed_and_names_are_escaped() -> None:
    drawing = Drawing(10, 20, "<b> & co", (Rectangle(0.25, 1, 3, 4, "#FF0000"), Label(1, 2, "a<b")))
    root = ElementTree.fromstring(standalone(drawing))
    assert root.find(f"{SVG}title").text == "<b> & co"
    assert root.find(f"{SVG}text").text == "a<b"
    assert root.findall(f"{SVG}rect")[1].attrib["x"] == ".25"
    assert "<b>" not in inline(drawing)


@given(st.floats(1, 50), st.floats(1, 50), st.floats(1, 9))
def test_stripes_tile_their_box(width: float, height: float, stripe: float) -> None:
    area, at = 0.0, 0.0
    while at < width + height:
        points = np.array(_band(width, height, at, at + stripe))
        x, y = points[:, 0], points[:, 1]
        area += abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
        assert ((x >= 0) & (x <= width + 1e-9) & (y >= 0) & (y <= height + 1e-9)).all()
        at += stripe
    assert area == pytest.approx(width * height, rel=1e-6)


@pytest.mark.parametrize(("workers", "says"), [(1, "0"), (2, "0,1"), (5, "all")])
def test_what_workers_share_names_them(workers: int, says: str) -> None:
    shared = plane((6, 6), split(whole((6, 6)), (None,), (workers,)))
    assert texts(tensor_drawing(shared, "shared")) == [says]


def test_captions() -> None:
    assert caption(plane((4, 6), split(whole((4, 6)), (1,), (2,)))) == "dimension 0 down, 1 right"
    assert caption(plane((), np.zeros((2, 0, 2), np.int64))) == "one number"
    assert "2 panels along 2" in caption(plane((4, 4, 4), split(whole((4, 4, 4)), (0, 1, 2), (2, 2, 2))))


def test_memory_peak_is_named() -> None:
    assert "peak 3.00 kB" in texts(memory_drawing(np.array([0, 1000, 3000, 10])))
    assert "peak 0 B" in texts(memory_drawing(np.zeros(3, np.int64)))


def test_png_shows_the_colours(tmp_path: Path) -> None:
    from matplotlib.image import imread

    path = tmp_path / "conv1d.png"
    drawing = Drawing(40, 20, "halves", (Rectangle(0, 0, 20, 20, "#56B4E9"), Label(30, 10, "$x")))
    write_drawing(drawing, path)
    pixels = imread(path)
    assert pixels.shape[:2] == (40, 80)
    assert np.allclose(pixels[20, 10, :3] * 255, (0x56, 0xB4, 0xE9), atol=1)
    assert np.allclose(pixels[2, 78, :3], 1)


def test_png_draws_lines_and_areas(tmp_path: Path) -> None:
    from matplotlib.image import imread

    path = tmp_path / "shapes.png"
    triangle = Area((((0, 0), (20, 0), (0, 20)),), "#D55E00")
    write_drawing(Drawing(40, 20, "shapes", (triangle, Lines(((30, 0, 30, 20),), "#0072B2", 4))), path)
    pixels = imread(path)[:, :, :3] * 255
    assert np.allclose(pixels[8, 8], (0xD5, 0x5E, 0x00), atol=1)
    assert np.allclose(pixels[20, 60], (0x00, 0x72, 0xB2), atol=1)
    assert np.allclose(pixels[36, 36], 255)
    assert np.allclose(pixels[20, 68], 255)


def test_png_without_matplotlib_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TofuError, match="pip install matplotlib"):
        write_drawing(conv1d_drawing(), tmp_path / "conv1d.png")
    assert list(tmp_path.iterdir()) == []
