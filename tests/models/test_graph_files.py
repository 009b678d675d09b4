"""Graph files: those next to this test, and any of MXNet in the folder that `TOFU_MXNET_GRAPHS` names.

A graph `net-symbol.json` comes with `net-shapes.json`: its inputs' shapes, and what MXNet infers from them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import pytest

from tofu import models
from tofu.dataflow import sym
from tofu.dataflow.symbol import Symbol
from tofu.dataflow.training import training_graph
from tofu.dataflow.validate import validate
from tofu.operators.kernels.kernel import Array
from tofu.partitioner import partition

OWN = Path(__file__).parent / "graphs"
MXNET = os.environ.get("TOFU_MXNET_GRAPHS")
FOLDERS = (OWN, *([Path(MXNET)] if MXNET else []))
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*-symbol.json"))]
SMALL = 1000
"""Graphs whose inputs have at most this many numbers per sample are trained, over a batch of 8."""

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    symbol: Symbol
    inputs: Shapes
    arguments: Shapes
    outputs: Shapes
    auxiliary: Shapes
    internals: Shapes

    @property
    def fed(self) -> Shapes:
        """Data and labels; everything else is a parameter."""
        labels = {name: shape for name, shape in self.arguments.items() if name.endswith("label")}
        return {**self.inputs, **labels}


def shapes(text: dict[str, list[int]]) -> Shapes:
    return {name: tuple(shape) for name, shape in text.items()}


@pytest.fixture(params=FILES, ids=lambda path: path.stem.removesuffix("-symbol"))
def case(request: pytest.FixtureRequest) -> Case:
    path = Path(request.param)
    known = json.loads(path.with_name(path.name.replace("-symbol", "-shapes")).read_text("utf-8"))
    kinds = ("input_shapes", "arg_shapes", "output_shapes", "aux_shapes", "internal_output_shapes")
    return Case(sym.load(path), *(shapes(known[kind]) for kind in kinds))


def test_shapes_are_those_of_mxnet(case: Case) -> None:
    arguments, outputs, auxiliary = case.symbol.infer_shape(**case.inputs)
    assert dict(zip(case.symbol.list_arguments(), arguments, strict=True)) == case.arguments
    assert dict(zip(case.symbol.list_outputs(), outputs, strict=True)) == case.outputs
    assert dict(zip(case.symbol.list_auxiliary_states(), auxiliary, strict=True)) == case.auxiliary
    assert case.symbol.list_arguments() == list(case.arguments)
    internals = case.symbol.get_internals()
    _, inner, _ = internals.infer_shape(**case.inputs)
    assert dict(zip(internals.list_outputs(), inner, strict=True)) == case.internals


ZOO = {
    "mlp": "mlp",
    "vgg16": "vgg-16",
    "resnet18": "resnet-18",
    "resnet152": "resnet-152",
    "inception-v3": "inception-v3",
}
"""Models of the zoo that have the names and structure of a graph file."""


@pytest.mark.skipif(not MXNET, reason="TOFU_MXNET_GRAPHS names no folder")
@pytest.mark.parametrize(("file", "name"), ZOO.items())
def test_models_of_the_zoo_have_the_parameters_of_their_files(file: str, name: str) -> None:
    known = json.loads((Path(str(MXNET)) / f"{file}-shapes.json").read_text("utf-8"))
    model = models.get(name)
    assert {**model.shapes, **model.parameters} == shapes(known["arg_shapes"])
    assert model.symbol.list_arguments() == list(known["arg_shapes"])
    assert model.symbol.list_auxiliary_states() == list(known["aux_shapes"])


def test_plans_over_eight_workers(case: Case) -> None:
    graph = training_graph(case.symbol, case.fed)
    validate(graph)
    plan = partition(graph, workers=8)
    plan.verify(graph)
    assert plan.workers == 8
    assert plan.cost_bytes > 0


def test_a_small_one_trains_over_eight_workers_as_over_one(
    case: Case, assert_trains_alike: Callable[..., None]
) -> None:
    numbers = sum(prod(shape[1:]) for shape in case.inputs.values())
    if numbers > SMALL:
        pytest.skip(f"{numbers:,} numbers per sample")
    fed = {name: (8, *shape[1:]) for name, shape in case.fed.items()}
    graph = training_graph(case.symbol, fed, dtype="float64")
    generator = np.random.default_rng(11)
    (classes, *_) = {shape[-1] for shape in case.outputs.values()}
    data: dict[str, Array] = {}
    for name, shape in fed.items():
        indices = name.endswith("label") or reads_rows(case.symbol, name)
        data[name] = generator.integers(0, classes, shape) if indices else generator.standard_normal(shape)
    assert_trains_alike(graph, {name: value.astype(float) for name, value in data.items()})


def reads_rows(symbol: Symbol, name: str) -> bool:
    """Whether this input chooses rows of an embedding."""
    return any(
        node.operator is not None and node.operator.name == "Embedding" and node.inputs[0].node.name == name
        for node in symbol.nodes
    )
