"""The model zoo by name: `wresnet-152-10`, `rnn-10-8k`, `mlp`, ..."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dataflow.naming import NameScope
from ..errors import GraphError
from . import perceptron, recurrent, resnet
from .model import Model

IMAGENET = (3, 224, 224)
CIFAR = (3, 32, 32)
MNIST = (1, 28, 28)
Image = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose names match `pattern`; its groups are the builder's first arguments, as text.

    `build(*groups, name=, batch=, **options)` makes the model. `examples` are names worth listing.
    """

    pattern: str
    examples: tuple[str, ...]
    build: Callable[..., Model]


def _mlp(
    *,
    name: str,
    batch: int = 64,
    image: Image = MNIST,
    classes: int = 10,
    hidden: tuple[int, ...] = (128, 64),
) -> Model:
    return _classifier(name, perceptron.mlp(hidden, classes), batch, image)


def _lenet(*, name: str, batch: int = 64, image: Image = MNIST, classes: int = 10) -> Model:
    return _classifier(name, perceptron.lenet(classes), batch, image)


def _resnet(depth: str, *, name: str, batch: int = 32, image: Image = IMAGENET, classes: int = 1000) -> Model:
    symbol = resnet.network(resnet.imagenet(int(depth)), image, classes)
    return _classifier(name, symbol, batch, image)


def _wide_resnet(
    depth: str, width: str, *, name: str, batch: int = 32, image: Image = IMAGENET, classes: int = 1000
) -> Model:
    symbol = resnet.network(resnet.imagenet(int(depth), int(width)), image, classes)
    return _classifier(name, symbol, batch, image)


def _small_wide_resnet(
    depth: str, width: str, *, name: str, batch: int = 32, image: Image = CIFAR, classes: int = 10
) -> Model:
    if int(depth) < 10 or (int(depth) - 4) % 6:
        raise GraphError(
            f"{name}: a depth of {depth} fits neither ImageNet (50, 101, 152) "
            "nor small images (6n + 4: 10, 16, 22, ...)"
        )
    symbol = resnet.network(resnet.small(int(depth), int(width)), image, classes)
    return _classifier(name, symbol, batch, image)


def _rnn(
    layers: str,
    hidden: str,
    kilo: str,
    *,
    name: str,
    batch: int = 512,
    steps: int = 20,
    features: int = 256,
    classes: int = 256,
) -> Model:
    units = int(hidden) * (1024 if kilo else 1)
    symbol = recurrent.rnn(int(layers), units, steps, classes)
    return Model(name, symbol, {"data": (batch, steps, features)}, {"softmax_label": (batch,)})


def _lstm(
    *,
    name: str,
    batch: int = 32,
    layers: int = 2,
    hidden: int = 128,
    steps: int = 32,
    embedding: int = 32,
    vocabulary: int = 96,
) -> Model:
    symbol = recurrent.language_model(layers, hidden, steps, embedding, vocabulary)
    return Model(name, symbol, {"data": (batch, steps)}, {"softmax_label": (batch, steps)})


def _classifier(name: str, symbol: Any, batch: int, image: Image) -> Model:
    return Model(name, symbol, {"data": (batch, *image)}, {"softmax_label": (batch,)})


FAMILIES = (
    Family("mlp", ("mlp",), _mlp),
    Family("lenet", ("lenet",), _lenet),
    Family("resnet-(18|34|50|101|152)", tuple(f"resnet-{d}" for d in (18, 34, 50, 101, 152)), _resnet),
    Family(
        r"wresnet-(50|101|152)-([1-9]\d{0,2})",
        tuple(f"wresnet-{d}-{w}" for d in (50, 101, 152) for w in (4, 6, 8, 10)),
        _wide_resnet,
    ),
    Family(
        r"wresnet-([1-9]\d{0,2})-([1-9]\d{0,2})",
        ("wresnet-10-2", "wresnet-16-4", "wresnet-28-10"),
        _small_wide_resnet,
    ),
    Family(
        r"rnn-([1-9]\d{0,2})-([1-9]\d{0,5})([kK]?)",
        tuple(f"rnn-{layers}-{h}k" for layers in (6, 8, 10) for h in (4, 6, 8)),
        _rnn,
    ),
    Family("lstm", ("lstm",), _lstm),
)


def names() -> tuple[str, ...]:
    """Names worth trying; other depths, widths and sizes work likewise."""
    return tuple(name for family in FAMILIES for name in family.examples)


def get(name: str, batch: int | None = None, **options: Any) -> Model:
    """The model of this name. `batch` defaults to the family's; options are those of the family.

    Raises GraphError for an unknown name, option or value.
    """
    for family in FAMILIES:
        matched = re.fullmatch(family.pattern, name)
        if matched:
            return _build(family, name, matched.groups(), batch, options)
    close = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names())}"
    raise GraphError(f"there is no model {name!r}; {hint}")


def _build(
    family: Family, name: str, groups: tuple[str, ...], batch: int | None, options: dict[str, Any]
) -> Model:
    known = [p.name for p in inspect.signature(family.build).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known.remove("name")
    for option in options:
        if option not in known or option == "batch":
            raise GraphError(f"model {name!r} has no option {option!r}; it has {', '.join(known)}")
    if batch is not None:
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise GraphError(f"batch is {batch!r}, expected a positive integer")
        options["batch"] = batch
    with NameScope():
        return family.build(*groups, name=name, **options)
