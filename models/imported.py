"""Models of ONNX files, ended in a loss so that they can be planned and trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..analyzer.indices.region import Shape
from ..dataflow import sym
from ..dataflow.builder import Names
from ..dataflow.symbol import Symbol
from ..errors import ShapeError
from .model import Model

if TYPE_CHECKING:
    from ..importers.onnx import ImportedModel

SUFFIX = ".onnx"
"""The end of the names of ONNX files."""


class Ended(NamedTuple):
    """A symbol that ends in a loss."""

    symbol: Symbol
    """The symbol."""

    label: str
    """The name of its label."""

    shape: Shape
    """The shape of its label."""


def load(path: str, batch: int | None = None, shapes: Mapping[str, Shape] | None = None) -> Model:
    """Return the model of an ONNX file, trained by its first output.

    `batch` is the extent of first dimensions that the file leaves open, and `shapes` are those of whole
    inputs. Raises GraphError, OperatorError, and ShapeError for a dimension that stays open or a batch that
    the file does not have.
    """
    from ..importers.onnx import read_onnx

    given = dict(shapes or {})
    label = {name: given.pop(name) for name in list(given) if name.endswith("_label")}
    found = read_onnx(path, given, batch=batch)
    first = next(iter(found.shapes.items()), None)
    if first is None:
        raise ShapeError(f"{path} has no input that its outputs depend on, so it cannot be trained")
    if batch is not None and not shapes and all(shape[0] != batch for shape in found.shapes.values()):
        raise ShapeError(
            f"{path} has a batch of {first[1][0]} ({first[0]!r} is {first[1]}), but {batch} was asked for; "
            "export it with an open first dimension, or leave the batch out"
        )
    ended = with_loss(found)
    if label.get(ended.label, ended.shape) != ended.shape or set(label) - {ended.label}:
        raise ShapeError(
            f"the label of {path} is {ended.label!r} of shape {ended.shape}, but {label} was given"
        )
    return Model(
        Path(path).stem, ended.symbol, found.shapes, {ended.label: ended.shape}, start=found.parameters
    )


def with_loss(found: ImportedModel) -> Ended:
    """End the first output in a loss.

    Two or three dimensions are scores of classes, the last dimension: a softmax and a class for each row. All
    others get the squared error. A softmax or a sigmoid at the end is part of the loss.
    """
    output = found.symbol[0]
    operator = output.heads[0].node.operator
    kind = None if operator is None else operator.name
    names = Names(node.name for node in output.nodes)
    _, (shape,), _ = output.infer_shape()
    if kind == "sigmoid":
        return _squared("LogisticRegressionOutput", Symbol(output.heads[0].node.inputs), shape, names)
    if len(shape) not in (2, 3):
        return _squared("LinearRegressionOutput", output, shape, names)
    axis = output.heads[0].node.attributes.get("axis")
    if kind == "softmax" and axis in (-1, len(shape) - 1):
        output = Symbol(output.heads[0].node.inputs)
    return _classified(output, shape, names)


def _squared(kind: str, output: Symbol, shape: Shape, names: Names) -> Ended:
    name, label = names.unused("loss"), names.unused("loss_label")
    return Ended(sym.apply(kind, output, sym.Variable(label), name=name), label, shape)


def _classified(output: Symbol, shape: Shape, names: Names) -> Ended:
    """Return a softmax with a row for each label."""
    name, label = names.unused("softmax"), names.unused("softmax_label")
    rows: Symbol = sym.Variable(label)
    if len(shape) == 3:
        output = sym.apply("Reshape", output, shape=(-1, shape[-1]), name=names.unused("scores"))
        rows = sym.apply("Reshape", rows, shape=(-1,), name=names.unused("classes"))
    return Ended(sym.apply("SoftmaxOutput", output, rows, name=name), label, shape[:-1])


def for_data(path: str, batch: int | None, default: int) -> Model:
    """Return the model of an ONNX file in batches of `batch` or, if it is None, of the file's size, or of
    `default` if that is open too.
    """
    try:
        return load(path, batch)
    except ShapeError:
        if batch is not None:
            raise
        return load(path, default)
