"""Arguments that name files and machines, and shapes: others are errors of the package, on every surface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tofu
from tofu.errors import TofuError
from tofu.support.checked_argument import path_of

NET = tofu.models.get("mlp", batch=8)
GRAPH = NET.training_graph("sgd")
PLAN = tofu.partition(GRAPH, 2)
PROGRAM = tofu.lower(GRAPH, PLAN)
TIMELINE = tofu.simulate(PROGRAM, "dgx-1-v100")

SURFACES: dict[str, Callable[[Any], object]] = {
    "load a description": tofu.load,
    "load a symbol": tofu.sym.load,
    "save a symbol": NET.symbol.save,
    "load a plan": tofu.Plan.load,
    "save a plan": PLAN.save,
    "save a trace": TIMELINE.save_trace,
    "read a strategy": lambda name: tofu.sync.read(name, GRAPH, 2),
    "load a machine": tofu.machines.load,
    "simulate on a machine": lambda name: tofu.simulate(PROGRAM, name),
    "partition for a machine": lambda name: tofu.partition(GRAPH, 2, machine=name or 0),
}

NO_NAMES = (5, True, 1.5, [], b"name", object(), "a" * 300, "a\0b", "/nowhere/file.json")


@pytest.mark.parametrize("name", NO_NAMES, ids=lambda name: repr(name)[:12])
@pytest.mark.parametrize("surface", SURFACES)
def test_what_names_no_file_is_refused(surface: str, name: object) -> None:
    with pytest.raises(TofuError):
        SURFACES[surface](name)


SHAPED: dict[str, Callable[[Any], object]] = {
    "infer": lambda shapes: NET.symbol.infer_shape(data=shapes),
    "make a graph": lambda shapes: tofu.training_graph(NET.symbol, shapes),
    "export": lambda shapes: tofu.export_onnx(NET.symbol, {}, "model.onnx", shapes),
    "bind a module": lambda shapes: tofu.Module(NET.symbol).bind(shapes),
}

NO_SHAPES = (5, "x", {"data": 5}, {"data": "x"}, {5: (1,)}, {"data": (1.5,)}, {"data": (-1, 2)})


@pytest.mark.parametrize("shapes", NO_SHAPES, ids=repr)
@pytest.mark.parametrize("surface", SHAPED)
def test_what_are_not_shapes_is_refused(surface: str, shapes: object) -> None:
    with pytest.raises(TofuError):
        SHAPED[surface](shapes)


def test_texts_and_paths_name_files() -> None:
    assert path_of("a/b", "path", TofuError) == path_of(Path("a/b"), "path", TofuError) == Path("a/b")
    with pytest.raises(TofuError, match=r"^path is 5 \(int\); give the name of a file$"):
        path_of(5, "path", TofuError)
