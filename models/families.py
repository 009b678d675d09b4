"""The families of the zoo: how each name is read, the model it builds by default, and its publication."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dataflow.symbol import Symbol
from ..errors import GraphError
from . import (
    character_aware,
    convolutional,
    eidetic,
    inception,
    perceptron,
    recurrent,
    resnet,
    transformer,
    translation,
)
from .model import Model

IMAGENET = (3, 224, 224)
CIFAR = (3, 32, 32)
MNIST = (1, 28, 28)
HEAD_FEATURES = 64
Image = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose names follow one pattern."""

    pattern: str
    """A regular expression for the names. Its groups are the builder's first arguments, as text."""

    examples: tuple[str, ...]
    """Names to list."""

    build: Callable[..., Model]
    """Makes the model, called as `build(*groups, name=, batch=, **options)`."""

    source: str
    """Where the model was published."""

    @property
    def short_name(self) -> str:
        """Return the name without sizes, such as `gpt`, which stands for the first of the names to list."""
        return re.sub(r"-\d.*", "", self.examples[0])

    def full_name(self, name: str) -> str:
        """Return the name with sizes that a short name stands for; other names as they are."""
        return self.examples[0] if name == self.short_name else name

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `get` besides the name, `batch` first, with their defaults."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "name"}


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


def _alexnet(
    *,
    name: str,
    batch: int = 128,
    image: Image = IMAGENET,
    classes: int = 1000,
    hidden: int = 4096,
    width: float = 1.0,
) -> Model:
    return _classifier(name, convolutional.alexnet(classes, hidden, width), batch, image)


def _vgg(
    depth: str,
    *,
    name: str,
    batch: int = 32,
    image: Image = IMAGENET,
    classes: int = 1000,
    hidden: int = 4096,
    width: float = 1.0,
) -> Model:
    return _classifier(name, convolutional.vgg(int(depth), classes, hidden, width), batch, image)


def _inception(
    *, name: str, batch: int = 32, image: Image = (3, 299, 299), classes: int = 1000, width: float = 1.0
) -> Model:
    return _classifier(name, inception.network(classes, width), batch, image)


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


def _character_model(cell: recurrent.MakeCell) -> Callable[..., Model]:
    """Return the builder of a language model of characters whose layers have these cells."""

    def build(
        *,
        name: str,
        batch: int = 32,
        layers: int = 2,
        hidden: int = 128,
        steps: int = 32,
        embedding: int = 32,
        vocabulary: int = 96,
    ) -> Model:
        symbol = recurrent.language_model(cell, layers, hidden, steps, embedding, vocabulary)
        return _sequence(name, symbol, batch, steps)

    return build


def _encoder(
    layers: str,
    width: str,
    *,
    name: str,
    batch: int = 32,
    steps: int = 512,
    vocabulary: int = 30522,
    heads: int | None = None,
    dropout: float = 0.1,
) -> Model:
    architecture = _architecture(layers, width, heads, dropout)
    return _sequence(name, transformer.encoder(architecture, vocabulary, steps), batch, steps)


def _decoder(
    layers: str,
    width: str,
    *,
    name: str,
    batch: int = 32,
    steps: int = 128,
    memory: int = 128,
    vocabulary: int = 37000,
    heads: int | None = None,
    dropout: float = 0.1,
) -> Model:
    architecture = _architecture(layers, width, heads, dropout, activation="relu")
    symbol = transformer.decoder(architecture, vocabulary, steps)
    return _sequence(name, symbol, batch, steps, memory=(batch, memory, architecture.width))


def _translator(
    layers: str,
    width: str,
    *,
    name: str,
    batch: int = 32,
    steps: int = 128,
    vocabulary: int = 37000,
    heads: int | None = None,
    dropout: float = 0.1,
) -> Model:
    architecture = _architecture(layers, width, heads, dropout, activation="relu")
    symbol = transformer.translator(architecture, vocabulary, steps)
    return _sequence(name, symbol, batch, steps, source=(batch, steps))


def _gpt(
    layers: str,
    width: str,
    *,
    name: str,
    batch: int = 8,
    steps: int = 1024,
    vocabulary: int = 50257,
    heads: int | None = None,
    dropout: float = 0.1,
) -> Model:
    architecture = _architecture(layers, width, heads, dropout, normal_first=True)
    return _sequence(name, transformer.gpt(architecture, vocabulary, steps), batch, steps)


def _word_model(stacked: int, long: int) -> Callable[..., Model]:
    """Return the builder of a language model of words, given the default layers and steps."""

    def build(
        *,
        name: str,
        batch: int = 16,
        layers: int = stacked,
        hidden: int = 2048,
        steps: int = long,
        vocabulary: int = 20_000,
    ) -> Model:
        symbol = recurrent.language_model(recurrent.lstm, layers, hidden, steps, hidden, vocabulary)
        return _sequence(name, symbol, batch, steps)

    return build


def _recurrent_translator(
    *,
    name: str,
    batch: int = 64,
    layers: int = 2,
    hidden: int = 1024,
    steps: int = 40,
    vocabulary: int = 32_000,
) -> Model:
    symbol = translation.translator(layers, hidden, steps, vocabulary)
    return _sequence(name, symbol, batch, steps, source=(batch, steps))


def _character_aware_model(stacked: int) -> Callable[..., Model]:
    """Return the builder of a language model that reads the letters of words, given the default layers."""

    def build(
        *,
        name: str,
        batch: int = 8,
        layers: int = stacked,
        hidden: int = 2048,
        steps: int = 15,
        letters: int = 21,
        alphabet: int = 51,
        filters: tuple[int, ...] = character_aware.FILTERS,
        vocabulary: int = 10_000,
    ) -> Model:
        architecture = character_aware.CharacterAware(
            layers, hidden, steps, letters, alphabet, tuple(filters)
        )
        symbol = character_aware.network(architecture, vocabulary)
        return Model(name, symbol, {"data": (batch, steps, letters)}, {"softmax_label": (batch, steps)})

    return build


def _deep_translator(deep: int, wide: int, between: int) -> Callable[..., Model]:
    """Return the builder of a translator, given the defaults: layers in each half, width and inner width."""

    def build(
        *,
        name: str,
        batch: int = 8,
        layers: int = deep,
        width: int = wide,
        inner: int = between,
        steps: int = 128,
        vocabulary: int = 37_000,
        heads: int | None = None,
        dropout: float = 0.1,
    ) -> Model:
        architecture = _architecture(str(layers), str(width), heads, dropout, activation="relu", inner=inner)
        symbol = transformer.translator(architecture, vocabulary, steps)
        return _sequence(name, symbol, batch, steps, source=(batch, steps))

    return build


def _video_model(channels: int, patched: int) -> Callable[..., Model]:
    """Return the builder of an eidetic network, given the default channels and width of patches."""

    def build(
        *,
        name: str,
        batch: int = 8,
        layers: int = 11,
        hidden: int = channels,
        kernel: int = 5,
        window: int = 2,
        patch: int = patched,
        steps: int = 10,
        image: Image = (1, 64, 64),
    ) -> Model:
        colors, height, width = image
        if height % patch or width % patch:
            raise GraphError(f"{name}: images of {height} x {width} cannot be cut into patches of {patch}")
        frame = (colors * patch * patch, height // patch, width // patch)
        architecture = eidetic.EideticArchitecture(layers, hidden, (window, kernel, kernel), frame)
        made, *size = frame
        return Model(
            name,
            eidetic.network(architecture, steps),
            {"data": (batch, made, steps + window - 1, *size)},
            {"label": (batch, made, steps, *size)},
        )

    return build


def _architecture(
    layers: str,
    width: str,
    heads: int | None,
    dropout: float,
    *,
    activation: str = "gelu",
    normal_first: bool = False,
    inner: int | None = None,
) -> transformer.TransformerArchitecture:
    """Return sizes with the number of heads as given, or such that a head has 64 features."""
    wide = int(width)
    count = max(1, wide // HEAD_FEATURES) if heads is None else heads
    return transformer.TransformerArchitecture(
        int(layers), wide, count, activation, normal_first, dropout, inner
    )


def _sequence(name: str, symbol: Symbol, batch: int, steps: int, **data: tuple[int, ...]) -> Model:
    return Model(name, symbol, {"data": (batch, steps), **data}, {"softmax_label": (batch, steps)})


def _classifier(name: str, symbol: Symbol, batch: int, image: Image) -> Model:
    return Model(name, symbol, {"data": (batch, *image)}, {"softmax_label": (batch,)})


RESNET = "He et al., Identity Mappings in Deep Residual Networks, 2016"
WIDE_RESNET = "Zagoruyko and Komodakis, Wide Residual Networks, 2016"
TOFU = "Wang, Huang and Li, Supporting Very Large Models, 2019"
ATTENTION = "Vaswani et al., Attention Is All You Need, 2017"
KIM = "Kim et al., Character-Aware Neural Language Models, 2016"
EIDETIC = "Wang et al., Eidetic 3D LSTM, 2019"
NMT = "Wu et al., Google's Neural Machine Translation System, 2016"
FLEXFLOW = "Jia et al., Beyond Data and Model Parallelism, 2019"
PARDNN = "Qararyah et al., ParDNN, 2021"
SIZE = r"-([1-9]\d{0,2})-([1-9]\d{0,4})"

FAMILIES = (
    Family("mlp", ("mlp",), _mlp, "MXNet's tutorials"),
    Family("lenet", ("lenet",), _lenet, "LeCun et al., Gradient-Based Learning, 1998; as in MXNet"),
    Family("alexnet", ("alexnet",), _alexnet, "Krizhevsky et al., ImageNet Classification, 2012"),
    Family(
        "vgg-(11|13|16|19)",
        tuple(f"vgg-{d}" for d in (11, 13, 16, 19)),
        _vgg,
        "Simonyan and Zisserman, Very Deep Convolutional Networks, 2015",
    ),
    Family(
        "resnet-(18|34|50|101|152)", tuple(f"resnet-{d}" for d in (18, 34, 50, 101, 152)), _resnet, RESNET
    ),
    Family(
        "inception-v3",
        ("inception-v3",),
        _inception,
        "Szegedy et al., Rethinking the Inception Architecture, 2016",
    ),
    Family(
        r"wresnet-(50|101|152)-([1-9]\d{0,2})",
        tuple(f"wresnet-{d}-{w}" for d in (50, 101, 152) for w in (4, 6, 8, 10)),
        _wide_resnet,
        TOFU,
    ),
    Family(
        r"wresnet-([1-9]\d{0,2})-([1-9]\d{0,2})",
        ("wresnet-10-2", "wresnet-16-4", "wresnet-28-10", "wresnet-610-14", "wresnet-304-28"),
        _small_wide_resnet,
        WIDE_RESNET,
    ),
    Family(
        r"rnn-([1-9]\d{0,2})-([1-9]\d{0,5})([kK]?)",
        tuple(f"rnn-{layers}-{h}k" for layers in (6, 8, 10) for h in (4, 6, 8)),
        _rnn,
        TOFU,
    ),
    Family(
        "lstm",
        ("lstm",),
        _character_model(recurrent.lstm),
        "Hochreiter and Schmidhuber, Long Short-Term Memory, 1997",
    ),
    Family(
        "gru", ("gru",), _character_model(recurrent.gru), "Cho et al., Learning Phrase Representations, 2014"
    ),
    Family("nmt", ("nmt",), _recurrent_translator, f"{NMT}; sizes of {FLEXFLOW}"),
    Family("word-rnn", ("word-rnn",), _word_model(8, 28), PARDNN),
    Family("word-rnn-2", ("word-rnn-2",), _word_model(32, 25), PARDNN),
    Family("char-crn", ("char-crn",), _character_aware_model(8), f"{KIM}; sizes of {PARDNN}"),
    Family("char-crn-2", ("char-crn-2",), _character_aware_model(32), f"{KIM}; sizes of {PARDNN}"),
    Family("trn", ("trn",), _deep_translator(26, 1920, 4096), f"{ATTENTION}; sizes of {PARDNN}"),
    Family("trn-2", ("trn-2",), _deep_translator(24, 3072, 8192), f"{ATTENTION}; sizes of {PARDNN}"),
    Family("e3d", ("e3d",), _video_model(320, 4), f"{EIDETIC}; sizes of {PARDNN}"),
    Family("e3d-2", ("e3d-2",), _video_model(512, 8), f"{EIDETIC}; sizes of {PARDNN}"),
    Family(
        f"transformer-encoder{SIZE}",
        ("transformer-encoder-12-768", "transformer-encoder-24-1024"),
        _encoder,
        "Devlin et al., BERT, 2019",
    ),
    Family(f"transformer-decoder{SIZE}", ("transformer-decoder-6-512",), _decoder, ATTENTION),
    Family(f"transformer{SIZE}", ("transformer-6-512",), _translator, ATTENTION),
    Family(
        f"gpt{SIZE}",
        ("gpt-12-768", "gpt-24-1024", "gpt-36-1280", "gpt-48-1600"),
        _gpt,
        "Radford et al., Language Models are Unsupervised Multitask Learners, 2019",
    ),
)
