"""The recipes of `tofu train NAME`: a model, data, and settings that are known to work together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import models
from ..dataflow.optimizer import Optimizer, adam, get_optimizer, sgd
from ..errors import TofuError
from ..models import Model, datasets, fitting, imported
from ..models.files import Dataset
from ..runtime.metrics import get_metric
from ..support.wording import suggestion
from . import model_file

TEXT_STEPS = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is trained."""

    batch: int
    """Samples in one iteration."""

    epochs: int
    """Passes over the training data."""

    optimizer: Optimizer
    """The optimizer and its settings."""

    learning_rate: float
    """The highest learning rate."""

    metrics: tuple[str, ...]
    """Names of the metrics; the first one is plotted."""


IMAGE_SETTINGS = Settings(
    batch=64,
    epochs=8,
    optimizer=sgd(momentum=0.9, weight_decay=5e-4),
    learning_rate=0.1,
    metrics=("cross-entropy", "accuracy"),
)
TEXT_SETTINGS = Settings(
    batch=64, epochs=2, optimizer=adam(), learning_rate=0.005, metrics=("cross-entropy", "perplexity")
)


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """A model of the zoo, and data to train it on."""

    model: str
    """The model's name."""

    about: str
    """The model, in words."""

    data: Callable[[], Dataset]
    """Returns the data, which are used unless the user names others."""

    settings: Settings
    """Settings that work for the two."""

    options: Mapping[str, int] = field(default_factory=dict)
    """By name, the model's options."""


def _digits() -> Dataset:
    return Dataset("handwritten digits", datasets.digits(), classes=10)


def _topics() -> Dataset:
    text = datasets.python_topics(TEXT_STEPS)
    about = "the topics of Python's help()"
    return Dataset(about, text.split, len(text.alphabet), tuple(text.alphabet), sequence=True)


RECIPES = {
    "wresnet": TrainingRecipe("wresnet-10-2", "a wide residual network", _digits, IMAGE_SETTINGS),
    "mlp": TrainingRecipe(
        "mlp",
        "a multilayer perceptron",
        _digits,
        Settings(64, 20, sgd(momentum=0.9), 0.1, IMAGE_SETTINGS.metrics),
    ),
    "lstm": TrainingRecipe(
        "lstm",
        "a language model",
        _topics,
        TEXT_SETTINGS,
        {"layers": 1, "hidden": 128, "embedding": 32},
    ),
}


@dataclass(frozen=True, slots=True)
class TrainingTask:
    """A model and the data that it is trained on."""

    model: Model
    """The model."""

    data: Dataset
    """The data."""

    place: Path | str
    """The file or folder of the data, or a few words if the recipe makes them."""

    about: str
    """The model and the data, in words."""

    settings: Settings
    """How it is trained."""

    recipe: str | None = None
    """The name of the recipe that it is; None if it has other data or is not a recipe."""


def task(name: str, batch: int | None, data: Dataset | None, path: Path | None) -> TrainingTask:
    """Return the recipe of this name or, on data from `path`, any model that `tofu plan` takes.

    Raises TofuError for an unknown name with a suggestion, DataError if model and data do not fit.
    """
    if name in RECIPES:
        return recipe(name, batch, data, path)
    if data is None or path is None:
        raise TofuError(_unknown(name))
    settings = TEXT_SETTINGS if data.sequence else IMAGE_SETTINGS
    model = _model(name, batch, settings.batch, data, path)
    return TrainingTask(model, data, path, f"on {data.about}", settings)


def recipe(
    name: str, batch: int | None, data: Dataset | None = None, path: Path | None = None
) -> TrainingTask:
    """Return the recipe of this name, on its own data if there are no others.

    Raises TofuError for an unknown name with a suggestion, DataError if model and data do not fit.
    """
    known = RECIPES.get(name)
    if known is None:
        hint = suggestion(name, RECIPES, most=1) or f"there are {', '.join(RECIPES)}"
        raise TofuError(f"{name!r} is not a recipe; {hint}")
    found, settings = data or known.data(), known.settings
    place = path or found.about
    model = fitting.built(known.model, batch or settings.batch, found, place, **known.options)
    model = replace(model, optimizer=settings.optimizer)
    about = f"{known.about} on {found.about}"
    return TrainingTask(model, found, place, about, settings, name if data is None else None)


def _model(name: str, batch: int | None, default: int, data: Dataset, path: Path) -> Model:
    """Return a model of the zoo, from a file of MXNet or ONNX or a Python function, for such data."""
    if name.endswith(imported.SUFFIX):
        return imported.for_data(name, batch, default)
    found = model_file.from_file(name, batch)
    match found:
        case None:
            return fitting.built(name, batch or default, data, path)
        case Model():
            return fitting.rebatched(found, batch)
        case symbol:
            return fitting.of_symbol(name, symbol, batch or default, data, path)


def _unknown(name: str) -> str:
    """Return the message for a name that is not a recipe, if no data are named."""
    if name in models.names() or model_file.is_file(name):
        return f"{name} comes without data: name a file or folder with --data"
    hint = suggestion(name, RECIPES, most=1) or f"{', '.join(RECIPES)} bring data."
    return f"{name!r} is not a name that brings its own data; {hint} To train another model, give --data PATH"


def changed(
    settings: Settings,
    epochs: int | None,
    learning_rate: float | None,
    optimizer: str | None,
    metrics: tuple[str, ...],
) -> Settings:
    """Return the settings with the values that were asked for.

    Raises TofuError for names that are unknown.
    """
    return replace(
        settings,
        epochs=epochs or settings.epochs,
        learning_rate=learning_rate or settings.learning_rate,
        optimizer=get_optimizer(optimizer) if optimizer else settings.optimizer,
        metrics=tuple(get_metric(each).name for each in metrics) or settings.metrics,
    )
