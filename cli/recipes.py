"""What `tofu train NAME` trains: a model, real data, and settings that are known to work together."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from .. import models
from ..dataflow.optimizer import Optimizer, adam, sgd
from ..errors import TofuError
from ..models import Model, datasets
from ..models.datasets import Split


@dataclass(frozen=True, slots=True)
class Recipe:
    """`load(batch)` gives the model and its data. The rate falls along a cosine from `learning_rate`."""

    load: Callable[[int], tuple[Model, Split]]
    about: str
    batch: int
    epochs: int
    optimizer: Optimizer
    learning_rate: float
    metrics: tuple[str, ...]


def _digits(name: str) -> Callable[[int], tuple[Model, Split]]:
    def load(batch: int) -> tuple[Model, Split]:
        return models.get(name, batch=batch, image=(1, 8, 8), classes=10), datasets.digits()

    return load


def _characters(batch: int) -> tuple[Model, Split]:
    steps = 32
    text = datasets.python_topics(steps)
    model = models.get(
        "lstm", batch=batch, layers=1, hidden=128, embedding=32, steps=steps, vocabulary=len(text.alphabet)
    )
    return model, text.split


RECIPES = {
    "wresnet": Recipe(
        _digits("wresnet-10-2"),
        "a wide residual network on handwritten digits",
        batch=64,
        epochs=8,
        optimizer=sgd(momentum=0.9, weight_decay=5e-4),
        learning_rate=0.1,
        metrics=("cross-entropy", "accuracy"),
    ),
    "mlp": Recipe(
        _digits("mlp"),
        "a multilayer perceptron on handwritten digits",
        batch=64,
        epochs=20,
        optimizer=sgd(momentum=0.9),
        learning_rate=0.1,
        metrics=("cross-entropy", "accuracy"),
    ),
    "lstm": Recipe(
        _characters,
        "a character language model on the topics of Python's help()",
        batch=64,
        epochs=2,
        optimizer=adam(),
        learning_rate=0.005,
        metrics=("cross-entropy", "perplexity"),
    ),
}


def find(name: str) -> Recipe:
    """The recipe of this name. Raises TofuError with a suggestion."""
    if name in RECIPES:
        return RECIPES[name]
    close = difflib.get_close_matches(name, RECIPES, 1, cutoff=0.3)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(RECIPES)}"
    raise TofuError(f"there is nothing to train called {name!r}; {hint}")
