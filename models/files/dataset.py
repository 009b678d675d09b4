"""The data of a user's file, and how to read it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ...analyzer.indices.region import Shape
from ...errors import DataError
from ...support.checked_argument import is_count, require
from ..split import DataSplit

HELD_OUT = 0.1
STEPS = 32


@dataclass(frozen=True)
class Dataset:
    """A split, and what is known of its samples."""

    about: str
    """The file, in words."""

    split: DataSplit
    """The samples for training, and those held out."""

    classes: int | None
    """The number of the label's classes; None if labels are not class numbers."""

    names: tuple[str, ...] = ()
    """The meaning of each class number; empty if the file does not say."""

    sequence: bool = False
    """Whether the data are class numbers too, those of a text."""

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
    """How to read a file. A field is None if the format decides."""

    hold_out: float | None = None
    """The fraction of the samples that is held out of training."""

    steps: int | None = None
    """The length of the windows into which text is cut, in characters or words."""

    level: str | None = None
    """Whether a text's classes stand for characters or for words."""

    vocabulary: int | None = None
    """The number of the most frequent words or characters that get a class each."""

    resize: tuple[int, int] | None = None
    """The height and width to which images are brought, in pixels."""

    def __post_init__(self) -> None:
        for name, value in (("steps", self.steps), ("vocabulary", self.vocabulary)):
            require(value is None or is_count(value, least=1), value, name, "an integer from 1 on", DataError)

    def only(self, path: Path, what: str, *used: str) -> None:
        """Raise DataError if something is asked for that has no meaning for what the path holds."""
        for each in fields(self):
            if getattr(self, each.name) is not None and each.name not in ("hold_out", *used):
                option = each.name.replace("_", "-")
                raise DataError(f"{path} holds {what}, to which --{option} does not apply; leave it out")


def refusal(path: Path | str, expected: str, found: str, advice: str) -> DataError:
    """Return what to raise for a file that is not as it should be."""
    return DataError(f"{path}: expected {expected}, found {found}; {advice}")
