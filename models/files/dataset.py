"""What was read from a user's file, and how to read it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ...analyzer.indices.region import Shape
from ...errors import DataError
from ..split import DataSplit

HELD_OUT = 0.1
STEPS = 32


@dataclass(frozen=True)
class Dataset:
    """A split, and what there is to know of it.

    `about` says what the file is. `classes` counts the label's classes, None if labels are not class
    numbers; `names` says what those numbers stand for, where the file does. In a `sequence` the data are
    class numbers too, those of text.
    """

    about: str
    split: DataSplit
    classes: int | None
    names: tuple[str, ...] = ()
    sequence: bool = False

    @property
    def sample(self) -> Shape:
        """The shape of one sample's data."""
        return self.split.train_data.shape[1:]

    @property
    def target(self) -> Shape:
        """The shape of one sample's label."""
        return self.split.train_label.shape[1:]


@dataclass(frozen=True)
class Reading:
    """How to read; what is None is left to the format.

    `hold_out` is the fraction held out of training. Text is cut into windows of `steps` classes, which stand
    for characters or words by `level`; the `vocabulary` most frequent have a class of their own. Images are
    brought to `resize`, height and width.
    """

    hold_out: float | None = None
    steps: int | None = None
    level: str | None = None
    vocabulary: int | None = None
    resize: tuple[int, int] | None = None

    def only(self, path: Path, what: str, *used: str) -> None:
        """Raise DataError if something is asked for that has no meaning for what the path holds."""
        for each in fields(self):
            if getattr(self, each.name) is not None and each.name not in ("hold_out", *used):
                option = each.name.replace("_", "-")
                raise DataError(f"{path} holds {what}, to which --{option} does not apply; leave it out")


def refusal(path: Path | str, expected: str, found: str, advice: str) -> DataError:
    """Return what to raise for a file that is not as it should be."""
    return DataError(f"{path}: expected {expected}, found {found}; {advice}")
