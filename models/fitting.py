"""A model for given data: built to its shapes and classes, or checked against them before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..analyzer.indices.region import Shape
from ..dataflow.symbol import Symbol
from ..errors import DataError, TofuError
from . import zoo
from .files import Dataset
from .files.dataset import refusal
from .model import Model

ADVICE = "choose a model for such data: mlp or wresnet for images, lstm for text"
OTHER_LABELS = "give a model of your own for such labels, file.py:function, and --metric mse"
CLASS_METRICS = ("accuracy", "cross-entropy", "perplexity")
"""Metrics whose labels are class numbers, of outputs `[rows, classes]`."""


def built(name: str, batch: int | None, data: Dataset, place: Path | str, **options: Any) -> Model:
    """Return the zoo's model of this name for such samples and classes.

    `options` are those that do not follow from the data. Raises DataError if a model of its kind cannot
    read such data, GraphError for an unknown name.
    """
    family = zoo.family(name)
    known = _text_options(data) if data.sequence else _array_options(data)
    needed = {option: known.get(option) for option in family.options if option in _DECIDED}
    if None in needed.values():
        raise refusal(place, f"{_reads(needed)} for {name}", _holds(data), _advice(data))
    try:
        model = zoo.get(name, batch, **needed, **options)
        model.symbol.infer_shape(**model.shapes)
    except TofuError as error:
        raise DataError(f"{name} cannot be built for {_holds(data)} in {place}: {error}") from error
    empty = next((weight for weight, shape in model.parameters.items() if 0 in shape), None)
    if empty is not None:
        raise DataError(
            f"{name} cannot be built for {_holds(data)} in {place}: {empty} would have no elements; "
            "give larger samples, for images in folders by --resize, or choose a model with fewer layers"
        )
    return model


_DECIDED = ("image", "classes", "steps", "features", "vocabulary", "memory")
"""Options of the zoo that follow from data."""


def _text_options(data: Dataset) -> dict[str, Any]:
    return {"steps": data.sample[0], "vocabulary": data.classes}


def _array_options(data: Dataset) -> dict[str, Any]:
    if data.target:
        return {}
    sequence = dict(zip(("steps", "features"), data.sample, strict=True)) if len(data.sample) == 2 else {}
    return {"image": data.sample, "classes": data.classes, **sequence}


def _advice(data: Dataset) -> str:
    return ADVICE if data.sequence or data.classes is not None else OTHER_LABELS


def _reads(needed: dict[str, Any]) -> str:
    """Return what a family reads, by its options."""
    if "vocabulary" in needed:
        return "text" + (" and a second input" if "memory" in needed else "")
    if "features" in needed:
        return "sequences [n, steps, features] with a class for each"
    return "images [n, channels, height, width] with a class for each"


def _holds(data: Dataset) -> str:
    """Return what there is, in words."""
    if data.sequence:
        return f"class numbers in sequences of {data.sample[0]} ({data.about})"
    labels = f"{data.classes} classes" if data.classes is not None else "labels that are not class numbers"
    return f"samples {_shape(data.sample)} with {labels} ({data.about})"


def _shape(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "of one number"


def of_symbol(name: str, symbol: Symbol, batch: int, data: Dataset, place: Path | str) -> Model:
    """Return a graph without shapes, fed such data. Raises DataError if it does not take them."""
    inputs = {"data": (batch, *data.sample), "softmax_label": (batch, *data.target)}
    arguments = symbol.list_arguments()
    if "data" not in arguments:
        found = ", ".join(arguments[:3])
        raise refusal(name, "an input called 'data'", found, "call the input that is fed from a file 'data'")
    labels = [each for each in arguments if each.endswith("label")]
    if len(labels) == 1:
        inputs = {"data": inputs["data"], labels[0]: inputs["softmax_label"]}
    model = Model(name, symbol, {"data": inputs.pop("data")}, inputs)
    try:
        symbol.infer_shape(**model.shapes)
    except TofuError as error:
        raise DataError(f"{name} does not take {_holds(data)} in {place}: {error}") from error
    return model


def rebatched(model: Model, batch: int | None) -> Model:
    """Return the model for batches of another size."""
    if batch is None or batch == model.batch:
        return model
    return replace(model, data=_resized(model.data, batch), labels=_resized(model.labels, batch))


def _resized(shapes: Mapping[str, Shape], batch: int) -> dict[str, Shape]:
    return {name: (batch, *shape[1:]) for name, shape in shapes.items()}


def require_fit(model: Model, data: Dataset, place: Path | str, metrics: tuple[str, ...]) -> tuple[str, str]:
    """Return the names of the input and the label that the data are fed to.

    Raises DataError if shapes or classes do not fit the model's, naming both.
    """
    if len(model.data) != 1 or len(model.labels) != 1:
        expected = f"arrays for {', '.join(model.shapes)}, which {model.name} is fed"
        raise refusal(place, expected, "data and labels", "train it with tofu.Module")
    (input_name, data_shape), (label_name, label_shape) = *model.data.items(), *model.labels.items()
    fed = ((input_name, data_shape, data.sample), (label_name, label_shape, data.target))
    for name, needed, there in fed:
        if needed[1:] != there:
            raise refusal(
                f"{place}, '{name}'",
                f"{_shape(needed[1:])} for each sample, as {model.name} reads",
                _shape(there),
                "reshape the data, or give a model made for it",
            )
    if set(metrics) & set(CLASS_METRICS):
        _require_classes(model, data, place)
    return input_name, label_name


def _require_classes(model: Model, data: Dataset, place: Path | str) -> None:
    """Raise DataError if labels are not classes of the model's first output."""
    output = model.symbol.infer_shape(**model.shapes)[1][0]
    rows = int(np.prod(next(iter(model.labels.values()))))
    if len(output) != 2 or output[0] != rows:
        raise refusal(
            model.name,
            f"an output [{rows}, classes], a row for each label",
            f"{tuple(output)}",
            "choose another metric with --metric, such as mse",
        )
    if data.classes is None:
        raise refusal(place, "labels 0, 1, ... for classes", "others", "choose --metric mse, or number them")
    if data.classes > output[1]:
        raise refusal(
            place,
            f"labels from 0 to {output[1] - 1}, the classes of {model.name}",
            f"labels up to {data.classes - 1}",
            "give a model with as many classes",
        )
