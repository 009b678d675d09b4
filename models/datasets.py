"""Real data that needs no download: handwritten digits shipped here, and a text that every Python has."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib import resources

import numpy as np

from .split import DataSplit, Samples, windows

__all__ = ["DataSplit", "Text", "digits", "python_topics"]

HELD_OUT_DIGITS = 360
HELD_OUT_TEXT = 0.1


def digits() -> DataSplit:
    """Return handwritten digits: images `[n, 1, 8, 8]` with values in [0, 1], labels `[n]` in 0..9.

    1,437 images to train and 360 held out, drawn by a fixed permutation. Source and licence are in
    `models/data/README.md`.
    """
    file = resources.files(__package__).joinpath("data/digits.csv.gz")
    table = np.loadtxt(
        gzip.decompress(file.read_bytes()).decode().splitlines(), delimiter=",", dtype=np.float32
    )
    table = table[np.random.Generator(np.random.Philox(1998)).permutation(len(table))]
    images = table[:, :64].reshape(-1, 1, 8, 8) / np.float32(16)
    samples = Samples(images, table[:, 64].copy())
    return DataSplit.of(samples[:-HELD_OUT_DIGITS], samples[-HELD_OUT_DIGITS:])


@dataclass(frozen=True)
class Text:
    """A text as class numbers: `split` has windows `[n, length]`, each label the character that follows."""

    split: DataSplit
    alphabet: str


def python_topics(length: int) -> Text:
    """Return the topics of Python's `help()`, as windows of `length` characters, the last tenth held out.

    The text differs a little between Python versions. Characters seen fewer than 20 times count as `?`.
    """
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    common, counts = np.unique(np.array(list(text)), return_counts=True)
    alphabet = "".join(sorted({*common[counts >= 20].tolist(), "?"}))
    number = {character: index for index, character in enumerate(alphabet)}
    unknown = number["?"]
    classes = np.array([number.get(character, unknown) for character in text], np.float32)
    samples = windows(classes, length)
    cut = len(samples) - int(len(samples) * HELD_OUT_TEXT)
    return Text(DataSplit.of(samples[:cut], samples[cut:]), alphabet)
