"""Every family trains over eight workers as over one, in a size that takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tofu import models
from tofu.models.model import Model
from tofu.operators.kernels.kernel import Array

BATCH = 8
CLASSES = 8
IMAGES: dict[str, dict[str, Any]] = {
    "mlp": {"image": (1, 8, 8)},
    "lenet": {"image": (1, 28, 28)},
    "alexnet": {"image": (3, 64, 64), "hidden": 16, "width": 1 / 16},
    "vgg-11": {"image": (3, 32, 32), "hidden": 16, "width": 1 / 16},
    "wresnet-10-1": {"image": (3, 8, 8)},
    "inception-v3": {"image": (3, 75, 75), "width": 1 / 8},
}
SEQUENCES: dict[str, dict[str, Any]] = {
    "lstm": {"layers": 1, "hidden": 8, "embedding": 5},
    "gru": {"layers": 2, "hidden": 8, "embedding": 5},
    "transformer-encoder-1-16": {"heads": 4},
    "transformer-decoder-1-16": {"heads": 4, "memory": 3},
    "transformer-1-16": {"heads": 2},
    "gpt-2-16": {"heads": 4},
    "word-rnn": {"layers": 2, "hidden": 8},
    "nmt": {"layers": 2, "hidden": 8},
    "trn": {"layers": 1, "width": 16, "inner": 24, "heads": 2},
    "char-crn": {"layers": 1, "hidden": 8, "letters": 4, "alphabet": CLASSES, "filters": (4, 8)},
}


def numbers(model: Model) -> dict[str, Array]:
    """Random values for every input that is not a class."""
    generator = np.random.default_rng(13)
    return {name: generator.standard_normal(shape) for name, shape in model.data.items()}


def classes(model: Model, *names: str) -> dict[str, Array]:
    generator = np.random.default_rng(17)
    return {name: generator.integers(0, CLASSES, model.shapes[name]).astype(float) for name in names}


@pytest.mark.parametrize("name", IMAGES)
def test_image_classifiers(name: str, assert_trains_alike: Callable[..., None]) -> None:
    model = models.get(name, batch=BATCH, classes=CLASSES, **IMAGES[name])
    graph = model.training_graph(dtype="float64")
    assert_trains_alike(graph, {**numbers(model), **classes(model, "softmax_label")})


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence_models(name: str, assert_trains_alike: Callable[..., None]) -> None:
    model = models.get(name, batch=BATCH, steps=4, vocabulary=CLASSES, **SEQUENCES[name])
    graph = model.training_graph(dtype="float64")
    tokens = [name for name in model.shapes if name != "memory"]
    assert_trains_alike(graph, {**numbers(model), **classes(model, *tokens)})


def test_video_models(assert_trains_alike: Callable[..., None]) -> None:
    model = models.get("e3d", batch=BATCH, layers=2, hidden=4, kernel=3, patch=2, steps=2, image=(1, 4, 8))
    generator = np.random.default_rng(19)
    data = {name: generator.standard_normal(shape) for name, shape in model.shapes.items()}
    assert_trains_alike(model.training_graph(dtype="float64"), data)
